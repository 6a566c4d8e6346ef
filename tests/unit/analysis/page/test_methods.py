"""What the methods paragraph says and cites, from real resolved experiments."""

import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest
import yaml
from composing import with_algorithm
from in_process import compute_run

from qdsweep.analysis.page import descriptions, methods
from qdsweep.analysis.page.descriptions import bibtex, cite, cited, latex, plain
from qdsweep.analysis.page.report import settings
from qdsweep.config.compose import compose, read_part
from qdsweep.config.requirements import bibliography
from qdsweep.experiment.load import load
from qdsweep.text import TIMES, core_time, listed, seeds_text, spans

SOURCES = {
    "map_elites": ["mouret2015illuminating"],
    "map_elites_line": ["vassiliades2018discovering", "mouret2015illuminating"],
    "cvt_map_elites": [
        "vassiliades2018using",
        "vassiliades2018discovering",
        "mouret2015illuminating",
    ],
    "cma_me": ["fontaine2020covariance", "hansen2016cma"],
    "cma_me_imp": ["fontaine2020covariance", "hansen2016cma"],
    "cma_me_rd": ["fontaine2020covariance", "hansen2016cma"],
    "cma_mae": ["fontaine2023covariance", "hansen2016cma"],
    "cma_mega": ["fontaine2021differentiable", "hansen2016cma"],
    "cma_maega": ["fontaine2023covariance", "fontaine2021differentiable", "hansen2016cma"],
    "cma_es": ["hansen2016cma"],
    "sep_cma_es": ["ros2008simple"],
    "lm_ma_es": ["loshchilov2019large"],
    "openai_es": ["salimans2017evolution"],
    "pga_me": [
        "nilsson2021policy",
        "tjanaka2022approximating",
        "vassiliades2018discovering",
        "fujimoto2018addressing",
    ],
    "td3": ["fujimoto2018addressing", "plappert2018parameter"],
    "cma_mega_es": [
        "tjanaka2022approximating",
        "fontaine2021differentiable",
        "hansen2016cma",
        "salimans2017evolution",
    ],
    "cma_mega_td3_es": [
        "tjanaka2022approximating",
        "fontaine2021differentiable",
        "hansen2016cma",
        "salimans2017evolution",
        "fujimoto2018addressing",
    ],
    "ga": ["such2017deep"],
    "me_es": ["colas2020scaling", "tjanaka2022approximating", "salimans2017evolution"],
    "dqn": ["mnih2015human", "raffin2021stable"],
    "ppo": ["schulman2017proximal", "raffin2021stable"],
    "a2c": ["mnih2016asynchronous", "raffin2021stable"],
    "apex_dqn": [
        "horgan2018distributed",
        "schaul2016prioritized",
        "vanhasselt2016deep",
        "raffin2021stable",
    ],
    "impala": ["espeholt2018impala", "raffin2021stable"],
    "novelty_search": ["lehman2011abandoning", "lee2024density", "hansen2016cma"],
}


def resolved(**overrides):
    return compose("lp_sphere", overrides, source="test").model_dump(mode="json")


@pytest.mark.parametrize("name", SOURCES)
def test_each_algorithm_cites_exactly_its_papers(name):
    config = with_algorithm(name).model_dump(mode="json")
    used = read_part("algorithm", config["algorithm"])
    assert list(used.papers) == SOURCES[name]
    sentence = descriptions.algorithm(name, [config])
    assert sentence.startswith(used.title) and cited(sentence) == SOURCES[name]
    assert "None" not in sentence and "null" not in sentence and "{" not in sentence


def test_a_learner_says_its_batch_its_own_settings_and_those_of_its_critics():
    said = descriptions.algorithm("pga_me", [with_algorithm("pga_me").model_dump(mode="json")])
    assert "critics with hidden layers of 16 and 16 units" in said
    assert "line mutation scale 0.05" in said and "4 critic steps per iteration" in said
    assert "batch size" in said and "emitters" not in said and "archive" not in said


def test_learners_of_reinforcement_learning_say_what_their_keys_mean_there():
    said = {
        name: descriptions.algorithm(name, [with_algorithm(name).model_dump(mode="json")])
        for name in ("ppo", "dqn", "impala")
    }
    assert all(" learning rate 0.00" in one and "archive" not in one for one in said.values())
    assert "128 gradient steps per training" in said["dqn"] and "policy-" not in said["dqn"]
    assert "minibatches of 4 unrolls" in said["impala"]


def test_every_preset_of_the_project_has_a_title():
    from support import REPO

    presets = {path.stem for path in (REPO / "config/algorithms").glob("*.yaml")}
    assert presets >= set(SOURCES)
    titles = {with_algorithm(name).algorithm.title for name in presets}
    assert "" not in titles and len(titles) == len(presets)


def papers(experiment, **overrides):
    return list(compose(experiment, overrides, source="test").domain.papers)


