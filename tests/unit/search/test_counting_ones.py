"""The problem on which BOHB was published, in a short form; all of it: benchmarks/."""

import statistics

from counting_ones import searches


def test_hyperband_is_before_random_search_and_with_tpe_before_itself():
    found = [searches(seed, rounds=2) for seed in range(5)]
    regret = {name: statistics.fmean(one[name].regret for one in found) for name in found[0]}
    assert regret["Hyperband"] < 0.8 * regret["random search"]
    assert regret["TPE + Hyperband"] < 0.6 * regret["Hyperband"]
    for one in found:  # at equal cost
        costs = [result.wholes for result in one.values()]
        assert max(costs) - min(costs) < 0.5
