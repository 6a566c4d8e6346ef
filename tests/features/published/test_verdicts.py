"""The verdicts on published means: their errors in simulated files, and the deciding seeds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qdsweep.features.published import verdicts
from qdsweep.features.published.verdicts import judge

SEEDS, TRIALS, MARGIN = 5, 20, 5.0
DRAWS = {
    "normal": lambda rng, size: rng.normal(0, 1, size),
    "success": lambda rng, size: rng.integers(0, 2, size) - 0.5,
}


def summaries(runs):
    return np.stack([runs.mean(-1), runs.std(-1, ddof=1), np.full(len(runs), runs.shape[-1])], 1)


def words_of(rng, k, *, apart=0.0, margin=MARGIN, is_known=True, draw=DRAWS["normal"]):
    """Judges `k` means whose expectations are `apart`."""
    published = summaries(100 + draw(rng, (k, TRIALS)))
    if not is_known:
        published[:, 1] = math.nan
    ours = summaries(100 + apart + draw(rng, (k, SEEDS)))
    return judge(ours, published, np.full(k, margin)).words


def false_equivalent(*, is_known):
    """The share of means called equivalent that differ by exactly the margin."""
    words = words_of(np.random.default_rng(1), 8000, apart=MARGIN, is_known=is_known)
    return words.count("equivalent") / len(words)


def false_differs(k, **keys):
    """The share of files with `k` equal means in which one is called different."""
    rng = np.random.default_rng(2)
    files = [words_of(rng, k, margin=1e-9, **keys) for _ in range(500)]
    return sum("differs" in words for words in files) / len(files)


def variances_of_two(ours, published):
    spread = ours[1] if math.isnan(published[1]) else published[1]
    return np.array([ours[1] ** 2 / ours[2], spread**2 / published[2]]) + 1e-30


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(verdicts, "_fewest", lambda *_: math.nan)


LIMIT = 0.05 + 3 * math.sqrt(0.05 * 0.95 / 8000)
FAMILY_LIMIT = 0.05 + 3 * math.sqrt(0.05 * 0.95 / 500)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("is_known", [True, False])
def test_a_difference_of_the_margin_is_called_equivalent_in_5_percent(is_known, monkeypatch):
    assert false_equivalent(is_known=is_known) < LIMIT
    if is_known:  # the rule of earlier versions: the difference is within a tolerance
        monkeypatch.setattr(verdicts, "_half", lambda *_: 0.0)
    else:  # as if the deviation were estimated twice
        monkeypatch.setattr(verdicts, "_variances", variances_of_two)
    assert false_equivalent(is_known=is_known) > LIMIT


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("is_known", [True, False])
def test_equal_means_are_called_different_in_5_percent_of_the_files(kind, is_known, monkeypatch):
    keys = {"draw": DRAWS[kind], "is_known": is_known, "k": 20 if kind == "normal" else 2}
    assert false_differs(**keys) < FAMILY_LIMIT
    if kind == "normal":
        monkeypatch.setattr(verdicts, "holm", lambda p: p)
    else:  # five equal runs have no deviation
        monkeypatch.setattr(verdicts, "_variances", variances_of_two)
    assert false_differs(**keys) > FAMILY_LIMIT


@settings(max_examples=40, deadline=None)
@given(
    mean=st.floats(90, 110),
    deviation=st.floats(0, 10),
    spread=st.none() | st.floats(0, 10),
    seeds=st.integers(3, 30),
    others=st.integers(0, 5),
)
def test_the_deciding_seeds_are_the_fewest_that_decide(mean, deviation, spread, seeds, others):
    """`others`: values of the same file that are undecided whatever their number of seeds."""
    other = [[104.9, 50.0, 10]] * others

    def judged(n):
        ours = np.array([[mean, deviation, n], *other])
        published = np.array([[100.0, spread, TRIALS], *[[100.0, 50.0, TRIALS]] * others], float)
        verdict = judge(ours, published, np.full(len(ours), MARGIN))
        return verdict.words[0], verdict.seeds[0]

    word, needed = judged(seeds)
    if word != "undecided":
        assert math.isnan(needed)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "_fewest", lambda *_: math.nan)
        end = verdicts.MOST_SEEDS + 1 if math.isnan(needed) else int(needed)
        tried = sorted({*range(seeds, end, max((end - seeds) // 20, 1)), end - 1})
        assert {judged(n)[0] for n in tried} == {"undecided"}
        if not math.isnan(needed):
            assert judged(end)[0] != "undecided"


def test_no_number_of_seeds_decides_where_the_published_mean_is_too_uncertain():
    verdict = judge(np.array([[104.0, 1.0, 5]]), np.array([[100.0, 9.0, 20]]), np.array([MARGIN]))
    assert verdict.words == ["undecided"] and math.isnan(verdict.seeds[0])