def test_domains_cite_their_sources():
    assert papers("lp_sphere") == ["fontaine2020covariance"]
    assert papers("lp_sphere", domain="lp_plateau") == ["fontaine2023covariance"]
    assert papers("lunar_lander") == ["towers2024gymnasium", "tjanaka2021using"]
    assert papers("qd_ant")[1:] == ["todorov2012mujoco", "tjanaka2022approximating"]


def test_swept_values_stand_together():
    configs = [resolved(algorithm="cma_me", sigma0=sigma) for sigma in (0.1, 0.5, 1)]
    assert "initial step size 0.1, 0.5 or 1.0" in descriptions.algorithm("cma_me", configs)
    default = descriptions.algorithm("cma_me", [resolved(algorithm="cma_me")])
    assert "initial step size 0.5" in default  # the domain's step


def test_the_first_threshold_and_a_rate_of_zero_are_named():
    mae = resolved(algorithm="cma_mae")
    assert "first threshold at the lower end of the obj" in descriptions.algorithm("cma_mae", [mae])
    own = resolved(algorithm="cma_mae", learning_rate=0, threshold_min=0)
    said = descriptions.algorithm("cma_mae", [own], "Ours")
    assert said.startswith("Ours (") or said.startswith("Ours [")
    assert "archive learning rate 0.0" in said and "first threshold 0.0" in said
    assert "threshold" not in descriptions.algorithm("cma_me", [resolved(algorithm="cma_me")])


def test_a_task_promises_no_limits_of_its_objectives():
    geometry = {"solution_dim": 20, "ranges": [[-5, 5]], "measures": ["sum"]}
    geometry["objective_range"] = [-600.0, 300.0]
    said = descriptions.task(SimpleNamespace(config=resolved(), summary={"archive": geometry}))
    assert "with the measure sum (\u22125 to 5), objectives nominally from \u2212600 to 300" in said


def test_citations_as_text_and_as_latex():
    text = f"CMA-ME{cite(['fontaine2020covariance', 'hansen2016cma'])} has 50 % & more."
    assert plain(text) == "CMA-ME (Fontaine et al., 2020; Hansen, 2016) has 50 % & more."
    assert latex(text) == (
        r"CMA-ME~\citep{fontaine2020covariance,hansen2016cma} has 50 \% \& more."
    )
    assert plain(cite(["mouret2015illuminating"])) == " (Mouret & Clune, 2015)"
    assert plain(cite(["moelder2021sustainable"])) == " (Mölder et al., 2021)"


def test_bibtex_is_of_what_is_cited_and_nothing_else():
    entries = bibtex(f"a{cite(['holm1979simple'])} b{cite(['rocklin2015dask', 'holm1979simple'])}")
    assert re.findall(r"@\w+\{(\w+),", entries) == ["holm1979simple", "rocklin2015dask"]


def test_every_entry_is_whole():
    for key, entry in bibliography().items():
        assert entry.count("{") == entry.count("}"), key
        fields = re.findall(r"^  (\w+) = \{.+\},$", entry, re.MULTILINE)
        assert {"author", "title", "year"} <= set(fields), key
        assert len(entry.splitlines()) == len(fields) + 2, key
        assert {"booktitle", "journal", "eprint", "howpublished"} & set(fields), key
        assert re.fullmatch(r".+, \d{4}", plain(cite([key]))[2:-1]), key


