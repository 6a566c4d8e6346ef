"""What no memory holds is refused, and nothing that has ever run."""

import pytest
from composing import presets
from small_runs import experiment
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.config.memory import require_memory_of
from qdsweep.errors import BadInput


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"archive.dims": [10**9, 10**9]}, "archive.dims = [1000000000, 1000000000]: an archive"),
        ({"batch_size": 10**15}, "batch_size = 1000000000000000: 2,000,000,000,000,000 solutions"),
        ({"domain.solution_dim": 10**8}, "algorithm.emitters.0.es = cma_es: a matrix"),
    ],
)
@pytest.mark.parametrize("anywhere", [False, True])
def test_what_no_machine_holds(changes, part, anywhere):
    with pytest.raises(BadInput) as error:
        require_memory_of(experiment(**changes), anywhere=anywhere)
    assert part in str(error.value) and str(error.value).endswith("; take a smaller one")


def test_what_another_machine_may_hold():
    large = experiment(**{"archive.dims": [10**5, 10**6]})  # 8 TB
    with pytest.raises(BadInput, match="this machine has"):
        require_memory_of(large)
    require_memory_of(large, anywhere=True)


def test_what_the_domain_alone_knows():
    with pytest.raises(BadInput, match=r"12 x 8|1,000,000,000,000 parameter"):
        require_memory_of(experiment(), solution_dim=10**12)


def test_the_greedy_episodes_of_a_learner_are_named_by_their_key():
    large = compose("rl_cartpole", {"algorithm.evaluation_episodes": 10**13})
    with pytest.raises(BadInput, match=r"^algorithm\.evaluation_episodes = 10000000000000: "):
        require_memory_of(large)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "dqn", "buffer_size": 10**13}, r"algorithm\.buffer_size = 10000000000000: "),
        ({"n_steps": 10**13}, r"algorithm\.n_steps = 10000000000000: "),
        ({"vf_hidden": [10**7, 10**7]}, r"algorithm\.vf_hidden = \[10000000, 10000000\]: "),
    ],
)
def test_what_a_learner_keeps_is_named_by_its_key(changes, message):
    large = compose("rl_cartpole", changes)
    for anywhere in (False, True):
        with pytest.raises(BadInput, match=f"^{message}"):
            require_memory_of(large, anywhere=anywhere)


@pytest.mark.parametrize("name", ["impala", "dqn", "apex_dqn"])
def test_a_return_may_be_longer_than_any_episode(name):
    require_memory_of(compose("rl_cartpole", {"algorithm": name, "n_steps": 10**13}))


@pytest.mark.parametrize("name", presets("experiments"))
def test_presets_are_accepted(name):
    require_memory_of(compose(name))


def test_cells_of_a_user_s_own_archive_are_their_own_affair():
    emitters = [{"type": "gaussian"}]
    own = {"archive": {"type": "lab:Mine"}, "emitters": emitters}
    require_memory_of(compose({**TINY, "algorithm": own, "archive": {"dims": [10**9, 10**9]}}))
