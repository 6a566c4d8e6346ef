"""Atari games as domains: a policy plays episodes in the emulator, which are measured."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from ale_py import Action
from gymnasium import spaces
from numpy.typing import NDArray

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
)
from qdsweep.domains.episodes import (
    check_components,
    episode_fields,
    evaluate_episodes,
    load_own_measures,
    measure_episode,
)
from qdsweep.domains.experience import join_records
from qdsweep.domains.policies import Choice, Policy, make_actions, make_choice
from qdsweep.domains.unrolls import LiveEpisodes, evaluate_unrolls, new_episode_seeds, paused
from qdsweep.features.atari.domains import Atari, Convolutional
from qdsweep.features.atari.screens import ConvolutionalPolicy, Emulator, Screens

_BYTES = 128
# Policies and learners see a byte of memory as this number, equal in both precisions.
_SCALED = (np.arange(256) / 255).astype(np.float32)


class _Memory:
    """The console's memory as an observation; `Screens` has the same methods."""

    inputs = _BYTES
    stack = 1

    def __init__(self, emulator: Emulator, frame_skip: int) -> None:
        self._ale, self._skip = emulator.ale, frame_skip
        self._table = _SCALED.astype(np.float64)
        self._seen = np.empty(_BYTES)

    def begin(self, *, keep: bool = False) -> None:
        """Does nothing, as there is nothing to prepare."""

    def act(self, action: Action) -> int:
        """Plays an action for its frames, and returns the reward."""
        act, reward = self._ale.act, 0
        for _ in range(self._skip):
            reward += act(action)
        return reward

    def skip(self, action: Action) -> None:
        """Plays an action that is not followed by a `look`."""
        self.act(action)

    def look(self, memory: NDArray[np.uint8]) -> Floats:
        """Returns the observation ``(128,)``, which the next call overwrites."""
        return self._table.take(memory, None, self._seen, "clip")


class _Episode(NamedTuple):
    """A played episode of t decisions.

    Attributes:
        memory: ``(t + 1, 128)`` the memory at the start and after each; the next episode
            overwrites it.
        actions: The index of each action.
        rewards: The reward of each.
        frames: Number of played frames.
        is_cut: Whether the limit of frames ended it.
        observations: ``(t + 1, s)`` the record's observations, if it is recorded.
    """

    memory: NDArray[np.uint8]
    actions: list[int]
    rewards: list[int]
    frames: int
    is_cut: bool
    observations: Any = None


