"""`qdsweep check --algorithm` accepts correct algorithms, and names the faults of others."""

import pytest
import yaml
from composing import installed, with_algorithm
from own_parts import HOSTILE, LAB
from refusals import names_all, refused
from support import TINY

from qdsweep.algorithms.check import check_algorithm, small_experiment, try_out
from qdsweep.algorithms.own import part_of
from qdsweep.cli import main
from qdsweep.config.compose import compose


@pytest.fixture(autouse=True)
def lab(plugins):
    plugins("lab", LAB)
    plugins("hostile", HOSTILE)


GOOD = ["lab:make", "lab:Counting", "lab:Bare", "lab:Everything", "lab:Batches"]
EXAMPLES = ["annealed:Annealed", "floor:Floor", "curious:Curious"]
# Algorithms that train during evaluations, or have several batches per iteration.
LEARNERS = ["ga", "cma_mega_es", "me_es", "cma_mega_td3_es", "td3", "pga_me"]
LEARNERS += ["ppo", "a2c", "dqn", "apex_dqn", "impala"]
SHORT = {"n_steps": 200, "n_epochs": 2}


@pytest.mark.parametrize("name", [*GOOD, *EXAMPLES, "map_elites_line", "arm_own_archive"])
def test_what_is_sound_is_fit_for_use(name):
    check_algorithm(small_experiment(name, None, {}, "--set"))


TERSE = """
from ribs.emitters import GaussianEmitter


class Terse(GaussianEmitter):
    def __init__(self, archive, x0, batch_size, seed):
        super().__init__(archive, sigma=1.0, x0=x0, batch_size=batch_size, seed=seed)

    def tell(self, solution, objective, measures, add_info):
        pass
"""


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("terse:Terse", ("terse:Terse", "tell", "**fields", "evaluation_seed")),
        ("lab:make", ("evaluation_seed", "extra_fields")),  # its archive has no such field
        ("annealed:Annealed", ()),
    ],
)
def test_the_use_of_a_class_and_elites_without_their_seeds_are_named(plugins, capsys, name, names):
    plugins("terse", TERSE)
    assert main(["check", "--algorithm", name]) == 0
    printed = capsys.readouterr().out
    names_all(printed, name, *names)
    assert names or "evaluation_seed" not in printed
    use = yaml.safe_load(printed.splitlines()[-1].partition(": ")[2])
    assert use == {"algorithm": part_of(name)}
    assert [part.type for part in compose(TINY | use).algorithm.own_parts.values()] == [name]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_resumes_from_a_pickle_between_any_two_calls(name):
    short = SHORT if name == "ppo" else {}
    check_algorithm(installed(with_algorithm(name, TINY, batch_size=13, **short)))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("NoBounds", ("'lower_bounds'", "hostile.py")),
        ("Unpicklable", ("lambda",)),
        ("Global", ("np.random",)),
        ("seeded", ("np.random",)),
        ("Wide", ("ask", "(3, 11)", "(n, 10)")),
        ("Flat", ("ask", "(10,)")),
        ("Nan", ("ask",)),
        ("Gone", ("tell", "RuntimeError: no memory of it")),
        ("nothing", ("NoneType", "ask", "tell", "archive")),
        ("raises", ("ValueError: no licence",)),
        ("late", ("archive", "RuntimeError: not yet")),
        ("leaves", ("SystemExit: 0",)),
        ("needs", ("'gpu'",)),
        ("narrow", ("lower_bounds", "[-1.0, -1.0]", "`ranges`")),
        ("small", ("solution_dim = 3", "10")),
        ("Abstract", ("metrics", "tell")),
        ("Endless", ("ask", "None")),
        ("Unmeasured", ("metrics", "num_elites")),
        ("Missing", ("hostile",)),
        ("Hides", ("history", "archive.objectives")),
    ],
)
def test_what_is_wrong_is_named(name, names):
    with refused(name, *names):
        check_algorithm(small_experiment(f"hostile:{name}", None, {}, "--set"))


def test_a_quick_look_sees_what_constructors_refuse():
    parts = {"archive": {"type": "grid"}, "emitters": [{"type": "hostile:NoBounds"}]}
    with refused("lower_bounds"):
        try_out(compose({**TINY, "algorithm": parts}))


# The order of a set of strings differs between processes. Code may also end its process.
ELSEWHERE = """
import os
import zlib
from lab import Bare

class Ordered(Bare):
    def ask(self):
        names = {f"parameter {number}" for number in range(99)}
        return super().ask() + zlib.crc32("".join(names).encode()) / 2**32

class Abrupt(Bare):
    def ask(self):
        os._exit(0)

class Interrupts(Bare):
    def ask(self):
        raise KeyboardInterrupt
"""


@pytest.mark.parametrize(
    ("words", "code", "names"),
    [
        (("lab:make", "arm", "--set", "sigma=0.1"), 0, ("lab:make", "arm")),
        (("hostile:raises",), 2, ("no licence",)),
        (("map_elits",), 2, ("'map_elites'",)),
        (("elsewhere:Ordered",), 2, ("Ordered", "hash()")),
        (("elsewhere:Abrupt",), 2, ("Abrupt", "0", "os._exit")),
        (("elsewhere:Interrupts",), 2, ("Interrupts", "SIGINT", "KeyboardInterrupt")),
    ],
)
def test_the_command_runs_it_in_another_process_too(plugins, capsys, words, code, names):
    plugins("elsewhere", ELSEWHERE)
    assert main(["check", "--algorithm", *words]) == code
    printed = capsys.readouterr()
    names_all(printed.err if code else printed.out, *names)
    assert not (code and printed.out)
