"""Tests between methods, against statsmodels' and scipy's, and by hand."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats import contingency_tables

from radreason import InputError
from radreason.evaluate.paired_tests import corrected_t, mcnemar


def test_mcnemar_by_hand():
    """Nine cases differ, one of them for the second: 2 (1 + 9) / 2^9."""
    first = np.array([True] * 8 + [False] + [True] * 30)
    second = np.array([False] * 8 + [True] + [True] * 30)
    assert mcnemar(first, second) == (8, 1, pytest.approx(2 * (1 + 9) / 2**9))


def test_mcnemar_is_that_of_statsmodels():
    random = np.random.default_rng(0)
    for _ in range(10):
        first, second = random.random((2, 80)) < [[0.8], [0.7]]
        table = [[np.sum(first & second), np.sum(first & ~second)], [np.sum(~first & second), 0]]
        got = mcnemar(first, second)
        assert got.p == pytest.approx(contingency_tables.mcnemar(table, exact=True).pvalue)
        assert (got.only_first, got.only_second) == (table[0][1], table[1][0])


def test_methods_that_get_the_same_right_do_not_differ():
    right = np.array([True, False, True])
    assert mcnemar(right, right) == (0, 0, 1.0)


def test_without_overlap_it_is_the_paired_t_test():
    random = np.random.default_rng(1)
    a, b = random.normal(size=(2, 12))
    got, expected = corrected_t((a - b).tolist(), 0.0), stats.ttest_rel(a, b)
    assert got.t == pytest.approx(expected.statistic)
    assert got.p == pytest.approx(expected.pvalue)


def test_corrected_t_by_hand():
    """Mean 2, variance 1 of three folds, half as many tested as trained: t = 2 / sqrt(1/3 + 1/2)."""
    got = corrected_t([1.0, 2.0, 3.0], 0.5)
    assert got.difference == 2
    assert got.t == pytest.approx(2 / math.sqrt(5 / 6))
    # Student's t of two degrees of freedom has a distribution function in closed form.
    assert got.p == pytest.approx(1 - got.t / math.sqrt(2 + got.t**2))


def test_under_no_difference_the_corrected_test_errs_as_often_as_it_says():
    """Folds share most of their training cases: a common part makes differences alike."""
    random, wrong = np.random.default_rng(2), {0.0: 0, 0.25: 0}
    for _ in range(400):
        rho = 0.25 / 1.25  # what the correction assumes: tested over all cases
        common = random.normal() * math.sqrt(rho)
        differences = common + random.normal(size=15) * math.sqrt(1 - rho)
        for ratio in wrong:
            wrong[ratio] += corrected_t(differences.tolist(), ratio).p < 0.05
    assert wrong[0.0] > 100
    assert wrong[0.25] < 35


def test_a_fold_without_a_figure_is_left_out():
    assert corrected_t([1.0, math.nan, 2.0, 3.0], 0.5) == corrected_t([1.0, 2.0, 3.0], 0.5)


def test_too_few_folds_or_none_that_vary_have_no_test():
    assert corrected_t([0.0, 0.0], 0.2) == (0.0, pytest.approx(math.nan, nan_ok=True), 1.0)
    for differences in ([], [0.3], [0.3, 0.3]):
        assert math.isnan(corrected_t(differences, 0.2).p)
    with pytest.raises(InputError, match="ratio"):
        corrected_t([1.0, 2.0], -1)
