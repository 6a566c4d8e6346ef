"""Commands, runs and sweeps in this process, which has already imported and compiled."""

import contextlib
import io
import logging
import signal
import sys
from pathlib import Path
from unittest import mock

from results import forget_sums
from support import REPO

from qdsweep.host.signals import SIGNALS


def forget_plugins() -> None:
    """Forgets the plug-ins of all folders, because another folder may have the same names."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if "/config/plugins/" in file and not Path(file).is_relative_to(REPO):
            del sys.modules[name]
    sys.path[:] = [entry for entry in sys.path if not entry.endswith("/config/plugins")]


def qdsweep(*words: object, cwd: Path, code: int | None = 0) -> str:
    """Runs a command of `qdsweep` here, while `support.command` starts a process.

    Args:
        words: The command.
        cwd: The working directory.
        code: The expected exit code; None for any.

    Returns:
        Its output.
    """
    from qdsweep.cli import main
    from qdsweep.config.files import read_preset

    forget_plugins()
    read_preset.cache_clear()  # a file may have changed since the last command
    root, printed = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    signals = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    alarm, _ = signal.getitimer(signal.ITIMER_REAL)  # pytest-timeout's alarm, which a run replaces
    try:
        with (
            mock.patch("qdsweep.cli._leave_threads"),  # it may end this process
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            try:
                exit_code = main([str(word) for word in words])
            except SystemExit as ended:  # argparse raises it
                exit_code = ended.code
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        for number, handler in signals.items():
            signal.signal(number, handler)
        signal.setitimer(signal.ITIMER_REAL, alarm)
    assert code in (None, exit_code), f"{words}: {exit_code}\n{printed.getvalue()}"
    return printed.getvalue()


def checked_sweep(*files: Path):
    """Returns the sweep of its files, after all checks of a start of Snakemake."""
    from qdsweep.planning.checks import check_sweep
    from qdsweep.planning.request import Given, key_sources, read_sweep
    from qdsweep.planning.rows import sweep_of
    from qdsweep.records.paths import Results

    given = Given({}, files=files)
    settings = read_sweep(given)
    made = sweep_of(settings, Results(Path("results")))
    check_sweep(settings, made, key_sources(given))
    return made


def compute_run(experiment: object, out: Path, **changes: object) -> Path:
    """Computes a run in this process, where only the first run imports and compiles.

    Args:
        experiment: A file, or keys.
        out: The run's folder, which is returned.
        changes: Keys that override the experiment.
    """
    from qdsweep.config.compose import compose
    from qdsweep.experiment.attempt import Attempt
    from qdsweep.experiment.run import compute
    from qdsweep.experiment.stop import Stop
    from qdsweep.records.paths import RunDir

    (out / "state").mkdir(parents=True, exist_ok=True)
    source = str(experiment) if isinstance(experiment, Path) else experiment
    compute(Attempt.of(compose(source, changes), RunDir(out)), Stop())
    RunDir(out).publish()
    return out


def compute_sweep(results: Path, experiment, sweep: str, name: str = "tiny", **reporting) -> Path:
    """Computes a sweep in this process, without Snakemake, to its tables; returns its folder.

    It writes no checksums, because tests edit the results.
    """
    from qdsweep.analysis.tables.aggregate import aggregate
    from qdsweep.experiment.attempt import Attempt
    from qdsweep.experiment.run import compute
    from qdsweep.experiment.stop import Stop
    from qdsweep.planning.composed import composed_study
    from qdsweep.planning.request import Given, read_sweep
    from qdsweep.records.paths import Results
    from qdsweep.records.plan import write_plan
    from qdsweep.records.study_files import write_study
    from qdsweep.sweep.runs import table_of_runs

    made = table_of_runs(experiment, sweep)
    plan = made.plan(name=name, experiment="tiny", sweep=sweep, **reporting)
    write_plan(plan, made.runs, Results(results))
    given = Given({"name": name, "experiment": experiment, "sweep": sweep, **reporting})
    write_study(composed_study(read_sweep(given), given), Results(results).sweep(name))
    for run_id, resolved in made.runs.items():
        run = Results(results).run(run_id)
        compute(Attempt.of(resolved, run), Stop())
        run.publish()
    aggregate(results / "sweeps" / name, results / "runs")
    forget_sums(results)
    return results / "sweeps" / name


def report_sweep(sweep: Path) -> Path:
    """Makes all tables, figures, animations and the page of a sweep; returns its folder."""
    from qdsweep.analysis.stages import STAGES
    from qdsweep.analysis.turns import run_stage
    from qdsweep.records.paths import SweepDir
    from qdsweep.records.plan import read_plan

    rollouts = ("rollouts",) if read_plan(SweepDir(sweep)).rollouts else ()
    for stage in STAGES:
        if stage.name in ("aggregate", "plot", "evolution", *rollouts, "report"):
            run_stage(stage, sweep, sweep.parents[1] / "runs")
    return sweep
