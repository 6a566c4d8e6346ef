"""`qdsweep check` finds the faults of a user's domain."""

import pytest
from domain_makers import GOOD, LENGTH, linear_projection, make, preset, task
from refusals import names_all, refused

from qdsweep.cli import main
from qdsweep.domains.plugin import check_rows

# The remedies where a row depends on its neighbours, and where it is not reproducible.
NEIGHBOURS, UNSEEDED = "solutions @ w", "`seeds`"
UNSEEDED_ROWS = "np.random.rand(len(solutions))"
KEPT = "vars(self).setdefault('kept', np.zeros(24))"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("solutions[:, 0] - solutions[:, 0].mean()", (NEIGHBOURS,)),
        ("solutions[:, 0] + np.arange(len(solutions))", (NEIGHBOURS,)),
        ("np.random.default_rng(int(seeds[0])).random(len(solutions))", (NEIGHBOURS,)),
        (UNSEEDED_ROWS, (UNSEEDED,)),
        ("np.random.rand(len(solutions)) * (len(solutions) < 24)", (UNSEEDED,)),
        (f"np.add({UNSEEDED_ROWS}, 0, out=({KEPT})[: len(solutions)])", (UNSEEDED,)),
        ("np.array([solutions[0, 0]])", ("objective", "(1,)", "(24,)")),
        ("solutions[:, 0] / 0", ("objective", "solution 0")),
        ("np.negative(solutions, out=solutions)[:, 0]", ("Good.evaluate", "solutions")),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_check_rows_finds_broken_promises(plugins, line, names):
    plugins("mine_four", GOOD.replace("Evaluation(solutions[:, 0]", f"Evaluation({line}"))
    with refused("Good", *names):
        check_rows(make(type="mine_four:Good"))


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        ("solutions[:, 0], solutions[:, :1]", ("tuple", "Evaluation(objective, measures)")),
        ("None", ("NoneType", "Evaluation(objective, measures)")),
        ("{'objective': solutions[:, 0]}", ("dict", "Evaluation(objective, measures)")),
        ("Evaluation(['high'] * len(solutions), solutions[:, :1])", ("objective", "<U4")),
        ("Evaluation(None, solutions[:, :1])", ("objective", "object")),
        ("Evaluation(solutions[:, 0], [[0], *[[0, 1]] * 23])", ("measures", "lengths")),
        ("Evaluation(solutions[:, 0], solutions[:, :1], None)", ("Good.evaluate", "TypeError")),
        ("Evaluation(solutions[:, 0], solutions[:, 9:10])", ("measures", "(24, 0)", "(24, 1)")),
        ("solutions[9:, 99]", ("IndexError", "mine_back.py, line 14")),
        ("np.linalg.inv(solutions)", ("LinAlgError", "mine_back.py, line 14")),
        ("Evaluation(solutions[:, 0], solutions[:, : 1 if len(solutions) > 23 else one])",
         ("NameError", "mine_back.py, line 14")),
    ],
)  # fmt: skip
def test_what_evaluate_must_return_is_named(plugins, returned, names):
    good = "Evaluation(solutions[:, 0], solutions[:, :1])"
    plugins("mine_back", GOOD.replace(f"return {good}", f"return {returned}"))
    with refused("Good", *names):
        check_rows(make(type="mine_back:Good"))


def test_a_claim_that_seeds_have_no_effect_is_proved(plugins):
    claims = GOOD.replace("    def evaluate", "    is_deterministic = True\n\n    def evaluate")
    plugins("mine_sure", claims)
    check_rows(make(type="mine_sure:Good"))
    plugins("mine_unsure", claims.replace("Evaluation(solutions[:, 0]", "Evaluation(seeds + 0.0"))
    with refused("Good", "is_deterministic"):
        check_rows(make(type="mine_unsure:Good"))


def test_check_reports_the_cost_and_measures_out_of_range(plugins):
    plugins("mine_wide", GOOD)
    findings = check_rows(make(type="mine_wide:Good"))  # 1 + 3 * N(0, 1) in a range of 0 to 1
    assert findings.seconds > 0 and len(findings.measures) == 1000
    _, share, measure, remedy, *_ = findings.lines()
    assert 80 < float(share.split("%")[0]) < 95
    names_all(measure, "a:", "0 to 1")
    names_all(remedy, "ranges")
    assert [line[:4] for line in check_rows(preset("maze")).lines()[1:]] == ["0.0%"] * 2


