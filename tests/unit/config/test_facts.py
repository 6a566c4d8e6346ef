"""Facts of domains, archives and emitters are in their models, and in no run id."""

from importlib import import_module
from typing import get_args

import pytest
import ribs.archives
from composing import with_algorithm
from refusals import refused
from support import REPO

from qdsweep.algorithms.ribs.archives import ARCHIVE_TYPES
from qdsweep.config import domain as domains
from qdsweep.config import emitters
from qdsweep.config.archive_kinds import ARCHIVES
from qdsweep.config.compose import compose, read_part
from qdsweep.config.references import bibliography, check_cited
from qdsweep.sweep.ids import run_id


def members(union):
    """The models of an annotated union of annotated models."""
    return [get_args(part)[0] for part in get_args(get_args(union)[0])]


DOMAINS = members(domains.DomainSettings)
EMITTERS = members(emitters.Emitter)


@pytest.mark.parametrize("model", DOMAINS)
def test_every_domain_names_what_makes_it_and_whether_it_is_random(model):
    module, name = model.code.split(":")
    assert callable(getattr(import_module(module), name))
    assert set(model.code_keys) <= set(model.model_fields)
    assert not (model.is_deterministic and model.has_episodes)
    assert set(model.own_papers) <= set(bibliography())


def test_archive_kinds_are_named_after_their_classes_and_can_be_built():
    assert set(ARCHIVE_TYPES) == set(ARCHIVES)
    for model in ARCHIVES.values():
        assert hasattr(ribs.archives, model.__name__)
        assert model.cells in ("boxes", "centroids", "boundaries", None)


def test_every_part_cites_what_is_there():
    parts = [part for model in (*ARCHIVES.values(), *EMITTERS) for part in model.cite]
    assert {*parts, *(paper for _, paper in emitters.STRATEGIES.values())} <= set(bibliography())
    assert set(emitters.STRATEGIES) == set(emitters.ES_ARGUMENTS)


def test_runs_whose_cells_stay_have_a_history():
    def has_history(**overrides):
        return compose("lp_sphere", {"dims": [10, 10], **overrides}).has_history

    assert has_history(algorithm="cma_me") and has_history(algorithm="cvt_map_elites")
    assert has_history(algorithm="novelty_search")  # the history of its result archive
    novelty = {"algorithm": "novelty_search", "result_archive": False}
    assert not has_history(**novelty)
    for kind in ("sliding_boundaries", "dns"):
        experiment = {
            "domain": "lp_sphere",
            "algorithm": {"preset": "map_elites", "archive": {"type": kind}},
            "archive": {"dims": [10, 10]},
            "iterations": 1,
        }
        assert not compose(experiment).has_history


def test_titles_and_papers_are_not_in_the_id(in_own_folder):
    plain = compose("lp_sphere", {"algorithm": "cma_me"})
    ours = compose(
        {
            "domain": {"preset": "lp_sphere", "title": "our sphere", "cite": ["ours2026sphere"]},
            "algorithm": {"preset": "cma_me", "title": "Ours", "cite": ["ours2026"]},
            "archive": plain.archive.model_dump(exclude_none=True),
            **plain.budget,
        },
        {"num_emitters": plain.num_emitters, "batch_size": plain.batch_size},
    )
    assert run_id(ours) == run_id(plain)
    assert ours.algorithm.papers[0] == "ours2026" and "hansen2016cma" in ours.algorithm.papers
    assert ours.domain.phrase(" [1]", 20) == "our sphere [1] in 20 dimensions"


def test_an_unknown_paper_is_refused_by_name_until_the_users_file_has_it(in_own_folder):
    bibliography.cache_clear()
    ours = compose("lp_sphere", {"algorithm": "cma_me"})
    algorithm = ours.algorithm.model_copy(update={"cite": ["fontaine2020covarianc"]})
    with refused("cma_me", "fontaine2020covarianc", "'fontaine2020covariance'"):
        check_cited([ours.model_copy(update={"algorithm": algorithm})])
    entry = "@misc{ours2026,\n  author = {Doe, Jane},\n  title = {Ours},\n  year = {2026},\n}\n"
    (in_own_folder / "config").mkdir()
    (in_own_folder / "config/references.bib").write_text(f"% mine\n\n{entry}")
    bibliography.cache_clear()
    algorithm = ours.algorithm.model_copy(update={"cite": ["ours2026"]})
    check_cited([ours.model_copy(update={"algorithm": algorithm})])
    bibliography.cache_clear()


def test_runs_of_earlier_releases_are_called_as_their_presets():
    config = compose("qd_ant", {}).model_dump(mode="json")
    for part in ("algorithm", "domain"):
        del config[part]["title"], config[part]["cite"]
    assert read_part("algorithm", config["algorithm"]).title
    assert "tjanaka2022approximating" in read_part("domain", config["domain"]).papers
    config["algorithm"]["name"] = "gone"
    assert read_part("algorithm", config["algorithm"]).title == ""


def test_every_preset_cites_entries_that_are_there():
    names = [path.stem for path in (REPO / "config/domains").glob("*.yaml")]
    cells = {"dims": None, "cells": 100, "algorithm": "cvt_map_elites"}
    check_cited(compose("lp_sphere", {"domain": name, **cells}) for name in names)
    algorithms = [path.stem for path in (REPO / "config/algorithms").glob("*.yaml")]
    check_cited(map(with_algorithm, algorithms))
