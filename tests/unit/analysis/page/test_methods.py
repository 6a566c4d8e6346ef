"""The methods paragraph and its citations, from real resolved experiments."""

import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest
import yaml
from composing import presets, with_algorithm
from in_process import compute_run
from refusals import names_all
from support import REPO

from qdsweep.analysis.page import descriptions, methods
from qdsweep.analysis.page.descriptions import bibtex, cite, cited, latex, plain_citations
from qdsweep.analysis.page.report import group_settings
from qdsweep.config.compose import compose, read_part
from qdsweep.config.references import bibliography
from qdsweep.runs.load import load
from qdsweep.text import core_time, listed, seeds_text, spans


def resolved(experiment="lp_sphere", **overrides):
    return compose(experiment, overrides, source="test").model_dump(mode="json")


def mixed(scheduler, emitters=4):
    """Two kinds of emitters, on the LP sphere with its step of 0.5."""
    config = resolved(algorithm="cma_me", num_emitters=emitters)
    gaussian = {"type": "gaussian", "sigma": None, "initial_solutions": 0, "bounds": None}
    own = {"type": "my_emitters:Mine", "arguments": {}}
    config["algorithm"] |= {"emitters": [gaussian, own], "scheduler": scheduler}
    return config


def task(config, **geometry):
    return descriptions.task(SimpleNamespace(config=config, summary={"archive": geometry}))


def test_each_algorithm_of_the_project_and_its_papers(snapshot):
    sentences = {}
    for name in presets("algorithms"):
        config = with_algorithm(name).model_dump(mode="json")
        sentences[name] = descriptions.algorithm(name, [config])
        papers = read_part("algorithm", config["algorithm"]).papers
        assert cited(sentences[name]) == list(papers) and papers
    titles = {text.partition(" [")[0] for text in sentences.values()}
    assert len(titles) == len(sentences), "all titles differ"
    assert "\n".join(sentences.values()) == snapshot


def test_what_is_swept_mixed_or_the_users_own(snapshot):
    swept = [resolved(algorithm="cma_me", sigma0=sigma) for sigma in (0.1, 0.5, 1)]
    cases = {
        "one key, swept": ("cma_me", swept),
        "a rate of zero, and a label": (
            "cma_mae", [resolved(algorithm="cma_mae", learning_rate=0, threshold_min=0)], "Ours"
        ),
        "one after another": ("cma_me", [resolved(algorithm="cma_me", add_mode="single")]),
        "random solutions of all emitters": (
            "map_elites", [resolved(algorithm="map_elites", first_batch=70)]
        ),
        "none of them": ("cma_me", [resolved(algorithm="cma_me", first_batch=70)]),
        "a bandit": ("mine", [mixed({"type": "bandit", "zeta": 0.0})]),
        "equal numbers": ("mine", [mixed({"type": "all"})]),
        "other numbers": ("mine", [mixed({"type": "all"}, 3)]),
        "swept numbers": ("mine", [mixed({"type": "all"}, n) for n in (2, 5)]),
        "an algorithm of the user's": ("Curious", [resolved("arm_own_algorithm", reward=2.0)]),
        "an archive of the user's": ("x", [resolved("arm_own_archive")]),
    }  # fmt: skip
    texts = [f"{case}: {descriptions.algorithm(*words)}" for case, words in cases.items()]
    assert "\n".join(texts) == snapshot


def test_tasks_and_archives(snapshot):
    names = ("arm", "atari_pong", "bipedal_walker", "lp_plateau", "lunar_lander", "qd_ant")
    tasks = [task(resolved(name), solution_dim=20) for name in names]
    grid = {"type": "grid", "cells": 4, "dims": [2, 2], "class": "Floor"}
    kinds = [grid, grid | {"type": "proximity", "cells": None}]
    archives = [descriptions.archive(SimpleNamespace(summary={"archive": kind})) for kind in kinds]
    limits = {"ranges": [[-5, 5]], "measures": ["sum"], "objective_range": [-600.0, 300.0]}
    assert "\n".join([*tasks, task(resolved(), solution_dim=20, **limits), *archives]) == snapshot


STILL = """
class Still:
    solution_dim = 2
    measures = {{'x': (0, 1)}}
    objective_range = (0, 1)
    fields = {{}}
    step = 0.3
    is_deterministic = {same}
    def evaluate(self, solutions, seeds): ...
"""
OF_ITSELF = """
import numpy as np
from qdsweep.domains.base import Evaluation
class Bent:
    def __init__(self):
        self.solution_dim, self.measures, self.fields = 2, {"x": (-3, 3)}, {}
        self.objective_range, self.step = (-9, 0), 0.7
    def evaluate(self, solutions, seeds):
        return Evaluation(-np.square(solutions[:, 1]), solutions[:, :1])
"""


@pytest.mark.parametrize("same", [True, False])
def test_a_users_class_gives_its_step_and_whether_seeds_matter(plugins, same):
    plugins(f"still_{same}", STILL.format(same=same))
    config = resolved(algorithm="map_elites")
    config["domain"] = {"type": f"still_{same}:Still", "name": "s", "arguments": {}, "step": None}
    assert " 0.3" in descriptions.algorithm("map_elites", [config])
    assert ("seed" in task(config)) != same