@pytest.mark.skipif(not shutil.which("bibtex"), reason="BibTeX: apt-get install texlive-binaries")
def test_bibtex_reads_the_entries(tmp_path):
    (tmp_path / "all.bib").write_text("\n\n".join(bibliography().values()))
    (tmp_path / "all.aux").write_text("\\citation{*}\n\\bibstyle{plain}\n\\bibdata{all}\n")
    done = subprocess.run(["bibtex", "all"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "Warning" not in done.stdout, done.stdout


def test_the_digest_is_of_ids_and_archives_in_any_order():
    one, two = {"id": "a", "archive_digest": "1"}, {"id": "b", "archive_digest": "2"}
    assert methods.sweep_digest([one, two]) == methods.sweep_digest([two, one])
    assert methods.sweep_digest([one]) != methods.sweep_digest([one, two])


def test_hardware_names_no_host():
    one = {"workers": 2, "attempts": [{"host": "node17.cluster"}], "cpu_baseline": "avx2"}
    runs = [one, one | {"attempts": [{"host": "node18"}]}]
    said = methods.hardware(runs, 7200.0, {"the unseen seeds": 0.0})
    assert "2.0 core-hours on 2 machines" in said and "node" not in said
    said = methods.hardware(runs, 7200.0, {"the unseen seeds": 5400.0, "more": 60.0})
    assert "took 3.5 core-hours (1.5 core-hours of it for the unseen seeds and 1.0" in said


def test_settings_are_what_is_shared_and_what_differs():
    config = resolved(algorithm="cma_me", seed=1)
    other = resolved(algorithm="cma_mae", seed=2)
    runs = {name: SimpleNamespace(config=c) for name, c in (("a", config), ("b", other))}
    found = settings(runs)
    assert found.differing.columns == ["key", "a", "b"]  # more keys than groups
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in found.differing.rows}
    assert rows["algorithm.emitters.ranker"] == ["2imp", "imp"]
    assert rows["algorithm.archive.learning_rate"] == ["null", "0.01"]
    assert "seed" not in rows and not any(key.startswith("domain") for key in rows)
    shared = yaml.safe_load(found.common)
    assert shared["domain.function"] == "sphere" and "algorithm.name" not in shared
    alone = settings({"a": runs["a"]})
    assert alone.differing is None and "algorithm.name: cma_me" in alone.common


def test_times_have_the_unit_that_suits_them():
    assert [core_time(s) for s in (2.04, 90, 9000)] == [
        "2.0 core-seconds",
        "1.5 core-minutes",
        "2.5 core-hours",
    ]


def test_lists_and_spans():
    assert [listed([]), listed(["a"]), listed(["a", "b", "c"], "or")] == ["", "a", "a, b or c"]
    assert spans([1, 2, 3, 7, 101, 102]) == "1\u20133, 7, 101\u2013102"
    assert seeds_text(["10", 9, "9"]) == "seeds 9\u201310" and seeds_text([3]) == "seed 3"


def mixed(scheduler):
    """A resolved experiment of two kinds of emitters, on the LP sphere with its step of 0.5."""
    config = resolved(algorithm="cma_me")
    gaussian = {"type": "gaussian", "sigma": None, "initial_solutions": 0, "bounds": None}
    own = {"type": "my_emitters:Mine", "arguments": {}}
    config["algorithm"] |= {"emitters": [gaussian, own], "scheduler": scheduler}
    return config


def test_mixed_emitters_and_the_bandit_are_said_in_words():
    said = descriptions.algorithm("mine", [mixed({"type": "bandit", "zeta": 0.0})])
    assert "A bandit (UCB1; exploration weight 0.0) chooses those that work from" in said
    assert "Gaussian emitters (mutation scale 0.5) and emitters of the class my_" in said
    assert "In equal numbers" in descriptions.algorithm("mine", [mixed({"type": "all"})])
    assert "emitter 1" not in said and "#" not in said


def test_the_random_solutions_of_all_emitters_are_said_where_there_are_any():
    configs = {name: resolved(algorithm=name, first_batch=70) for name in ("map_elites", "cma_me")}
    said = {name: descriptions.algorithm(name, [config]) for name, config in configs.items()}
    assert "70 random initial solutions in all" in said["map_elites"]
    assert "per emitter" not in said["map_elites"] and "70" not in said["cma_me"]


STILL = "class {name}:\n    solution_dim = 2\n    measures = {{'x': (0, 1)}}\n"
STILL += "    objective_range = (0, 1)\n    fields = {{}}\n    step = 0.3\n"
STILL += "    is_deterministic = {same}\n    def evaluate(self, solutions, seeds): ...\n"

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
def test_a_class_of_the_users_says_its_step_and_whether_seeds_matter(tmp_path, monkeypatch, same):
    module = f"still_{same}".lower()
    (tmp_path / f"{module}.py").write_text(STILL.format(name="Still", same=same))
    monkeypatch.syspath_prepend(tmp_path)
    config = resolved(algorithm="map_elites")
    config["domain"] = {"type": f"{module}:Still", "name": "still", "arguments": {}, "step": None}
    assert "mutation scale 0.3" in descriptions.algorithm("map_elites", [config])
    said = descriptions.task(SimpleNamespace(config=config, summary={"archive": {}}))
    assert ("evaluation seed" in said) != same


def test_the_step_that_a_users_object_has_said_is_that_of_its_run(tmp_path, plugins):
    plugins("bent", OF_ITSELF)
    keys = {"domain": "bent:Bent", "archive": {"dims": [4]}, "num_emitters": 1, "batch_size": 3}
    out = compute_run({**keys, "algorithm": "map_elites", "iterations": 1}, tmp_path / "run")
    (said,) = methods._algorithms({"run": load(out)}, {})
    assert "mutation scale 0.7" in said


def test_parts_of_the_users_say_their_arguments_and_the_sizes_that_they_take():
    config = compose("arm_own_algorithm", {"reward": 2.0}).model_dump(mode="json")
    said = descriptions.algorithm("Curious", [config])
    assert "has batch size 100, mutation scale 0.1 and reward = 2.0" in said
    said = descriptions.algorithm("x", [compose("arm_own_archive").model_dump(mode="json")])
    assert "least = 80.0" in said
    grid = {"type": "grid", "cells": 4, "dims": [2, 2], "class": "Floor"}
    for about, words in (
        (grid, f"a grid archive of 2 {TIMES} 2 cells (Floor)"),
        ({**grid, "type": "proximity", "cells": None}, "an unstructured archive (Floor)"),
    ):
        assert descriptions.archive(SimpleNamespace(summary={"archive": about})) == words
