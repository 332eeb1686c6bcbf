"""Bootstrap intervals against standard errors worked out; patients stay whole."""

import math

import numpy as np
import pytest

from radreason import InputError
from radreason.evaluate.intervals import Interval, bootstrap_by_patient, paired_bootstrap

Z = 1.959964
VALUES = np.random.default_rng(5).normal(10, 3, size=200)
SINGLE = [f"p{i}" for i in range(200)]


def mean_of(values):
    return lambda rows: values[rows].mean()


def test_for_a_mean_of_single_cases_it_is_the_normal_interval():
    got = bootstrap_by_patient(SINGLE, mean_of(VALUES), resamples=4000)
    error = VALUES.std() / math.sqrt(200)
    assert got.value == pytest.approx(VALUES.mean())
    assert got.low == pytest.approx(VALUES.mean() - Z * error, abs=0.1 * error)
    assert got.high == pytest.approx(VALUES.mean() + Z * error, abs=0.1 * error)


def test_another_level_is_another_width():
    got = bootstrap_by_patient(SINGLE, mean_of(VALUES), resamples=4000, level=0.5)
    assert got.high - got.low == pytest.approx(2 * 0.67449 * VALUES.std() / math.sqrt(200), rel=0.07)


@pytest.mark.parametrize("shuffled", [False, True])
def test_copies_of_a_case_within_a_patient_make_nothing_surer(shuffled):
    """Four copies each: resampling cases would halve the interval."""
    owners, values = np.repeat(np.arange(200), 4), np.repeat(VALUES, 4)
    if shuffled:
        order = np.random.default_rng(0).permutation(800)
        owners, values = owners[order], values[order]
    patients = [f"p{i}" for i in owners]
    together = bootstrap_by_patient(patients, mean_of(values), resamples=2000)
    as_if_single = bootstrap_by_patient([f"c{i}" for i in range(800)], mean_of(values), resamples=2000)
    alone = bootstrap_by_patient(SINGLE, mean_of(VALUES), resamples=2000)
    width = together.high - together.low
    assert width == pytest.approx(alone.high - alone.low, rel=0.1)
    assert width == pytest.approx(2 * (as_if_single.high - as_if_single.low), rel=0.1)


def test_a_patient_comes_with_all_cases_or_not_at_all():
    patients = ["b", "a", "b", "c", "b", "a"]
    seen = []

    def watch(rows):
        seen.append(sorted(rows.tolist()))
        return 0.0

    bootstrap_by_patient(patients, watch, resamples=200)
    assert seen[0] == [0, 1, 2, 3, 4, 5]
    for rows in seen[1:]:
        times = [rows.count(i) for i in range(6)]
        assert times[0] == times[2] == times[4]
        assert times[1] == times[5]
        assert times[0] + times[1] + times[3] == 3
    assert len({tuple(rows) for rows in seen[1:]}) == 10  # every way to draw three of three


def test_a_seed_gives_the_same_interval_again_and_another_another():
    first = bootstrap_by_patient(SINGLE, mean_of(VALUES), resamples=50, seed=1)
    assert bootstrap_by_patient(SINGLE, mean_of(VALUES), resamples=50, seed=1) == first
    assert bootstrap_by_patient(SINGLE, mean_of(VALUES), resamples=50, seed=2) != first


def test_resamples_without_a_figure_are_left_out():
    """Share of state 1, nan where only one class was drawn, as an AUC would be."""
    truth = np.array([0, 0, 0, 1])

    def share(rows):
        drawn = truth[rows]
        return float(drawn.mean()) if 0 < drawn.mean() < 1 else math.nan

    got = bootstrap_by_patient(["a", "b", "c", "d"], share, level=0.999)
    assert got == Interval(0.25, 0.25, 0.75)
    none = bootstrap_by_patient(["a", "b"], lambda rows: math.nan)
    assert all(math.isnan(x) for x in none)


def test_one_patient_or_none_has_no_interval():
    one = bootstrap_by_patient(["a", "a", "a"], mean_of(VALUES))
    assert one.value == pytest.approx(VALUES[:3].mean())
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert all(math.isnan(x) for x in bootstrap_by_patient([], mean_of(VALUES)))


def test_a_paired_difference_is_as_sure_as_the_differences_are():
    other = VALUES - 0.4 + np.random.default_rng(6).normal(0, 0.5, size=200)
    got = paired_bootstrap(SINGLE, mean_of(VALUES), mean_of(other), resamples=4000)
    error = (VALUES - other).std() / math.sqrt(200)
    assert got.value == pytest.approx(VALUES.mean() - other.mean())
    assert got.low == pytest.approx(got.value - Z * error, abs=0.1 * error)
    assert got.high == pytest.approx(got.value + Z * error, abs=0.1 * error)
    assert got.low > 0
    a, b = (bootstrap_by_patient(SINGLE, mean_of(v)) for v in (VALUES, other))
    assert a.low < b.high  # side by side the two seem alike


def test_a_statistic_against_itself_differs_by_nothing():
    assert paired_bootstrap(SINGLE, mean_of(VALUES), mean_of(VALUES), resamples=100) == Interval(0, 0, 0)


@pytest.mark.parametrize("wrong", [{"resamples": 0}, {"level": 0.0}, {"level": 1.0}])
def test_what_bounds_nothing_is_refused(wrong):
    with pytest.raises(InputError, match="resamples"):
        bootstrap_by_patient(SINGLE, mean_of(VALUES), **wrong)
