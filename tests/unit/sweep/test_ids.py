"""Run ids: golden ids, and changes that affect them or not."""

import csv
import itertools
import json
import math
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from composing import BASE, COLLIDING, CONFIG, ONE_ID, SIGMAS, merged, presets
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from refusals import refused
from support import POLE as POLE_RUN
from support import REPO, TINY, write_yaml

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.family import FORMER
from qdsweep.config.keys import dotted, key_paths
from qdsweep.errors import BadInput
from qdsweep.records.paths import Results
from qdsweep.records.sources import identities
from qdsweep.sweep import ids
from qdsweep.sweep.ids import adhoc_name, identify, run_id
from qdsweep.sweep.runs import table_of_runs


def id_of(changes: dict[str, Any] | None = None, /, **overrides: object) -> str:
    return run_id(compose(merged(BASE, changes or {}), overrides))


# NEVER change these: every user's finished runs would be computed again. They may change
# only together with MODEL_VERSION (or the `version` of a domain), when results do.
GOLDEN = {
    "lunar_lander-cma_me-s0-9fc04e522a": ("lunar_lander", {}),
    "lunar_lander-openai_es-s0-0979dbf409": (
        "lunar_lander",
        {"algorithm": "openai_es", "cpu_baseline": "native"},
    ),
    "lp_sphere-cma_me-s0-d328d5a277": ("lp_sphere", {}),
    "lp_sphere-map_elites-s3-7b712ff9a1": ("lp_sphere", {"algorithm": "map_elites", "seed": 3}),
    "lp_sphere-cma_mae-s0-2000d89892": ("lp_sphere", {"algorithm": "cma_mae", "sigma0": 0.1}),
    "lp_sphere-cma_maega_mu-s0-9674824735": (
        "lp_sphere",
        {"algorithm": "cma_maega_mu", "add_mode": "single"},
    ),
    "lp_plateau-line_cvt_map_elites-s0-a3c40a1b2b": (
        "lp_plateau",
        {"algorithm": "line_cvt_map_elites", "cells": 1000, "x0": [0.5] * 100},
    ),
    "arm-map_elites_line-s0-853165f11a": (
        "arm",
        {"algorithm": "map_elites_line", "evaluations": 1000},
    ),
    "cartpole-cma_me-s0-ec94f9a3e3": ("lp_rastrigin", {"domain": "cartpole", "dims": [20, 20]}),
    # Presets that later got a first_batch, in their earlier form.
    "cartpole-cma_me-s0-479c262991": ("cartpole", {}),
    "cartpole-map_elites-s0-49157fa348": (
        "cartpole",
        {"algorithm": "map_elites", "initial_solutions": 100},
    ),
    "bipedal_walker-map_elites_line-s0-7de93cf245": (
        "bipedal_walker",
        {"algorithm": "map_elites_line", "initial_solutions": 100},
    ),
    "lp_sphere-map_elites-s0-944f64205e": (
        "lp_sphere",
        {"algorithm": "map_elites", "first_batch": 103},
    ),
}


@pytest.mark.parametrize("golden", GOLDEN)
def test_golden_run_ids(golden: str):
    experiment, overrides = GOLDEN[golden]
    assert run_id(compose(experiment, overrides)) == golden


