"""Reliability against counting, the band against what calibrated models show, ROC against scikit-learn."""

import math

import numpy as np
import pytest
from sklearn import metrics as sk

from radreason import InputError
from radreason.evaluate import metrics
from radreason.evaluate.reliability import calibrated_band, reliability
from radreason.evaluate.roc import roc


def two(p):
    return np.stack([1 - p, p], axis=1)


def test_bins_by_hand():
    beliefs = two(np.array([0.05, 0.05, 0.35, 0.32, 0.9, 1.0, 0.95]))
    truth = np.array([0, 1, 0, 1, 1, 1, -1])
    got = reliability(beliefs, truth)
    assert [b.cases for b in got] == [2, 2, 2]
    assert [b.believed for b in got] == pytest.approx([0.05, 0.335, 0.95])
    assert [b.came_true for b in got] == [0.5, 0.5, 1.0]


def test_the_bars_are_those_of_the_binomial():
    beliefs = two(np.full(400, 0.25))
    (one,) = reliability(beliefs, np.zeros(400, int), simulations=4000)
    error = math.sqrt(0.25 * 0.75 / 400)
    assert one.low == pytest.approx(0.25 - 1.96 * error, abs=0.004)
    assert one.high == pytest.approx(0.25 + 1.96 * error, abs=0.004)


@pytest.mark.parametrize("states", [2, 4])
def test_nineteen_of_twenty_calibrated_models_lie_within_the_band(states):
    random, inside = np.random.default_rng(0), 0
    for trial in range(200):
        beliefs = random.dirichlet(np.ones(states), size=150)
        truth = (random.random((150, 1)) > beliefs.cumsum(axis=1)).sum(axis=1)
        band = calibrated_band(beliefs, truth, simulations=200, seed=trial)
        inside += band.low <= metrics.ece(beliefs, truth) <= band.high
    assert 180 <= inside <= 198


def test_a_model_that_is_too_sure_lies_outside():
    random = np.random.default_rng(0)
    p = random.random(600)
    truth = (random.random(600) < p).astype(int)
    sure = two(p**3 / (p**3 + (1 - p) ** 3))
    assert metrics.ece(sure, truth) > calibrated_band(sure, truth).high
    assert metrics.ece(two(p), truth) < calibrated_band(two(p), truth).high


def test_missing_truths_do_not_count():
    p = np.linspace(0.05, 0.95, 40)
    truth = np.arange(40) % 2
    more = np.concatenate([truth, [-1, -1]])
    beliefs = two(np.concatenate([p, [0.5, 0.5]]))
    assert calibrated_band(beliefs, more) == calibrated_band(two(p), truth)
    assert reliability(beliefs, more) == reliability(two(p), truth)


def test_without_a_case_there_is_no_band():
    nobody = np.array([-1, -1])
    assert all(math.isnan(x) for x in calibrated_band(two(np.array([0.2, 0.4])), nobody))
    assert reliability(two(np.array([0.2, 0.4])), nobody) == []
    with pytest.raises(InputError, match="simulations"):
        calibrated_band(two(np.array([0.2])), np.array([1]), simulations=0)


def test_the_curve_is_that_of_scikit_learn():
    random = np.random.default_rng(1)
    p, truth = random.random(80).round(1), random.integers(2, size=80)
    fpr, tpr, _ = sk.roc_curve(truth, p, drop_intermediate=False)
    assert np.allclose(roc(two(p), truth), np.stack([fpr, tpr], axis=1))
    assert len(roc(two(p), np.ones(80, int))) == 0
