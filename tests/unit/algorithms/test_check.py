"""`qdsweep check --algorithm`: what is wrong with an algorithm is said before a run finds out."""

import pytest
from own_parts import HOSTILE, LAB
from support import TINY

from qdsweep.algorithms.check import check_algorithm, small_experiment, try_out
from qdsweep.cli import main
from qdsweep.config.compose import compose
from qdsweep.errors import BadInput


@pytest.fixture(autouse=True)
def lab(plugins):
    plugins("lab", LAB)
    plugins("hostile", HOSTILE)


GOOD = ["lab:make", "lab:Counting", "lab:Bare", "lab:Everything"]
EXAMPLES = ["annealed:Annealed", "floor:Floor", "curious:Curious"]


@pytest.mark.parametrize("name", [*GOOD, *EXAMPLES, "map_elites_line", "arm_own_archive"])
def test_what_is_sound_is_fit_for_use(name):
    check_algorithm(small_experiment(name, None, {}, "--set"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoBounds", r"hostile:NoBounds cannot be made: .*'lower_bounds'.*hostile.py, line 11"),
        ("Unpicklable", "Unpicklable cannot be pickled.*a lambda"),
        ("Global", "Global: two runs of one seed differ, first in batch 1 of .*np.random"),
        ("seeded", "seeded: it does not go on bit for bit after it was pickled.*np.random"),
        ("Wide", r"Wide: ask gives solutions of the shape \(3, 11\); it should be \(n, 10\)"),
        ("Flat", r"Flat: ask gives solutions of the shape \(10,\)"),
        ("Nan", "Nan: ask gives solutions that are not all finite"),
        ("Gone", "Gone: tell, batch 1 of iteration 1, raised RuntimeError: no memory of it"),
        ("nothing", "hostile:nothing gives a NoneType without ask, tell, archive"),
        ("raises", "hostile:raises cannot be made: ValueError: no licence"),
        ("late", "hostile:late: its archive raised RuntimeError: not yet"),
        ("leaves", "hostile:leaves cannot be made: SystemExit: 0"),
        ("needs", "hostile:needs: missing a required argument: 'gpu'; its signature is"),
        ("narrow", r"its archive has lower_bounds \[-1.0, -1.0\].*take `ranges`"),
        ("small", "its archive has solution_dim = 3, but the domain has 10"),
        ("Abstract", "hostile:Abstract cannot be made: .*abstract methods? .*metrics.*tell"),
        ("Endless", "Endless: ask never gives None"),
        ("Unmeasured", "Unmeasured: metrics lacks num_elites"),
        ("Missing", "has no class or function Missing"),
    ],
)
def test_what_is_wrong_is_named(name, message):
    with pytest.raises(BadInput, match=f"(?s){message}"):
        check_algorithm(small_experiment(f"hostile:{name}", None, {}, "--set"))


def test_a_quick_look_sees_what_constructors_refuse():
    emitters = [{"type": "hostile:NoBounds"}]
    parts = {"archive": {"type": "grid"}, "emitters": emitters}
    with pytest.raises(BadInput, match="lower_bounds"):
        try_out(compose({**TINY, "algorithm": parts}))


def test_the_command(capsys):
    assert main(["check", "--algorithm", "lab:make", "arm", "--set", "sigma=0.1"]) == 0
    assert "lab:make: fit for use (arm)" in capsys.readouterr().out
    assert main(["check", "--algorithm", "hostile:raises"]) == 2
    assert "no licence" in capsys.readouterr().err
    assert main(["check", "--algorithm", "map_elits"]) == 2
    assert "did you mean 'map_elites'" in capsys.readouterr().err
    assert main(["check"]) == 2


# The order of a set of strings is another one in each process; a process may also be ended.
ELSEWHERE = """
import os
from lab import Bare

class Ordered(Bare):
    def ask(self):
        names = {f"parameter {number}" for number in range(99)}
        return super().ask() * len(names.pop())  + int(next(iter(names)).split()[1])

class Abrupt(Bare):
    def ask(self):
        os._exit(0)

class Interrupts(Bare):
    def ask(self):
        raise KeyboardInterrupt
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Ordered", "two runs of one seed differ in two processes, first in batch 1 of iteration"),
        ("Abrupt", "Abrupt: it ended its process with exit code 0. Usual causes: os._exit"),
        ("Interrupts", "Interrupts: it ended its process with exit code -2: KeyboardInterrupt"),
    ],
)
def test_another_process_tells_more(plugins, capsys, name, message):
    plugins("elsewhere", ELSEWHERE)
    assert main(["check", "--algorithm", f"elsewhere:{name}"]) == 2
    said = capsys.readouterr()
    assert message in said.err and not said.out
