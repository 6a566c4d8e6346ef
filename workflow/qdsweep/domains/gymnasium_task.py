"""Gymnasium environments as domains: a policy plays episodes, which are measured."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from qdsweep.config import domain as config
from qdsweep.domains.base import (
    CUT,
    GOES_ON,
    TERMINATED,
    Episode,
    Evaluation,
    Exploration,
    Floats,
    Record,
    Seeds,
    Token,
    Unroll,
    copied,
)
from qdsweep.domains.contacts import make_ground
from qdsweep.domains.environments import find_spec, make_env, make_reset
from qdsweep.domains.episodes import (
    check_components,
    episode_fields,
    evaluate_episodes,
    load_own_measures,
    measure_episode,
)
from qdsweep.domains.experience import join_records
from qdsweep.domains.normalizer import Normalizer, merge, tally, tally_of_squares
from qdsweep.domains.policies import Actions, Choice, Policy, make_actions, make_choice
from qdsweep.domains.unrolls import LiveEpisodes, evaluate_unrolls, new_episode_seeds, paused
from qdsweep.errors import BadInput

# The longest episode if neither the task nor its settings limit it [steps].
MAX_STEPS = 100_000
# `reset` removes all state of earlier episodes from these environments (a test checks it), so they
# are reused. Others may keep state. A BipedalWalker and the robots of PyBullet keep their physics
# world, and give other bits when they are reused.
_KEPT = ("gymnasium.envs.classic_control.", "gymnasium.envs.mujoco.")
# These environments do not use the forces that gymnasium computes after each step.
_WITHOUT_FORCES = tuple(
    f"gymnasium.envs.mujoco.{name}_v" for name in ("half_cheetah", "hopper", "walker2d")
)


def make_vector(space: spaces.Space, env: str) -> tuple[int, Callable[[Any], Floats]]:
    """Makes the function that turns an observation into a vector, as FlattenObservation does.

    Args:
        space: The environment's observation space.
        env: The environment's id, for the message.

    Returns:
        The size of the vector, and the function. It copies, because an env may reuse its buffer.

    Raises:
        BadInput: Observations of the space differ in size, as in Sequence and Graph spaces.
    """
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return space.shape[0], lambda raw: raw.astype(np.float64)
    flat = spaces.flatten_space(space)
    if not isinstance(flat, spaces.Box):
        raise BadInput(
            f"domain.env = {env!r}: its observations are {space}, which differ in size. Write "
            "your own domain (module:Class) for it"
        )
    return flat.shape[0], lambda raw: spaces.flatten(space, raw).astype(np.float64)


def _leave_out_forces(env: Any) -> None:
    """Makes an environment of MuJoCo step without `mj_rnePostConstraint`.

    That function computes only accelerations and forces of bodies, which the next step does not
    use.
    """
    from mujoco import mj_step

    model, data, control = env.model, env.data, env.data.ctrl

    def do_simulation(action: Floats, frames: int) -> None:
        control[:] = action
        mj_step(model, data, frames)

    env.do_simulation = do_simulation


def _why_not_new(task: config.Gymnasium, space: spaces.Space, actions: Actions) -> str:
    """Returns why a new run cannot have this value of `clip_actions`; empty where it can.

    The id of a run does not depend on the action space, which only the environment knows.
    """
    if task.clip_actions and not actions.one_sided:
        return (
            f"domain.clip_actions = true has no effect, but would make a new run: no action of "
            f"{task.env} has exactly one bound. Leave it out"
        )
    if actions.one_sided and not task.clip_actions:
        places = ", ".join(map(str, actions.one_sided))
        return (
            f"domain.env = {task.env!r}: component {places} of its actions has only one bound "
            f"({space}), which a policy would leave. Set domain.clip_actions: true"
        )
    return ""


class _Episode(NamedTuple):
    """A record of an episode or an unroll, before it is converted to single precision."""

    observations: Floats
    actions: Floats
    rewards: Floats
    ends: Floats

    def seen_by(self, normalizer: Normalizer | None) -> "_Episode":
        """Returns it with the observations that a policy sees, also those after the last steps."""
        if normalizer is None:
            return self
        return self._replace(observations=normalizer.all(self.observations))


class GymnasiumTask:
    """An environment and a policy. The objective is the return, the sum of the rewards.

    The results equal those of a fresh `gymnasium.make` for every episode, bit for bit. An
    evaluation fails if the policy acted on NaN, or an episode without a limit has `MAX_STEPS`.

    Attributes:
        why_not_new: Why no new run can use the task; empty where one can.

    Further attributes: see `qdsweep.domains.base.Domain`.
    """

    def __init__(self, task: config.Gymnasium) -> None:
        """Makes the environment and the policy.

        Args:
            task: The settings.

        Raises:
            BadInput: The environment is unknown, lacks a dependency, refuses its arguments, or
                has spaces that do not fit the policy or the measures.
        """
        self._task = task
        self._spec = find_spec(task.env)
        self._reset = make_reset(self._spec)
        limit = task.max_episode_steps or self._spec.max_episode_steps
        # Wrappers may skip steps or play several, so the environment inside counts its own.
        inside = limit if task.wrappers else -1
        self._is_limited = limit is not None
        self._limit = (None if task.wrappers else limit) if self._is_limited else MAX_STEPS
        self._make = partial(make_env, self._spec, task.env_kwargs, task.wrappers, inside)
        env = self._make()
        size, self._vector = make_vector(env.observation_space, task.env)
        self._actions = make_actions(env.action_space, task.env, clip=task.clip_actions)
        self.why_not_new = _why_not_new(task, env.action_space, self._actions)
        check_components(task.measures, task.env, size, self._actions.size)
        self._own_measures = load_own_measures(task.measures)
        self._ground = make_ground(env, task)
        self._policy = Policy(task.policy, size, self._actions.size)
        is_reusable = type(env).__module__.startswith(_KEPT)  # a wrapper has another module
        self._env = env if is_reusable else None
        if type(env).__module__.startswith(_WITHOUT_FORCES):
            _leave_out_forces(env)
        if not is_reusable:
            env.close()
        # Each with its last observation.
        self._live: LiveEpisodes[tuple[gym.Env, Any]] = LiveEpisodes(self._play_again)
        self._free: list[gym.Env] = []
        self.solution_dim = self._policy.solution_dim
        self.measures = {measure.label: measure.range for measure in task.measures}
        self.objective_range = task.objective_range
        self.fields = episode_fields(task.episodes)
        if task.normalize_observations:
            self.fields |= {"observation_mean": (size,), "observation_std": (size,)}
            self.context_dim = 1 + 2 * size
        if isinstance(env.action_space, spaces.Box | spaces.Discrete):
            self.actor = self._policy.actor(self._actions)

    def xavier(self, seed: np.random.SeedSequence) -> Floats:
        """Draws a starting point ``(d,)`` of a search, see `Policy.xavier`."""
        return self._policy.xavier(seed)

    def evaluate(
        self,
        solutions: Floats,
        seeds: Seeds,
        context: Floats | None = None,
        *,
        experience: bool = False,
        exploration: Exploration | None = None,
        unroll: Unroll | None = None,
    ) -> Evaluation:
        """Evaluates a batch.

        Args:
            solutions: ``(n, d)`` weights of the policy, see `Policy.network`.
            seeds: ``(n,)`` seeds. A single episode is reset with the seed of its evaluation. Each
                of several episodes is reset with a child of it.
            context: See `Normalizer`; None or zeros before the first observation.
            experience: Whether to return the records of the episodes.
            exploration: How the policies explore; None for greedy ones.
            unroll: The episodes that rows continue; None where all play whole ones.

        Returns:
            Objectives ``(n,)``, measures ``(n, m)`` and environment steps ``(n,)``. Records have
            the observations as the policy saw them. Where rows explore, greedy ones add nothing to
            the context: they judge a learner's policy, as in an evaluation environment.
        """
        count_of, join = (tally, merge) if self._task.merges_moments else (tally_of_squares, np.add)
        normalizer = None
        if self._task.normalize_observations:
            context = np.zeros(self.context_dim) if context is None else context
            normalizer = Normalizer(context, adds_squares=not self._task.merges_moments)
        if unroll is not None:
            assert exploration is not None

            def go_on(row: int, token: Token) -> tuple[Record, int, Floats | None]:
                choice = make_choice(self._actions, exploration, row, int(seeds[row]))
                own = solutions[row], int(seeds[row]), token
                record, seen = self._unroll(*own, unroll, normalizer, choice)
                return record, len(seen), None if normalizer is None else count_of(seen)

            return evaluate_unrolls(
                self, solutions, seeds, exploration, unroll, go_on, self._live, context
            )
        count, episodes = len(solutions), self._task.episodes
        played: list[_Episode] = []

        def play(solution: Floats, seed: int) -> list[float]:
            choice = make_choice(self._actions, exploration, len(played) // episodes, seed)
            results, record = self._play(solution, seed, normalizer, choice)
            played.append(record)
            return results

        result = evaluate_episodes(play, solutions, seeds, episodes)
        rows = [played[row * episodes : (row + 1) * episodes] for row in range(count)]
        result = result._replace(
            steps=np.array(
                [sum(len(episode.rewards) for episode in row) for row in rows], dtype=np.int64
            ),
            experience=[
                join_records([episode.seen_by(normalizer) for episode in row]) for row in rows
            ]
            if experience
            else None,
        )
        if normalizer is None:
            return result
        tallies = np.array(
            [reduce(join, [count_of(each.observations[:-1]) for each in row]) for row in rows]
        )
        if exploration is not None:
            tallies[~exploration.scale.any(axis=1)] = 0.0
        own = {"mean": normalizer.mean, "std": normalizer.std}
        fields = {f"observation_{n}": np.tile(v, (count, 1)) for n, v in own.items()}
        return result._replace(
            fields=result.fields | fields,
            tally=tallies,
        )

    def _play(
        self, solution: Floats, seed: int, normalizer: Normalizer | None, choice: Choice
    ) -> tuple[list[float], _Episode]:
        env = self._env or self._make()
        network, choose = self._policy.network(solution), choice.action
        ground, limit, own = self._ground, self._limit, self._own_measures
        is_number = self._actions.discrete
        total, seen, done, rewards, touching, infos = 0.0, [], [], [], [], []
        raw = self._reset(env, seed)
        ended = False
        while not ended:
            observation = self._vector(raw)
            seen.append(observation)
            if normalizer is not None:
                observation = normalizer(observation)
            action = choose(network(observation))
            given = action if is_number else action.copy()  # an env may write into it
            raw, reward, terminated, truncated, info = env.step(given)
            rewards.append(float(reward))
            total += rewards[-1]
            done.append(action)
            if ground is not None:
                touching.append(ground(env))
            if own:
                infos.append(copied(info))  # an env may reuse it
            ended = terminated or truncated or len(done) == limit
        seen.append(self._vector(raw))
        terminated = bool(terminated)
        if env is not self._env:
            env.close()
        if not (terminated or truncated):
            self._require_limit()
        observations, actions = np.array(seen), self._actions.vectors(done)
        ends = np.full(len(done), float(GOES_ON))
        ends[-1] = TERMINATED if terminated else CUT
        # The last one may be the reason for the end.
        self._require_numbers(observations[:-1], "step")
        episode = Episode(observations, actions, np.array(rewards), infos)
        measures = measure_episode(self._task.measures, episode, own, touching)
        learned = actions if choice.outputs is None else np.array(choice.outputs)
        return [total, *measures], _Episode(observations, learned, episode.rewards, ends)

    def _require_limit(self) -> None:
        """Refuses an episode that has reached its limit, if only `MAX_STEPS` limits it."""
        if not self._is_limited:
            raise RuntimeError(
                f"{self._task.env}: the episode has not ended after {MAX_STEPS:,} steps, and the "
                "task has no limit. Set domain.max_episode_steps"
            )

    def _require_numbers(self, observations: Floats, what: str) -> None:
        """Refuses ``(t, o)`` observations before steps, or what else they are, if one is NaN."""
        if (unknown := np.isnan(observations).any(axis=1)).any():
            number = int(unknown.argmax())
            raise RuntimeError(f"{self._task.env}: the observation of {what} {number} is NaN")

    def _unroll(
        self,
        solution: Floats,
        seed: int,
        token: Token,
        unroll: Unroll,
        normalizer: Normalizer | None,
        choice: Choice,
    ) -> tuple[Record, Floats]:
        """Plays the decisions of an unroll, from a token on.

        Returns:
            Its record, and ``(t, o)`` the environment's observations before its steps.
        """
        network, choose = self._policy.network(solution), choice.action
        limit, is_number, kind = self._limit, self._actions.discrete, self._actions.kind
        fresh, vector = new_episode_seeds(seed), self._vector
        episode, length = token.seed, len(token.actions)
        env, raw = self._live.take(token) if episode is not None else (None, None)
        seen, rewards, ends, start = [], [], [], 0
        done: list[Any] = []
        for _ in range(unroll.decisions):
            if env is None:
                env, episode, length, start = self._take(), next(fresh), 0, len(done)
                raw = self._reset(env, episode)
            observation = vector(raw)
            seen.append(observation)
            if normalizer is not None:
                observation = normalizer(observation)
            action = choose(network(observation))
            given = action if is_number else action.copy()  # an env may write into it
            raw, reward, terminated, truncated, _ = env.step(given)
            rewards.append(reward)
            done.append(action)
            length += 1
            ended = terminated or truncated or length == limit
            ends.append(TERMINATED if terminated else CUT if ended else GOES_ON)
            if not ended:
                continue
            if not (terminated or truncated):
                self._require_limit()
            seen.append(vector(raw))
            self._release(env)
            env = None
        going = Token()
        if env is not None:
            seen.append(vector(raw))
            ends[-1] = CUT  # learners continue the return with the value of the last observation
            assert episode is not None
            going = paused(episode, () if start else token.actions, done[start:], kind)
            for surplus, _ in self._live.keep(going, (env, raw), unroll.episodes):
                self._release(surplus)
        observations = np.array(seen)
        after = np.flatnonzero(ends) + np.arange(1, np.count_nonzero(ends) + 1)
        before = np.delete(observations, after, axis=0)
        self._require_numbers(before, "decision (of this unroll)")
        learned = (
            self._actions.vectors(done) if choice.outputs is None else np.array(choice.outputs)
        )
        played = _Episode(observations, learned, np.array(rewards, float), np.array(ends, float))
        return join_records([played.seen_by(normalizer)])._replace(token=going), before

    def _play_again(self, token: Token) -> tuple[gym.Env, Any]:
        """Returns an environment in the state of a paused episode, and its last observation."""
        assert token.seed is not None
        env = self._take()
        raw = self._reset(env, token.seed)
        for action in token.actions:
            raw, *_ = env.step(int(action) if self._actions.discrete else action.copy())
        return env, raw

    def _take(self) -> gym.Env:
        """Returns an environment for an episode that may be paused."""
        if self._free:
            return self._free.pop()
        env = self._make()
        if type(env).__module__.startswith(_WITHOUT_FORCES):
            _leave_out_forces(env)
        return env

    def _release(self, env: gym.Env) -> None:
        """Keeps an environment for another episode, if it can be reset."""
        if self._env is None:
            env.close()
        else:
            self._free.append(env)