def test_check_reports_objectives_out_of_range(plugins):
    plugins("mine_deep", GOOD)  # the objective is the measure: 1 + 3 * N(0, 1)
    length = {**LENGTH, "range": [0, 500]}
    pole = make(**task("CartPole-v1", length, objective_range=[100, 500]))
    for findings, ends in (
        (check_rows(make(type="mine_deep:Good")), "0 to 1"),
        (check_rows(pole, batch=3), "100 to 500"),
    ):
        share, objective, remedy = (
            findings.lines()[-4:-1] if findings.is_stochastic else (findings.lines()[-3:])
        )
        low, high = findings.objective_range
        outside = (findings.objective < low) | (findings.objective > high)
        assert share.startswith(f"{outside.mean():.1%}") and outside.mean() > 0.5
        names_all(objective, "objective:", ends, f"{findings.objective.min():.4g}")
        names_all(remedy, "`objective_range`")


def test_check_reports_whether_evaluations_depend_on_their_seed(plugins):
    plugins("mine_lucky", GOOD.replace("Evaluation(solutions[:, 0]", "Evaluation(seeds / 2**32"))
    for domain, is_stochastic in (
        (make(type="mine_lucky:Good"), True),
        (make(**task("CartPole-v1", {**LENGTH, "range": [0, 500]})), True),
        (preset("arm"), False),
    ):
        findings = check_rows(domain, batch=3)
        assert findings.is_stochastic is is_stochastic
        assert ("docs/tutorials/noise.md" in findings.lines()[-1]) is is_stochastic


def test_check_rows_finds_a_wrong_gradient():
    domain = linear_projection(d=4)
    exact = domain.jacobian
    check_rows(domain)
    domain.jacobian = lambda x: exact(x) * [[[1], [1], [1.01]]]
    with refused("jacobian", "sum of second half", 2):
        check_rows(domain)


@pytest.mark.parametrize(
    ("lines", "names"),
    [("[solution]", ("(2,)", "(points, 2)")), ("solution.missing", ("AttributeError", "missing"))],
)
def test_check_rows_tries_to_draw(plugins, lines, names):
    draw = f"    def draw(self, solution):\n        return {lines}\n"
    plugins("mine_drawn", GOOD + draw)
    with refused("Good.draw", *names):
        check_rows(make(type="mine_drawn:Good"))
    plugins("mine_arm", GOOD + draw.replace(lines, "[[(0, 0), solution]]"))
    check_rows(make(type="mine_arm:Good"))


@pytest.mark.parametrize(
    ("line", "code", "names"),
    [
        ("__import__('os')._exit(0)", 2, ("mine:Good", "0")),
        ("print('hello')", 0, ("hello",)),
        ("self.__dict__[0]", 2, ("Good", "KeyError: 0", "mine.py, line 14")),
    ],
)
def test_the_command_survives_a_domain_that_prints_or_ends_its_process(
    plugins, capsys, line, code, names
):
    plugins("mine", GOOD.replace("return Evaluation", f"{line}\n        return Evaluation"))
    assert main(["check", "mine:Good"]) == code
    printed = capsys.readouterr()
    names_all(printed.err, *names)
    assert ("mine:Good" in printed.out) == (code == 0) and "hello" not in printed.out


def test_an_error_of_the_constructor_is_reported_with_its_line(plugins, capsys):
    plugins("mine", GOOD.replace("self.solution_dim = d", "self.solution_dim = d / 0"))
    assert main(["check", "mine:Good"]) == 2
    names_all(capsys.readouterr().err, "mine:Good: ", "ZeroDivisionError", "mine.py, line 12")


@pytest.mark.parametrize("name", ["throw", "config/plugins/throw.py", "throw.Good"])
def test_the_class_of_a_file_is_suggested(plugins, capsys, name):
    plugins("throw", "def helper():\n    pass\n\n" + GOOD)
    assert main(["check", name]) == 2
    names_all(capsys.readouterr().err, f"'{name}'", "'throw:Good'")


@pytest.mark.parametrize("name", ["annealed:Annealed", "curious:Curious"])
def test_a_part_of_an_algorithm_is_checked_as_such(name):
    with refused(name, f"qdsweep check --algorithm {name}"):
        make(type=name)
