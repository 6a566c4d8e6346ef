"""`qdsweep check` finds what a domain of the user's gets wrong."""

import pytest
from domain_makers import GOOD, linear_projection, make, preset

from qdsweep.cli import main
from qdsweep.domains.plugin import check_rows
from qdsweep.errors import BadInput


@pytest.mark.parametrize("name", ["lp_sphere", "arm", "maze", "cartpole"])
def test_check_rows_accepts(name):
    check_rows(preset(name), batch=8)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("solutions @ np.ones((self.solution_dim, 7))[:, 0]", None),
        ("solutions[:, 0] - solutions[:, 0].mean()", "depends on its neighbours"),
        ("solutions[:, 0] + np.arange(len(solutions))", "depends on its neighbours"),
        ("np.random.default_rng(int(seeds[0])).random(len(solutions))", "on its neighbours"),
        ("np.random.rand(len(solutions))", "not from `seeds`"),
        ("np.random.rand(len(solutions)) * (len(solutions) < 24)", "not from `seeds`"),
        ("np.array([solutions[0, 0]])", r"shape \(1,\)"),
        ("solutions[:, 0] / 0", "objective of solution 0 is"),
        ("np.negative(solutions, out=solutions)[:, 0]", "changes the solutions"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_check_rows_finds_broken_promises(plugins, line, message):
    plugins("mine_four", GOOD.replace("Evaluation(solutions[:, 0]", f"Evaluation({line}"))
    domain = make(type="mine_four:Good")
    if message is None:
        check_rows(domain)
    else:
        with pytest.raises(BadInput, match=message):
            check_rows(domain)


def test_check_tells_the_cost_and_what_is_out_of_range(plugins):
    plugins("mine_wide", GOOD)
    findings = check_rows(make(type="mine_wide:Good"))  # 1 + 3 * N(0, 1) in a range of 0 to 1
    assert 0 < findings.seconds < 0.1 and len(findings.measures) == 1000
    cost, share, measure, remedy = findings.lines()
    assert "ms an evaluation, in a batch of 24" in cost
    assert 80 < float(share.split("%")[0]) < 95
    assert measure.startswith("  a: ") and measure.endswith("range 0 to 1")
    assert "widen the ranges" in remedy
    assert check_rows(preset("maze")).lines()[1].startswith("0.0% of 1000")


def test_check_rows_finds_a_wrong_gradient():
    domain = linear_projection(d=4)
    true = domain.jacobian
    check_rows(domain)
    domain.jacobian = lambda x: true(x) * [[[1], [1], [1.01]]]
    with pytest.raises(BadInput, match="derivative of sum of second half by parameter 2"):
        check_rows(domain)


def test_the_command_says_when_a_domain_ends_its_process(plugins, capsys):
    abrupt = GOOD.replace(
        "return Evaluation", "__import__('os')._exit(0)\n        return Evaluation"
    )
    plugins("mine_abrupt", abrupt)
    assert main(["check", "mine_abrupt:Good"]) == 2
    said = capsys.readouterr()
    assert "mine_abrupt:Good: it ended its process with exit code 0. Usual causes" in said.err
    assert not said.out
    plugins(
        "mine_loud", GOOD.replace("return Evaluation", "print('hello')\n        return Evaluation")
    )
    assert main(["check", "mine_loud:Good"]) == 0
    said = capsys.readouterr()
    assert "mine_loud:Good: fit for use\n" in said.out and "an evaluation" in said.out
    assert "hello" in said.err and "hello" not in said.out