def test_the_step_that_a_users_object_has_reported_is_that_of_its_run(tmp_path, plugins):
    plugins("bent", OF_ITSELF)
    keys = {"domain": "bent:Bent", "archive": {"dims": [4]}, "num_emitters": 1, "batch_size": 3}
    out = compute_run({**keys, "algorithm": "map_elites", "iterations": 1}, tmp_path / "run")
    (sentence,) = methods._algorithms({"run": load(out)}, {})
    assert " 0.7" in sentence


def test_citations_as_text_as_latex_and_as_bibtex():
    text = f"CMA-ME{cite(['fontaine2020covariance', 'hansen2016cma'])}, 50 % & more."
    assert plain_citations(text) == "CMA-ME (Fontaine et al., 2020; Hansen, 2016), 50 % & more."
    assert latex(text) == r"CMA-ME~\citep{fontaine2020covariance,hansen2016cma}, 50 \% \& more."
    assert plain_citations(cite(["mouret2015illuminating"])) == " (Mouret & Clune, 2015)"
    assert plain_citations(cite(["moelder2021sustainable"])) == " (Mölder et al., 2021)"
    entries = bibtex(f"{text} b{cite(['rocklin2015dask', 'hansen2016cma'])}")
    assert re.findall(r"@\w+\{(\w+),", entries) == [
        *("fontaine2020covariance", "hansen2016cma", "rocklin2015dask")
    ]


def test_every_entry_is_whole():
    for key, entry in bibliography().items():
        assert entry.count("{") == entry.count("}"), key
        fields = re.findall(r"^  (\w+) = \{.+\},$", entry, re.MULTILINE)
        assert {"author", "title", "year"} <= set(fields), key
        assert len(entry.splitlines()) == len(fields) + 2, key
        assert {"booktitle", "journal", "eprint", "howpublished"} & set(fields), key
        assert re.fullmatch(r".+, \d{4}", plain_citations(cite([key]))[2:-1]), key


@pytest.mark.skipif(not shutil.which("bibtex"), reason="BibTeX: apt-get install texlive-binaries")
def test_bibtex_reads_the_entries(tmp_path):
    (tmp_path / "all.bib").write_text("\n\n".join(bibliography().values()))
    (tmp_path / "all.aux").write_text("\\citation{*}\n\\bibstyle{plain}\n\\bibdata{all}\n")
    done = subprocess.run(["bibtex", "all"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "Warning" not in done.stdout, done.stdout


def test_the_digest_is_of_ids_and_archives_in_any_order():
    first, second = {"id": "a", "archive_digest": "1"}, {"id": "b", "archive_digest": "2"}
    assert methods.sweep_digest([first, second]) == methods.sweep_digest([second, first])
    assert methods.sweep_digest([first]) != methods.sweep_digest([first, second])


def test_hardware_counts_machines_and_names_none(snapshot):
    run = {"workers": 2, "attempts": [{"host": "node17.cluster"}], "cpu_baseline": "avx2"}
    runs = [run, run | {"attempts": [{"host": "node18"}]}]
    assert methods.hardware(runs, 7200.0, {"the held-out seeds": 5400.0, "more": 60.0}) == snapshot


def test_settings_are_what_is_shared_and_what_differs():
    config = resolved(algorithm="cma_me", seed=1)
    other = resolved(algorithm="cma_mae", seed=2)
    summary = {"archive": {"objective_range": [-7.0, 5.0]}}
    runs = {
        name: SimpleNamespace(config=keys, summary=summary)
        for name, keys in (("a", config), ("b", other))
    }
    both = group_settings(runs)
    assert both.differing.columns == ["Key", "a", "b"]  # there are more keys than groups
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in both.differing.rows}
    assert rows["algorithm.emitters.ranker"] == ["2imp", "imp"]
    assert rows["algorithm.archive.learning_rate"] == ["", "0.01"]
    assert rows["algorithm.archive.threshold_min"] == ["", "-7.0"]
    assert "seed" not in rows and not any(key.startswith("domain") for key in rows)
    shared = yaml.safe_load(both.common)
    assert shared["domain.function"] == "sphere" and "algorithm.name" not in shared
    assert "domain.mutation_scale" in shared and "domain.step" not in shared
    alone = group_settings({"a": runs["a"]})
    assert alone.differing is None
    assert yaml.safe_load(alone.common)["algorithm.name"] == "cma_me"


def test_times_lists_and_spans():
    assert [core_time(s) for s in (2.04, 60, 90, 3600, 9000)] == [
        *("2.0 core-seconds", "1.0 core-minute", "1.5 core-minutes"),
        *("1.0 core-hour", "2.5 core-hours"),
    ]
    assert [listed([]), listed(["a"]), listed(["a", "b", "c"], "or")] == ["", "a", "a, b or c"]
    assert spans([1, 2, 3, 7, 101, 102]) == "1\u20133, 7, 101\u2013102"
    assert seeds_text(["10", 9, "9"]) == "seeds 9\u201310" and seeds_text([3]) == "seed 3"


def test_the_entry_of_qdsweep_is_that_of_its_citation_file():
    citation = yaml.safe_load((REPO / "CITATION.cff").read_text())
    entry = bibliography()["qdsweep"].replace("{", "").replace("}", "")
    names_all(entry, citation["title"], citation["version"], citation["authors"][0]["name"])
    names_all(entry, str(citation["date-released"].year))
    (developers,) = re.findall(r"\((.*)\)", plain_citations(cite(["qdsweep"])))
    names_all(developers, citation["authors"][0]["name"])
