"""Bootstrap intervals against standard errors worked out; patients stay whole."""

import math

import numpy as np
import pytest

from radreason import InputError
from radreason.evaluate import intervals
from radreason.evaluate.intervals import Interval, Resampler

Z = 1.959964
VALUES = np.random.default_rng(5).normal(10, 3, size=200)
SINGLE = tuple(f"p{i}" for i in range(200))


def mean_of(values):
    return lambda weights: weights @ values / weights.sum(axis=1)


def interval(patients, statistic, resamples=2000, seed=0, level=0.95):
    return Resampler(patients, resamples, seed)(statistic).interval(level)


def test_for_a_mean_of_single_cases_it_is_the_normal_interval():
    got = interval(SINGLE, mean_of(VALUES), resamples=4000)
    error = VALUES.std() / math.sqrt(200)
    assert got.value == pytest.approx(VALUES.mean())
    assert got.low == pytest.approx(VALUES.mean() - Z * error, abs=0.1 * error)
    assert got.high == pytest.approx(VALUES.mean() + Z * error, abs=0.1 * error)


def test_another_level_is_another_width():
    got = interval(SINGLE, mean_of(VALUES), resamples=4000, level=0.5)
    assert got.high - got.low == pytest.approx(2 * 0.67449 * VALUES.std() / math.sqrt(200), rel=0.07)


@pytest.mark.parametrize("shuffled", [False, True])
def test_copies_of_a_case_within_a_patient_make_nothing_surer(shuffled):
    """Four copies each: resampling cases would halve the interval."""
    owners, values = np.repeat(np.arange(200), 4), np.repeat(VALUES, 4)
    if shuffled:
        order = np.random.default_rng(0).permutation(800)
        owners, values = owners[order], values[order]
    together = interval([f"p{i}" for i in owners], mean_of(values))
    as_if_single = interval([f"c{i}" for i in range(800)], mean_of(values))
    alone = interval(SINGLE, mean_of(VALUES))
    width = together.high - together.low
    assert width == pytest.approx(alone.high - alone.low, rel=0.1)
    assert width == pytest.approx(2 * (as_if_single.high - as_if_single.low), rel=0.1)


@pytest.mark.parametrize("at_once", [6, 7 * 6, intervals.AT_ONCE])
def test_a_patient_comes_with_all_cases_or_not_at_all(monkeypatch, at_once):
    monkeypatch.setattr(intervals, "AT_ONCE", at_once)
    drawn = np.concatenate(list(Resampler(["b", "a", "b", "c", "b", "a"], 200).weights()))
    assert drawn.shape == (200, 6)
    assert (drawn[:, [2, 4]] == drawn[:, [0]]).all()
    assert (drawn[:, 5] == drawn[:, 1]).all()
    assert (drawn[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert len({tuple(row) for row in drawn}) == 10  # every way to draw three of three


def test_how_many_are_drawn_at_once_changes_nothing(monkeypatch):
    whole = np.concatenate(list(Resampler(SINGLE, 50).weights()))
    monkeypatch.setattr(intervals, "AT_ONCE", 600)
    pieces = list(Resampler(SINGLE, 50).weights())
    assert [len(piece) for piece in pieces] == [3] * 16 + [2]
    assert np.array_equal(np.concatenate(pieces), whole)


def test_a_seed_gives_the_same_interval_again_and_another_another():
    first = interval(SINGLE, mean_of(VALUES), resamples=50, seed=1)
    assert interval(SINGLE, mean_of(VALUES), resamples=50, seed=1) == first
    assert interval(SINGLE, mean_of(VALUES), resamples=50, seed=2) != first


def test_resamples_without_a_figure_are_left_out():
    """Share of state 1, nan where only one class was drawn, as an AUC would be."""
    truth = np.array([0, 0, 0, 1])

    def share(weights):
        drawn = weights @ truth / 4
        return np.where((drawn > 0) & (drawn < 1), drawn, math.nan)

    assert interval(["a", "b", "c", "d"], share, level=0.999) == Interval(0.25, 0.25, 0.75)
    none = interval(["a", "b"], lambda weights: np.full(len(weights), math.nan))
    assert all(math.isnan(x) for x in none)


def test_one_patient_or_none_has_no_interval():
    one = interval(["a", "a", "a"], mean_of(VALUES[:3]))
    assert one.value == pytest.approx(VALUES[:3].mean())
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert all(math.isnan(x) for x in interval([], mean_of(VALUES)))


def test_a_paired_difference_is_as_sure_as_the_differences_are():
    other = VALUES - 0.4 + np.random.default_rng(6).normal(0, 0.5, size=200)
    resampler = Resampler(SINGLE, 4000)
    a, b = resampler(mean_of(VALUES)), resampler(mean_of(other))
    got = (a - b).interval()
    error = (VALUES - other).std() / math.sqrt(200)
    assert got.value == pytest.approx(VALUES.mean() - other.mean())
    assert got.low == pytest.approx(got.value - Z * error, abs=0.1 * error)
    assert got.high == pytest.approx(got.value + Z * error, abs=0.1 * error)
    assert got.low > 0
    assert a.interval().low < b.interval().high  # side by side the two seem alike


def test_a_statistic_against_itself_differs_by_nothing():
    once = Resampler(SINGLE, 100)(mean_of(VALUES))
    assert (once - once).interval() == Interval(0, 0, 0)


@pytest.mark.parametrize("wrong", [{"resamples": 0}, {"level": 0.0}, {"level": 1.0}])
def test_what_bounds_nothing_is_refused(wrong):
    with pytest.raises(InputError, match=r"resamples|level"):
        interval(SINGLE, mean_of(VALUES), **wrong)
