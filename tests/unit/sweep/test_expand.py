"""A sweep on the command line, after Snakemake has read it."""

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from snakemake.cli import parse_config
from snakemake_interface_executor_plugins.utils import format_cli_arg

from qdsweep.errors import BadInput
from qdsweep.sweep.grammar import expand, from_argv, recover, to_tsv


def test_one_argument_or_many_are_the_same_sweep():
    text = "::: a 1 '' '#x' \"it's\" ::: b 'x y' [1,2] 'a\"b' # comment"
    assert from_argv([text]) == from_argv(shlex.split(text, comments=True))


def test_many_arguments_are_taken_as_they_are():
    table = from_argv([":::", "a", "'1'", "#", "\\", " 2", "", ":::+", "b", *"vwxyz"])
    assert [row[0] for row in table.rows] == ["'1'", "#", "\\", " 2", ""]


@pytest.mark.parametrize("arguments", [[], [""], ["::: a 1", "::: b 2"], ["a"]])
def test_arguments_that_are_no_sweep(arguments):
    with refused(":::"):
        from_argv(arguments)


def test_tsv_holds_the_values_as_they_were_written():
    assert to_tsv(expand("::: a 1e-3 '' ::: b 007 'x y'")) == (
        "a\tb\n1e-3\t007\n1e-3\tx y\n\t007\n\tx y\n"
    )


SAFE = [
    "::: seed 1 2",
    "::: seed 1",
    "::: a 1 ::: b 2",
    "::: a 1 :::+ b 2",
    "::: a 1 :::: f.txt",
    ":::: f.txt",
    ":::: f.txt ::: a 1",
    "::: a 1e-3 0x1 1_000 1:30 2020-01-01 true null ~",
    "::: a [1, 2] ::: b 3",
    "::: a '[1, 2]' 3",
    "::: [1] 2",
    "::: {a} 2",
    "::: &a 2",
    "::: !a 2",
    "::: *a 2",
    "::: a b: c",
    "::: a 'b: c' d",
    "::: a 1 # comment",
    "::: a 'x #y' 2",
    "::: a '#x' 2",
    "::: 'a b' 1",
    "::: a 'x y'",
    '::: a "x y"',
    "::: a '' 1",
    "::: a 1 ''",
    '::: a 1 ""',
    "  :::  a   1  ",
    ":::",
    "::: é 1",
    "",
]
UNSAFE = ["::: a 1\n::: b 2", "::: a\t1", "::: a $x", "::: a `x`", "::: a x\\ y", "::: a 'x' \"y\""]


def config_of(*texts: str) -> tuple[object, list[str]]:
    """Returns Snakemake's value of `--config sweep=TEXT...`, and the typed text."""
    entries = [f"sweep={text}" for text in texts]
    return parse_config(entries)["sweep"], entries


def test_what_snakemake_makes_of_a_sweep():
    """The reason for `recover`; fails if Snakemake reads the text in another way."""
    assert config_of("::: seed 1 2")[0] == {"::": "seed 1 2"}
    assert config_of("::: a 1 ''")[0] == config_of("::: &x a 1")[0] == {"::": "a 1"}
    assert config_of("::: a 1\n::: b 2")[0] == {"::": "b 2"}
    assert config_of("::: a 1 ::: b 2")[0] == "::: a 1 ::: b 2"
    assert config_of("::: [1, 2]")[0] == {"::": ["1", "2"]}


@pytest.mark.parametrize("text", SAFE)
def test_recover_gives_the_text_as_it_was_typed(text):
    assert recover(*config_of(text)) == text
    assert recover(*config_of(":::: other", text)) == text, "the last one wins"


@pytest.mark.parametrize("quote", ["'", '"'])
def test_recover_takes_off_quotes_around_the_whole(quote):
    assert recover(*config_of(f"{quote}::: seed 1 2{quote}")) == "::: seed 1 2"


@pytest.mark.parametrize("text", UNSAFE)
def test_recover_refuses_what_would_not_reach_the_jobs(text):
    with refused("--configfile FILE"):
        recover(*config_of(text))


def test_recover_reads_other_config():
    assert recover("::: a 1\n::: b 2\n", ["name=x", "sweeps=y"]) == "::: a 1\n::: b 2\n"
    assert recover("::: a 1", None) == "::: a 1"


@pytest.mark.parametrize("value", [{"::": "b 2"}, ["::: a 1"], None, 3])
def test_recover_refuses_what_yaml_has_read_from_a_file(value):
    with refused("sweep: |"):
        recover(value)


def as_a_slurm_job_gets_it(entry: str) -> str:
    """Returns an entry after Snakemake's quoting, `sbatch --wrap "..."` and the job's shell."""
    call = f"printf %s {format_cli_arg('--config', [entry]).removeprefix('--config ')}"
    wrapped = call.replace('"', '\\"')
    script = subprocess.check_output(["sh", "-c", f'printf %s "{wrapped}"'])
    return subprocess.check_output(["sh", "-c", script]).decode()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from("'\"\\$\n").flatmap(lambda odd: st.text("ab: #é!*[]{}~;&|<>()%," + odd * 5)))
def test_what_recover_accepts_reaches_the_jobs(text):
    entry = f"sweep=::: {text}"
    try:
        recover(None, [entry])
    except BadInput:
        return
    assert as_a_slurm_job_gets_it(entry) == entry