class AtariGame:
    """A game and a policy. The objective is the return, the sum of the game's own rewards.

    The results equal those of a fresh emulator for every episode, bit for bit. Its environment
    steps are frames. A record has one row for each decision of the policy.

    Attributes: see `qdsweep.domains.base.Domain`.
    """

    def __init__(self, game: Atari) -> None:
        """Loads the game.

        Args:
            game: The settings.

        Raises:
            BadInput: The measures or the limit of frames do not fit.
        """
        on_screen = game.observation == "screen"
        self._game = game
        self._emulator = Emulator(game)
        ale = self._ale = self._emulator.ale
        self._buttons: list[Action] = (
            ale.getLegalActionSet() if game.full_action_space else ale.getMinimalActionSet()
        )
        self._actions = make_actions(spaces.Discrete(len(self._buttons)), game.game)
        check_components(game.measures, game.game, _BYTES, len(self._buttons))
        self._own_measures = load_own_measures(game.measures)
        self._eyes = self._look_at(self._emulator)
        self._precision = np.float32 if on_screen else np.float64
        self._policy: Policy | ConvolutionalPolicy
        if isinstance(game.policy, Convolutional):
            self._policy = ConvolutionalPolicy(game.policy.network, len(self._buttons))
            if game.pixels == "bytes":
                self.actor = self._policy.actor
        else:
            self._policy = Policy(game.policy, self._eyes.inputs, len(self._buttons))
            if not on_screen:
                self.actor = self._policy.actor(self._actions)
        self._memory = np.empty((1, _BYTES), np.uint8)  # grows to the longest episode's
        self._live: LiveEpisodes[tuple[Emulator, Screens | _Memory]] = LiveEpisodes(
            self._play_again
        )
        self._free: list[tuple[Emulator, Screens | _Memory]] = []
        self.frame_skip = game.frame_skip
        self.solution_dim = self._policy.solution_dim
        self.measures = {measure.label: measure.range for measure in game.measures}
        self.objective_range = game.objective_range
        self.fields = episode_fields(game.episodes)

    def xavier(self, seed: np.random.SeedSequence) -> Floats:
        """Draws a starting point ``(d,)`` of a search, see `draw_xavier`."""
        return self._policy.xavier(seed)

    def evaluate(
        self,
        solutions: Floats,
        seeds: Seeds,
        *,
        experience: bool = False,
        exploration: Exploration | None = None,
        unroll: Unroll | None = None,
    ) -> Evaluation:
        """Evaluates a batch.

        Args:
            solutions: ``(n, d)`` weights of the policy.
            seeds: ``(n,)`` seeds. A single episode has the seed of its evaluation. Each of
                several episodes has a child of it.
            experience: Whether to return the records of the episodes.
            exploration: How the policies explore; None for greedy ones.
            unroll: The episodes that rows continue; None where all play whole ones.

        Returns:
            Objectives ``(n,)``, measures ``(n, m)`` and frames ``(n,)``.
        """
        if unroll is not None:
            assert exploration is not None

            def go_on(row: int, token: Token) -> tuple[Record, int, None]:
                choice = make_choice(self._actions, exploration, row, int(seeds[row]))
                return *self._unroll(solutions[row], int(seeds[row]), token, unroll, choice), None

            return evaluate_unrolls(self, solutions, seeds, exploration, unroll, go_on, self._live)
        count, episodes = len(solutions), self._game.episodes
        frames: list[int] = []
        records: list[Record] = []

        def play(solution: Floats, seed: int) -> list[float]:
            choice = make_choice(self._actions, exploration, len(frames) // episodes, seed)
            played = self._play(solution, seed, choice, records=experience)
            frames.append(played.frames)
            if experience:
                records.append(self._record(played))
            return [float(sum(played.rewards)), *self._measure(played)]

        result = evaluate_episodes(play, solutions, seeds, episodes)
        return result._replace(
            steps=np.array(frames, dtype=np.int64).reshape(count, episodes).sum(axis=1),
            experience=[
                join_records(records[row : row + episodes], self.actor.kind)
                for row in range(0, count * episodes, episodes)
            ]
            if experience
            else None,
        )

    def render(self, solution: Floats, seed: int) -> Iterator[NDArray[np.uint8]]:
        """Yields a picture before each decision of an episode, and one at its end.

        Args:
            solution: ``(d,)`` weights of the policy.
            seed: The episode's seed.
        """
        played = self._play(solution, seed, make_choice(self._actions, None, 0, seed))
        self._emulator.start(seed)
        yield self._ale.getScreenRGB()
        for action in played.actions:
            self._eyes.act(self._buttons[action])
            yield self._ale.getScreenRGB()

    def _play(
        self, solution: Floats, seed: int, choice: Choice, *, records: bool = False
    ) -> _Episode:
        ale, eyes, memory, buttons = self._ale, self._eyes, self._memory, self._buttons
        network = self._policy.network(solution.astype(self._precision, copy=False))
        choose, look, act, is_over = choice.action, eyes.look, eyes.act, ale.game_over
        actions: list[int] = []
        rewards: list[int] = []
        self._emulator.start(seed)
        eyes.begin(keep=records)
        now = memory[0]
        ale.getRAM(now)
        while not is_over():
            action = choose(network(look(now)))
            actions.append(action)
            rewards.append(act(buttons[action]))
            if len(actions) == len(memory):
                memory = self._memory = np.concatenate([memory, memory])
            now = memory[len(actions)]
            ale.getRAM(now)
        frames, is_cut = ale.getEpisodeFrameNumber(), not ale.game_over(with_truncation=False)
        memory = memory[: len(actions) + 1]
        seen = None
        if records:
            seen = np.stack(eyes.kept) if isinstance(eyes, Screens) else _SCALED[memory]
        return _Episode(memory, actions, rewards, frames, is_cut, seen)

    def _measure(self, played: _Episode) -> list[float]:
        actions, rewards = self._actions.vectors(played.actions), np.array(played.rewards, float)
        episode = Episode(played.memory, actions, rewards, [])
        measures = self._game.measures
        return measure_episode(measures, episode, self._own_measures, length=played.frames)

    def _record(self, played: _Episode) -> Record:
        ends = np.full(len(played.rewards), GOES_ON, dtype=np.uint8)
        ends[-1] = CUT if played.is_cut else TERMINATED
        return Record(
            played.observations,
            self._actions.vectors(played.actions).astype(np.float32),
            np.array(played.rewards, dtype=np.float32),
            ends,
        )

    def _unroll(
        self, solution: Floats, seed: int, token: Token, unroll: Unroll, choice: Choice
    ) -> tuple[Record, int]:
        """Plays the decisions of an unroll from a token on, and returns the number of frames."""
        network = self._policy.network(solution.astype(self._precision, copy=False))
        choose, buttons, fresh = choice.action, self._buttons, new_episode_seeds(seed)
        now, before, frames, start = self._memory[0], 0, 0, 0
        seen: list[NDArray[Any]] = []
        actions: list[int] = []
        rewards: list[int] = []
        ends: list[int] = []
        episode = token.seed
        emulator, eyes = self._live.take(token) if episode is not None else self._take()
        if episode is not None:
            frames -= emulator.ale.getEpisodeFrameNumber()
            before = eyes.stack - 1
            if isinstance(eyes, Screens):
                seen.append(eyes.keep())
        while len(actions) < unroll.decisions:
            ale = emulator.ale
            if episode is None:
                episode, start = next(fresh), len(actions)
                emulator.start(episode)
                eyes.begin(keep=True)
            ale.getRAM(now)
            if not isinstance(eyes, Screens):
                seen.append(_SCALED[now][np.newaxis])
            action = choose(network(eyes.look(now)))
            actions.append(action)
            rewards.append(eyes.act(buttons[action]))
            over = ale.game_over()
            is_cut = over and not ale.game_over(with_truncation=False)
            ends.append(CUT if is_cut else TERMINATED if over else GOES_ON)
            if not over and len(actions) < unroll.decisions:
                continue
            frames += ale.getEpisodeFrameNumber()
            if isinstance(eyes, Screens):
                seen.append(np.stack(eyes.kept))
            else:
                ale.getRAM(now)
                seen.append(_SCALED[now][np.newaxis])
            episode = None if over else episode
        going = Token()
        if episode is None:
            self._free.append((emulator, eyes))
        else:
            ends[-1] = CUT  # learners continue the return with the value of the last observation
            before_it = () if start else token.actions
            going = paused(episode, before_it, actions[start:], self._actions.kind)
            self._free += self._live.keep(going, (emulator, eyes), unroll.episodes)
        vectors = self._actions.vectors(actions)
        arrays = np.concatenate(seen), vectors, np.array(rewards), np.array(ends)
        record = join_records([arrays], self.actor.kind)
        return record._replace(before=before, token=going), frames

    def _play_again(self, token: Token) -> tuple[Emulator, "Screens | _Memory"]:
        """Returns an emulator in the state of a paused episode."""
        assert token.seed is not None
        emulator, eyes = self._take()
        emulator.start(token.seed)
        eyes.begin()
        for left in range(len(token.actions), 0, -1):
            act = eyes.skip if left > eyes.stack else eyes.act
            act(self._buttons[token.actions[-left]])
        return emulator, eyes

    def _take(self) -> tuple[Emulator, "Screens | _Memory"]:
        """Returns an emulator for an episode that may be paused."""
        if self._free:
            return self._free.pop()
        emulator = Emulator(self._game)
        return emulator, self._look_at(emulator)

    def _look_at(self, emulator: Emulator) -> "Screens | _Memory":
        """Returns the observations of an emulator."""
        game = self._game
        if game.observation == "screen":
            return Screens(emulator, game.frame_skip, rounds=game.pixels == "bytes")
        return _Memory(emulator, game.frame_skip)
