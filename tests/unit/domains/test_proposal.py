"""`init --gym` proposes ranges that contain what random policies did."""

import json

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qdsweep.config.domain import Gymnasium
from qdsweep.config.files import read_yaml
from qdsweep.domains import make_domain
from qdsweep.domains.proposal import _range, _text, propose

CENTERS = st.one_of(st.floats(-1e15, 1e15), st.sampled_from([2e5, 1.7e9, 0.0, -1e-7]))
FAR = """
import gymnasium as gym, numpy as np
from gymnasium import spaces
class Far(gym.Env):
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (1,), np.float64)
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.v, self.t = self.np_random.uniform(-1, 1), 0
        return self._see(), {}
    def _see(self):
        return np.array([200000.0 + self.v, self.v])
    def step(self, action):
        self.v, self.t = self.v + 0.1 * float(action[0]), self.t + 1
        return self._see(), 20000.0 + 1e-2 * self.v, False, self.t >= 10, {}
gym.register("Far-v0", Far)
"""


@given(CENTERS, st.lists(st.floats(-1, 1), min_size=2, max_size=5), st.floats(1e-6, 1e6))
@example(2e5, [-0.3, 0.2], 1.0)
@settings(derandomize=True, database=None, max_examples=300)
def test_the_ends_of_a_range_are_apart_from_the_values_in_its_file(center, values, width):
    values = center + width * np.array(values)
    low, high = (float(_text(end)) for end in _range(values))
    assert low < values.min() <= values.max() < high
    if np.ptp(values) > 1e-9 * max(abs(center), 1.0):
        assert high - low < 2 * np.ptp(values)


def test_observations_far_from_zero_have_a_range_with_a_width(plugins, tmp_path):
    plugins("far", FAR)
    proposal = propose("far:Far-v0")
    (tmp_path / "far.yaml").write_text(proposal.yaml)
    domain = Gymnasium.model_validate_json(json.dumps(read_yaml(tmp_path / "far.yaml")))
    measures = {measure.label: measure.range for measure in domain.measures}
    for low, high in [*measures.values(), domain.objective_range]:
        assert low < high
    assert any(190_000 < low < high < 210_000 for low, high in measures.values())


def test_measures_differ_between_policies_more_than_between_their_episodes(tmp_path):
    """The mean angle of CartPole is due to the start, whatever a policy does."""
    for env in ("CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0"):
        path = tmp_path / f"{env}.yaml"
        path.write_text(propose(env).yaml)
        domain = make_domain(Gymnasium.model_validate_json(json.dumps(read_yaml(path))))
        solutions = np.random.default_rng(5).normal(size=(24, domain.solution_dim))
        seeds = np.arange(24, dtype=np.uint32)
        plays = np.stack([domain.evaluate(solutions, seeds + 100 * n).measures for n in range(5)])
        within, total = plays.var(axis=0, ddof=1).mean(axis=0), plays.reshape(-1, 2).var(axis=0)
        assert (within < 0.5 * total).all(), env
