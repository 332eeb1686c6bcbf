"""Weighted metrics against repeated cases, scikit-learn, and their namesakes without weights."""

import math
import time

import numpy as np
import pytest
from sklearn import metrics as sk

from radreason.evaluate import metrics, weighted
from radreason.evaluate.area import weighted_area
from radreason.evaluate.intervals import Resampler

RANDOM = np.random.default_rng(3)
BELIEFS = RANDOM.dirichlet((1, 1), size=60).round(1)  # rounded: ties
BELIEFS[:, 0] = 1 - BELIEFS[:, 1]
TRUTH = np.where(RANDOM.random(60) < BELIEFS[:, 1], 1, 0)
TRUTH[[4, 17]] = -1
WEIGHTS = RANDOM.integers(0, 4, size=(7, 60)).astype(float)
GRADES = RANDOM.dirichlet((1, 1, 1, 1), size=60)
GRADE = RANDOM.integers(-1, 4, size=60)
NAMES = ["accuracy", "auc", "log_loss", "brier"]


def repeated(weights, *columns):
    """Put each case into the table as often as it weighs."""
    rows = np.repeat(np.arange(60), weights.astype(int))
    return [column[rows] for column in columns]


@pytest.mark.parametrize("name", [*NAMES, "within_one"])
@pytest.mark.parametrize(("beliefs", "truth"), [(BELIEFS, TRUTH), (GRADES, GRADE)], ids=["two", "four"])
def test_a_case_of_weight_three_is_a_case_three_times(name, beliefs, truth):
    got = getattr(weighted, name)(beliefs, truth)(WEIGHTS)
    for weights, figure in zip(WEIGHTS, got, strict=True):
        assert figure == pytest.approx(getattr(metrics, name)(*repeated(weights, beliefs, truth)), abs=1e-12)


def test_calls_are_those_of_the_cases_repeated():
    got = {name: figures(WEIGHTS) for name, figures in weighted.calls(BELIEFS, TRUTH, 0.4).items()}
    for n, weights in enumerate(WEIGHTS):
        expected = metrics.binary_metrics(*repeated(weights, BELIEFS, TRUTH), threshold=0.4)
        assert {name: figure[n] for name, figure in got.items()} == {
            name: pytest.approx(expected[name]) for name in got
        }


def test_scikit_learn_says_the_same():
    known = TRUTH >= 0
    for weights in WEIGHTS:
        by_sk = sk.roc_auc_score(TRUTH[known], BELIEFS[known, 1], sample_weight=weights[known])
        assert weighted.auc(BELIEFS, TRUTH)(weights[None])[0] == pytest.approx(by_sk)
        by_sk = sk.log_loss(TRUTH[known], np.clip(BELIEFS[known], 1e-12, 1), sample_weight=weights[known])
        assert weighted.log_loss(BELIEFS, TRUTH)(weights[None])[0] == pytest.approx(by_sk, rel=1e-6)


def test_what_cannot_be_computed_is_nan_for_that_weighting_alone():
    beliefs, truth = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]), np.array([0, 1, -1])
    weights = np.array([[1.0, 1, 1], [1, 0, 5], [0, 0, 5]])
    got = weighted.auc(beliefs, truth)(weights)
    assert got[0] == 1
    assert np.isnan(got[1:]).all()
    assert np.isnan(weighted.accuracy(beliefs, truth)(weights)).tolist() == [False, False, True]
    calls = {name: figure(weights) for name, figure in weighted.calls(beliefs, truth).items()}
    assert np.isnan(calls["sensitivity"]).tolist() == [False, True, True]
    assert np.isnan(calls["f_score"]).tolist() == [False, True, True]
    assert np.isnan(calls["precision"]).tolist() == [False, True, True]


def test_a_network_that_diverged_scores_nothing():
    beliefs = BELIEFS.copy()
    beliefs[0] = math.nan
    for name in NAMES:
        assert np.isnan(getattr(weighted, name)(beliefs, TRUTH)(WEIGHTS)).all()


def test_the_area_by_pairs():
    score, positive = np.array([0.3, 0.3, 0.1, 0.9, 0.3]), np.array([True, False, False, False, True])
    weights = np.array([[1.0, 2, 1, 0, 3]])
    wins = total = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            pair = weights[0, i] * weights[0, j]
            total += pair
            wins += pair * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
    assert weighted_area(score, positive, weights)[0] == pytest.approx(wins / total)
    assert np.isnan(weighted_area(np.empty(0), np.empty(0, bool), np.ones((2, 0)))).all()


def test_two_thousand_resamples_of_an_auc_take_seconds_not_minutes():
    beliefs = RANDOM.dirichlet((1, 1), size=616)
    truth = RANDOM.integers(2, size=616)
    start = time.process_time()
    Resampler([f"p{n // 2}" for n in range(616)], 2000)(weighted.auc(beliefs, truth)).interval()
    assert time.process_time() - start < 5
