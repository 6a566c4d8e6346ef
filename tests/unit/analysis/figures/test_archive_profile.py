"""Archive profiles equal those of pyribs; performance profiles over tasks."""

import numpy as np
from looks import data_of, runs_of

from qdsweep.analysis.figures.archive_profile import (
    archive_profile,
    archive_profiles,
    mean_profiles,
    performance_profiles,
    reported_run,
)


def test_a_profile_counts_elites_of_at_least_an_objective():
    objectives = np.array([3.0, 1.0, 2.0, 2.0])
    counts = archive_profile(objectives, np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]))
    assert list(counts) == [4, 4, 3, 3, 1, 1, 0]
    assert list(archive_profile(np.empty(0), np.array([0.0]))) == [0]


def test_mean_profiles_are_those_of_pyribs(made):
    from matplotlib.figure import Figure
    from ribs.visualize import aggregate_cdf

    data = data_of(made)
    rows = data.with_results
    rows = rows[rows["group"] == "CMA-ME, iterations 12"]
    runs = [reported_run(runs_of(made), row) for _, row in rows.iterrows()]
    ours = mean_profiles({"cma_me": runs})
    limits = ours["objective"].iloc[[0, -1]]
    line, band = aggregate_cdf(
        [run.archive for run in runs],
        Figure().subplots(),
        cumulative=-1,
        bins=200,
        vmin=limits.iloc[0],
        vmax=limits.iloc[1],
        errorbar="se",
    )
    np.testing.assert_allclose(ours["elites_mean"][:-1], line.get_data().values)
    np.testing.assert_allclose(
        (ours["elites_mean"] + ours["elites_se"])[:-1], band.get_data().values
    )


def test_a_profile_starts_at_the_filled_cells_of_its_budget(made):
    data = data_of(made)
    for group, part in archive_profiles(data).data.groupby("group"):
        rows = data.with_results[data.with_results["group"] == group]
        above = rows["num_elites"].mean()  # thresholds start at the lowest objective
        assert part["elites_mean"].iloc[0] == above
        assert set(part["n"]) == {2}


def test_performance_profiles_are_drawn_for_several_tasks(made, tasks, snapshot):
    assert performance_profiles(data_of(made)) == []
    (drawn,) = performance_profiles(data_of(tasks))
    assert list(drawn.data["algorithm"].unique()) == ["MAP-Elites", "CMA-ME"]
    assert drawn.caption == snapshot
    lines = drawn.figure.subfigs[0].axes[0].lines
    assert [line.get_label() for line in lines] == ["MAP-Elites", "CMA-ME"]
    np.testing.assert_array_equal(
        lines[0].get_ydata(), drawn.data["fraction"][: len(drawn.data) // 2]
    )
