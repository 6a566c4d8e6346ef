"""The private names of stable-baselines3: without one of them, the import ends in one sentence."""

import importlib
import inspect

import pytest
from refusals import names_all

from qdsweep.errors import QdsweepError

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
NAMES = (
    "PPO(_init_setup_model)",
    "DQN._setup_model",
    "A2C._update_learning_rate",
    "DQN._current_progress_remaining",
    "NStepReplayBuffer._get_samples",
)


def lose(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renames an attribute, or an argument, of stable-baselines3."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer

    if "(" in name:
        lost = name.partition("(")[2].rstrip(")")
        signature = inspect.signature(PPO)
        kept = [each for each in signature.parameters.values() if each.name != lost]
        changed = signature.replace(parameters=kept)
        monkeypatch.setattr(PPO, "__signature__", changed, raising=False)
        return
    name = name.partition(".")[2]
    if name == "_current_progress_remaining":
        first = BaseAlgorithm.__init__

        def without(self, *given, **further):
            first(self, *given, **further)
            del self._current_progress_remaining

        monkeypatch.setattr(BaseAlgorithm, "__init__", without)
        return
    from stable_baselines3 import A2C, DQN

    for owner in (A2C, DQN, PPO, NStepReplayBuffer, ReplayBuffer):
        for parent in owner.__mro__:
            if name in vars(parent):
                monkeypatch.delattr(parent, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_name_ends_the_import_with_both_versions_and_the_remedy(name, monkeypatch):
    import stable_baselines3

    from qdsweep.features.rl.learners import internals

    lose(name, monkeypatch)
    with pytest.raises(QdsweepError) as error:
        importlib.reload(internals)
    names_all(str(error.value), name, stable_baselines3.__version__, internals._SEEN_IN, "pip")
