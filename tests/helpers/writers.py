"""User code that writes into all that it gets and has returned; without `writes`, it does not."""

WRITERS = '''
import gymnasium as gym
import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import EmitterBase
from qdsweep.algorithms.base import Algorithm, Candidates
from qdsweep.algorithms.ribs.archives import ResultArchive
from qdsweep.domains.base import CUT, Actor, Evaluation, Record


def spoil(*values):
    """Writes into arrays, also read-only views, as C code and torch.from_numpy do."""
    for value in values:
        if isinstance(value, np.ndarray):
            if not value.flags.writeable:
                value.flags.writeable = True
            value[...] = 0.5 if value.dtype.kind == "f" else 1
        elif isinstance(value, dict):
            spoil(*value.values())
            value.clear()
        elif isinstance(value, list):
            spoil(*value)
            value.clear()
        elif isinstance(value, tuple):
            spoil(*value)


class Writer:
    """Returns the same arrays again and again, if it writes."""

    def __init__(self, writes):
        self.writes, self.returned = writes, {}

    def give(self, name, value):
        value = np.asarray(value)
        if not self.writes:
            return value
        buffer = self.returned.get(name)
        if buffer is None or buffer.shape != value.shape:
            buffer = self.returned[name] = value.copy()
        buffer[...] = value
        return buffer

    def spoil(self, *values):
        if self.writes:
            spoil(*values, *self.returned.values())


class Point(gym.Env):
    """A point on a plane."""

    def __init__(self, writes, limits, action="box"):
        self.hand, self.limit = Writer(writes), limits["x"][0]
        self.hand.spoil(limits)
        self.observation_space = gym.spaces.Box(-10, 10, (2,), np.float64)
        self.action_space = {
            "box": gym.spaces.Box(-1, 1, (2,), np.float32),
            "choices": gym.spaces.MultiDiscrete([3, 3]),
            "bits": gym.spaces.MultiBinary(2),
            "half": gym.spaces.Box(np.array([-1, -np.inf]), np.inf, (2,), np.float32),
        }[action]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = self.np_random.uniform(-1, 1, 2), 0
        return self.hand.give("observation", self.x), {}

    def step(self, action):
        x = self.x + np.clip(0.1 * action.astype(float), -1, 1)
        self.hand.spoil(action)
        self.x, self.t = x, self.t + 1
        info = {"x": self.hand.give("info", x), "more": [self.hand.give("more", x * 2)]}
        end = self.hand.give("end", self.t >= 8)
        reward = self.hand.give("reward", self.limit - abs(x).sum())
        return self.hand.give("observation", x), reward, False, end, info

    def close(self):
        self.hand.spoil()


gym.register("Point-v0", Point)


class Wrapped(gym.Wrapper):
    def __init__(self, env, writes, scale):
        super().__init__(env)
        self.hand, self.scale = Writer(writes), np.array(scale)
        self.hand.spoil(scale)

    def step(self, action):
        x, *rest = self.env.step((action * self.scale).astype(action.dtype))
        self.hand.spoil(action)
        return self.hand.give("observation", x), *rest


def _seen(episode):
    seen = [info["x"].sum() + info["more"][0].sum() for info in episode.infos]
    return np.mean(seen) + episode.actions.mean() + episode.observations.mean()


def seen(episode):
    return _seen(episode)


def seen_and_spoiled(episode):
    value = _seen(episode)
    spoil(*episode)
    return value


class Task:
    """A domain with all that a domain can have: gradients, a context, records, exploration."""

    solution_dim = 2
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)
    fields = {"first": (2,)}
    x0 = np.full(2, 0.25)

    def __init__(self, writes, centre):
        self.hand, self.centre = Writer(writes), np.array(centre["at"])
        self.hand.spoil(centre)
        self.actor = Actor(((1, 2),), False, "tanh", np.array([-1.0]), np.array([1.0]))

    def evaluate(self, solutions, seeds, *, experience=False, exploration=None):
        noise = np.array([np.random.default_rng(int(s)).normal(size=2) for s in seeds])
        scale = 0.0 if exploration is None else exploration.scale
        x = solutions + 0.01 * noise * (1 + scale)
        give = self.hand.give
        parts = {
            "objective": -((x - self.centre) ** 2).sum(axis=1),
            "measures": x,
            "first": solutions.copy(),
            "steps": np.full(len(x), 3),
        }
        self.hand.spoil(solutions, seeds, exploration)
        records = [self.record(row, n) for n, row in enumerate(x)] if experience else None
        given = {name: give(name, value) for name, value in parts.items()}
        fields = {"first": given["first"]}
        objective, measures, steps = given["objective"], given["measures"], given["steps"]
        return Evaluation(objective, measures, fields, experience=records, steps=steps)

    def record(self, x, n):
        parts = Record(
            np.linspace(x, 2 * x, 4).astype(np.float32),
            np.tanh(np.linspace(x[:1], -x[:1], 3)).astype(np.float32),
            np.linspace(*x, 3).astype(np.float32),
            np.array([0, 0, CUT], np.uint8),
        )
        given = zip(Record._fields, parts[:4], strict=False)
        return Record(*(self.hand.give((name, n), part) for name, part in given))

    def jacobian(self, solutions):
        jacobian = np.zeros((len(solutions), 3, 2))
        jacobian[:, 0] = -2 * (solutions - self.centre)
        jacobian[:, 1:] = np.eye(2)
        self.hand.spoil(solutions)
        return self.hand.give("jacobian", jacobian)


class Learned(Task):
    """A domain that learns from all evaluations."""

    context_dim = 2

    def evaluate(self, solutions, seeds, context):
        result = Task.evaluate(self, solutions - 0.001 * context, seeds)
        tally = self.hand.give("tally", np.array(result.measures))
        if self.hand.writes:
            spoil(context)
        return result._replace(tally=tally)


class Emitter(EmitterBase):
    def __init__(self, archive, *, x0, batch_size, seed, writes, sigma):
        none = {"bounds": None, "lower_bounds": None, "upper_bounds": None}
        super().__init__(archive, solution_dim=len(x0), **none)
        self.hand, self.x0, self.sigma = Writer(writes), x0.copy(), sigma[0]
        self.rng, self.n = np.random.default_rng(seed), batch_size
        self.hand.spoil(x0, sigma)

    def ask(self):
        mean = self.x0 if self.archive.empty else self.archive.sample_elites(1)["solution"][0]
        drawn = mean + self.sigma * self.rng.normal(size=(self.n, len(self.x0)))
        return self.hand.give("solutions", drawn)

    def tell(self, solution, objective, measures, add_info, **fields):
        self.hand.spoil(solution, objective, measures, add_info, fields)


class Archive(GridArchive):
    """Its method `data` returns its own arrays."""

    def __init__(self, solution_dim, ranges, seed, writes, dims):
        super().__init__(solution_dim=solution_dim, dims=list(dims), ranges=ranges, seed=seed)
        self.hand = Writer(writes)
        self.hand.spoil(dims, ranges)

    def data(self, *given, **named):
        found = super().data(*given, **named)
        if not self.hand.writes or not isinstance(found, dict):
            return found
        return {name: self.hand.give(name, value) for name, value in found.items()}


class Own(Algorithm):
    """Asks twice an iteration, and changes its solutions while they are evaluated."""

    def __init__(self, solution_dim, ranges, x0, seed, writes):
        self.grid = GridArchive(solution_dim=solution_dim, dims=[9, 9], ranges=ranges, seed=seed)
        self.archive, self.rng = ResultArchive(self.grid), np.random.default_rng(seed)
        self.hand, self.x0, self.batch = Writer(writes), x0.copy(), 0
        self.hand.spoil(x0, ranges)

    def ask(self):
        self.batch = (self.batch + 1) % 3
        drawn = self.x0 + 0.5 * self.rng.normal(size=(12, len(self.x0)))
        if self.batch == 2:  # one solution for all rows
            drawn[:] = drawn[0]
            row = self.hand.give("row", drawn[:1])
            return Candidates(np.broadcast_to(row, drawn.shape))
        return Candidates(self.hand.give("solutions", drawn)) if self.batch else None

    def meanwhile(self):
        self.hand.spoil()

    def tell(self, candidates, evaluation):
        self.grid.add(candidates.solutions.copy(), evaluation.objective, evaluation.measures)
        self.hand.spoil(*candidates[2:], *evaluation)

    def metrics(self):
        return {**self.archive.metrics(), "restarts": 0}


def metric(archive, evaluation):
    data = archive.data()
    return data["objective"].sum() + archive.boundaries[0].sum() + evaluation.measures.sum()


def spoiled_metric(archive, evaluation):
    value = metric(archive, evaluation)
    spoil(archive.data(), archive.lower_bounds, archive.upper_bounds, archive.interval_size)
    spoil(*archive.boundaries, *evaluation, archive.best_elite, archive.dims)
    return value
'''