def golden_presets() -> list[dict[str, str]]:
    with (REPO / "tests/fixtures/preset_ids.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("row", golden_presets(), ids=lambda row: row["experiment"] + row["domain"])
def test_golden_ids_of_all_presets(row: dict[str, str]):
    """Each experiment, and each domain, with each algorithm; "-" is refused. NEVER change these."""
    base, domain = row.pop("experiment"), row.pop("domain")
    made = {}
    for algorithm in row:
        try:
            taken = {"domain": domain} if domain else {}
            made[algorithm] = run_id(compose(base, taken | {"algorithm": algorithm}))[-10:]
        except BadInput:
            made[algorithm] = "-"
    assert made == row


# NEVER change these, either: the ids of runs that earlier releases computed under former names.
FORMER_GOLDEN = {
    "cma_me_one_stage": "lp_sphere-cma_me_imp-s0-571de84956",
    "cma_me_rd_basic": "lp_sphere-cma_me_rd-s0-ff9f71a470",
    "cma_maega_mu": "lp_sphere-cma_maega-s0-d9f3d595a4",
    "line_cvt_map_elites": "lp_sphere-cvt_map_elites-s0-f537f3e727",
}


@pytest.mark.parametrize("name", FORMER)
def test_runs_of_a_renamed_preset_have_two_ids_with_one_hash(name: str, tmp_path: Path):
    experiment = compose("lp_sphere", {"algorithm": name})
    former = FORMER_GOLDEN[name]
    ids = [identity.id for identity in identities(experiment, Results(tmp_path))]
    assert ids == [former.replace(f"-{FORMER[name].name}-", f"-{name}-"), former]
    taken = compose("lp_sphere", {"algorithm": FORMER[name].name})
    assert former not in [identity.id for identity in identities(taken, Results(tmp_path))]
    assert taken.algorithm.title != FORMER[name].title, "their titles distinguish them"


SAME: dict[str, dict[str, Any]] = {
    "budget": {"iterations": 4000},
    "budget in evaluations": {"iterations": None, "evaluations": 77},
    "reload": {"reload": {"max_cost": 0.5, "min_seconds": 0, "max_seconds": 1.5}},
    "defaults of the experiment": {
        "seed": 0,
        "cpu_baseline": "avx2",
        "num_emitters": 5,
        "batch_size": 30,
    },
    "defaults of the domain": {
        "domain": {
            "type": "linear_projection",
            "name": "lp_sphere",
            "function": "sphere",
            "solution_dim": 10,
            "num_measures": 2,
            "step": 0.5,
            "evaluation_seed": "solution",
        }
    },
    "defaults of the algorithm": {
        "algorithm": {
            "preset": "cma_me",
            "add_mode": "batch",
            "result_archive": False,
            "scheduler": {"type": "all"},
            "archive": {"learning_rate": None},
        }
    },
    "order of keys": dict(reversed(BASE.items())),
    "null budget": {"archive": {"cells": None, "dims": [5, 5]}},
    "a path of a preset": {"algorithm": str(CONFIG / "algorithms/cma_me.yaml")},
}


@pytest.mark.parametrize("what", SAME)
def test_id_is_unaffected_by(what: str):
    assert id_of(SAME[what]) == id_of()


def test_id_is_unaffected_by_the_spelling_of_numbers(in_own_folder: Path):
    def text(sigma0: str) -> str:
        Path(f"{sigma0}.yaml").write_text(json.dumps(BASE)[:-1] + f', "sigma0": {sigma0}}}')
        return run_id(compose(f"{sigma0}.yaml"))

    assert text("0.5") == text("0.50") == text("5e-1") == text(".5") == id_of(sigma0=0.5)
    assert text("1") == text("1.0") == id_of(sigma0=1) != text("0.5")
    assert id_of({"domain": {"preset": "arm", "ranges": [[0, 1], [-1, 2]]}}) == id_of(
        {"domain": {"preset": "arm", "ranges": [[0.0, 1.0], [-1.0, 2.0]]}}
    )
    adam = {"algorithm": "openai_es"}
    assert id_of(**adam, **{"es_kwargs.lr": 1}) == id_of(**adam, **{"es_kwargs.lr": 1.0})
    (rows,) = {row.id for row in table_of_runs(BASE, "::: sigma0 0.5 0.50 5e-1").rows}
    assert rows == id_of(sigma0=0.5)


def test_id_is_unaffected_by_where_a_preset_is(in_own_folder: Path):
    copied = in_own_folder / "elsewhere/cma_me.yaml"
    copied.parent.mkdir()
    copied.write_text((CONFIG / "algorithms/cma_me.yaml").read_text())
    assert id_of({"algorithm": str(copied)}) == id_of()


DIFFERENT: dict[str, dict[str, Any]] = {
    "seed": {"seed": 1},
    "sigma0": {"sigma0": 0.25},
    "cpu_baseline": {"cpu_baseline": "native"},
    "dims": {"dims": [5, 6]},
    "batch_size": {"batch_size": 32},
    "num_emitters": {"num_emitters": 4},
    "algorithm": {"algorithm": "cma_me_imp"},
    "domain": {"domain": "lp_rastrigin"},
    "step": {"step": 0.25},
    "x0": {"x0": 1},
    "evaluation_seed": {"evaluation_seed": 0},
    "on_failure": {"on_failure.objective": 0},
}


def test_id_is_affected_by_every_key_that_changes_a_result():
    made = [id_of(), *(id_of(**overrides) for overrides in DIFFERENT.values())]
    assert len(set(made)) == len(made)
    assert len({name.rsplit("-", 1)[1] for name in made}) == len(made)  # only the hash


def test_id_is_affected_by_versions(monkeypatch: pytest.MonkeyPatch):
    before = id_of()
    monkeypatch.setattr("qdsweep.config.domain.LinearProjection.version", 2)
    domain = id_of()
    monkeypatch.setattr(ids, "MODEL_VERSION", 2)
    assert len({before, domain, id_of()}) == 3


MIXED = {
    "archive": {"type": "grid"},
    "emitters": [{"type": "gaussian"}, {"type": "evolution_strategy"}],
}


def test_equal_shares_of_a_first_batch_are_initial_solutions():
    """The key of the drawing emitters, as in presets before `first_batch`."""

    def id_with(emitter: dict[str, Any], **overrides: object) -> str:
        emitters = [{**MIXED["emitters"][0], **emitter}, MIXED["emitters"][1]]
        changes = {"algorithm": {**MIXED, "emitters": emitters}, "num_emitters": 4}
        return id_of(changes, **overrides)

    plain = id_with({})
    assert id_with({}, first_batch=14) == id_with({"initial_solutions": 7}) != plain
    uneven = id_with({}, first_batch=15)
    assert len({plain, uneven, id_with({}, first_batch=14), id_with({}, first_batch=17)}) == 4
    both = {"algorithm": "map_elites", "num_emitters": 4}
    assert id_of(both, first_batch=40) == id_of(both, initial_solutions=10)


OWN = "own_part_of_a_test:Own"
WRAPPED = {
    "type": "gymnasium",
    "name": "wrapped",
    "env": "CartPole-v1",
    "objective_range": [0, 500],
    "measures": [
        {"measure": "episode_length", "range": [0, 500]},
        {"measure": "mean_abs_action", "component": 0, "range": [0, 1]},
    ],
    "wrappers": [{"type": OWN}],
}


@pytest.mark.parametrize(
    ("changes", "golden"),
    [
        ({"domain": OWN}, "Own-cma_me-s0-844b1a0eba"),
        ({"domain": WRAPPED}, "wrapped-cma_me-s0-9e3ca13b9c"),
        ({"algorithm": {**MIXED, "emitters": [{"type": OWN}]}}, "lp_sphere-custom-s0-15e24454ad"),
    ],
)
def test_id_is_affected_by_the_source_of_a_users_class(in_own_folder: Path, changes, golden):
    plugin = in_own_folder / "config/plugins/own_part_of_a_test.py"
    plugin.parent.mkdir(parents=True)
    made = []
    for source in ("class Own: pass", "class Own: ...", "class Own: pass"):
        plugin.write_text(source)
        made.append(id_of(changes))
    assert made[0] == made[2] != made[1]
    experiment = compose(merged(BASE, changes))
    assert identify(experiment, lambda target: f"{target} then").id == golden
    assert identify(experiment).id == made[2]


def test_the_name_of_a_sweep_without_one_is_that_of_its_content():
    """A restarted sweep finds its folder. More samples belong to the same sweep."""
    plain = adhoc_name("arm", "::: seed 1 2", {})
    assert plain == "adhoc-af708c07"
    assert adhoc_name("arm", " ::: seed  1\n2 ", {}) == plain
    assert adhoc_name({"domain": "arm"}, "::: seed 1 2", {}) != plain
    exclude = adhoc_name("arm", "::: seed 1 2", {"exclude": "seed=1", "search": Path("x")})
    assert exclude == "adhoc-07188c32"
    assert adhoc_name("arm", "::: seed 1 2", {"search": Path("x"), "exclude": "seed=1"}) == exclude
    few, more, other = (
        adhoc_name("arm", ":::~ a int 1 9", {"search": {"samples": samples, "seed": seed}})
        for samples, seed in ((3, 0), (4, 0), (3, 1))
    )
    assert few == more == "adhoc-f2f1626d" != other


def received(experiment: Experiment) -> str:
    """Returns what a worker receives: text in which -0.0, 1, 1.0 and true differ."""
    data = experiment.model_dump(exclude=ids._NOT_IDENTITY)
    if not experiment.algorithm.draws_first:
        del data["first_batch"]  # nothing reads it
    return repr(_sorted(data))


def _sorted(data: Any) -> Any:
    """Returns data in which mappings, which have no order in YAML and JSON, are sorted."""
    if isinstance(data, dict):
        return {key: _sorted(data[key]) for key in sorted(data)}
    return [_sorted(item) for item in data] if isinstance(data, list | tuple) else data


def require_two_ids(experiments: list[Experiment]) -> None:
    """Checks that two of them have one identity only where a worker receives the same."""
    known = [(identify(each, str).fingerprint, received(each)) for each in experiments]
    for (first, one), (second, other) in itertools.combinations(known, 2):
        assert (first == second) == (one == other), f"{one}\n{other}"


ALIKE: list[Any] = [
    *(None, True, False, 0, 0.0, -0.0, 1, 1.0, math.inf, -math.inf, math.nan, 2**53, 2**53 + 1),
    *(2.0**53, 10**20, 1e20, 10**299, 5e-324, "", ".inf", "inf", "Infinity", "NaN", "nan", "null"),
    *("1", "1.0", "1e20", "true", "-0.0", "08", [], {}, [math.inf], {"": math.inf}, [None]),
    *(["float", "inf"], ["float", ".inf"], {"float": "inf"}, {"$float": "inf"}, "[Infinity]"),
    *(unicodedata.normalize(form, "\u00e9\u212b\ufb01") for form in ("NFC", "NFD", "NFKC")),
]
# A place for any value in each free mapping of an experiment.
POLE = POLE_RUN["domain"]
FREE = {
    "domain": lambda value: {"domain": {"type": OWN, "arguments": {"a": value}}},
    "env_kwargs": lambda value: {"domain": {**POLE, "env_kwargs": {"a": value}}},
    "wrapper": lambda value: {
        "domain": {**POLE, "wrappers": [{"type": "Wrap", "arguments": {"a": value}}]}
    },
    "algorithm": lambda value: {"algorithm": {"type": OWN, "arguments": {"a": value}}},
    **{
        part: lambda value, part=part: {
            "algorithm": {**MIXED, part: {"type": OWN, "arguments": {"a": value}}}
        }
        for part in ("archive", "scheduler")
    },
    "emitter": lambda value: {
        "algorithm": {**MIXED, "emitters": [{"type": OWN, "arguments": {"a": value}}]}
    },
}
LEAVES = st.sampled_from(ALIKE) | st.floats() | st.integers() | st.text(max_size=3)
INSIDE = st.sampled_from(
    [
        lambda value: value,
        lambda value: [0, value],
        lambda value: {"b": [value, {"c": value}]},
        lambda value: [[value], {".inf": value, "nan": None}],
    ]
)
PLAIN = {"deadline": None, "derandomize": True}


@given(st.sampled_from(sorted(FREE)), INSIDE, LEAVES, LEAVES)
@example("domain", lambda value: value, math.inf, None)
@example("domain", lambda value: value, math.nan, -math.inf)
@example("env_kwargs", lambda value: [0.7, value], math.inf, None)
@settings(max_examples=300, **PLAIN)
def test_free_values_that_differ_for_a_worker_have_two_ids(place, inside, first, second):
    """A text, list or mapping of the user is never taken for another value."""
    require_two_ids(
        [compose(merged(BASE, FREE[place](inside(value)))) for value in (first, second)]
    )


@pytest.mark.parametrize("place", sorted(FREE))
def test_all_values_that_look_alike_have_two_ids(place):
    require_two_ids([compose(merged(BASE, FREE[place](value))) for value in ALIKE])


def _every_key() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yields each key once: an experiment, its presets, and the key."""
    seen = set()
    everywhere = [(name, {}) for name in presets("experiments")]
    everywhere += [("lp_sphere", {"domain": name}) for name in presets("domains")]
    everywhere += [("lp_sphere", {"algorithm": name}) for name in presets("algorithms")]
    for name, chosen in everywhere:
        try:
            experiment = compose(name, chosen)
        except BadInput:  # such as a learner on a domain without episodes
            continue
        data = experiment.model_dump()
        for path, kind in key_paths(Experiment, data):
            key = tuple(part for part in path if isinstance(part, str)), str(kind)
            if key not in seen and path[-1] != "type":
                seen.add(key)
                yield name, chosen, dotted(path)


def test_values_of_every_key_that_differ_for_a_worker_have_two_ids():
    """A default is not in the id, and 0.0 == -0.0, 1 == 1.0 == true in Python."""
    count = 0
    for name, chosen, key in _every_key():
        made = []
        for value in (None, 0, -0.0, 1, 1.0, True, 1.5, -1, math.inf, "1", [0.0], [-0.0], [1]):
            try:
                made.append(compose(name, {**chosen, key: value}))
            except BadInput:
                continue
        require_two_ids(made)
        count += len(made)
    assert count > 400, "most keys take some of these values"


OVERRIDES: dict[str, Any] = {
    "algorithm": "cma_mae",
    "domain": "arm",
    "seed": 7,
    "dims": [9, 8],
    "sigma0": 0.2,
    "algorithm.ranker": "rd",
    "num_emitters": 3,
    "solution_dim": 12,
    "learning_rate": 0.5,
    "step": 0.3,
}


@given(st.permutations(sorted(OVERRIDES)))
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_id_is_unaffected_by_the_order_of_overrides(names: list[str]):
    assert id_of(**{name: OVERRIDES[name] for name in names}) == id_of(**OVERRIDES)


def test_two_experiments_with_one_id_are_refused_by_name():
    first, second = SIGMAS
    with refused("row 1", f"sigma0 {first}", "row 3", f"sigma0 {second}", "seed 1", ONE_ID):
        table_of_runs(COLLIDING, f"::: sigma0 {first} {second} ::: seed 1 2")
    sweep = table_of_runs(COLLIDING, f"::: sigma0 {first} {second} ::: seed 2")
    assert sweep.fingerprints == {
        row.id: identify(row.experiment).fingerprint for row in sweep.rows
    }


def test_rows_that_differ_in_budget_are_one_run():
    table = table_of_runs(BASE, "::: iterations 5 20 10 ::: seed 1 2")
    assert len(table.rows) == 6
    assert [run.iterations for run in table.runs.values()] == [20, 20]


def test_rows_that_differ_only_in_the_seed_are_those_of_single_experiments():
    """They are copies of one experiment; its id leaves out the default seed."""
    for row in table_of_runs(BASE, "::: seed 0 1 07 ::: algorithm cma_me map_elites").rows:
        alone = compose(BASE, row.values)
        assert (row.experiment, row.id) == (alone, run_id(alone))


@pytest.mark.parametrize("seed", ["-1", "1.5", "true", "x", str(2**63)])
def test_each_seed_of_a_sweep_is_checked(seed):
    with refused("sweep, row 2", "seed"):
        table_of_runs(BASE, f"::: seed 1 {seed}")


@pytest.mark.parametrize(
    ("sweep", "place"), [("", "own.yaml"), ("::: seed 1", "sweep, row 1, of own.yaml")]
)
@pytest.mark.parametrize("key", ["domain", "algorithm"])
def test_code_that_is_not_there_is_refused_with_its_file_and_key(tmp_path, sweep, place, key):
    write_yaml(tmp_path / "own.yaml", {**TINY, key: "nowhere:Class", "num_emitters": 1})
    with refused(f"{place}: {key} = nowhere:Class: "):
        table_of_runs("own.yaml", sweep)
