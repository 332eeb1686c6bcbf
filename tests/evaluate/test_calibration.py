"""The temperature against one that was planted, and against logistic regression without an intercept."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from radreason import InputError
from radreason.evaluate.calibration import fit_temperature, tempered
from radreason.evaluate.metrics import log_loss


def honest(k, n, seed=0):
    """Draw beliefs, and truths with just these probabilities."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 2.0), size=n)
    return p, np.array([rng.choice(k, p=row) for row in p])


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("planted", [0.4, 1.0, 3.0])
def test_beliefs_made_too_sure_or_too_shy_are_put_right(k, planted):
    p, y = honest(k, 8000)
    bent = softmax(planted * np.log(p), axis=1)
    assert fit_temperature(bent, y) == pytest.approx(planted, rel=0.06)
    np.testing.assert_allclose(tempered(bent, planted), p, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_of_two_states_it_is_one_over_the_slope_of_a_logistic_regression(seed):
    p, y = honest(2, 200, seed)
    logit = np.log(p[:, 1:] / p[:, :1])
    slope = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8).fit(logit, y).coef_[0, 0]
    assert fit_temperature(p, y) == pytest.approx(1 / slope, rel=1e-4)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("seed", range(15))
def test_on_the_cases_fitted_the_loss_is_never_worse(k, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.05), size=12)  # almost certain, and often wrong
    y = np.arange(12) % k
    before, after = log_loss(p, y), log_loss(tempered(p, fit_temperature(p, y)), y)
    assert after <= before + 1e-9
    assert after <= min(log_loss(tempered(p, t), y) for t in (0.06, 0.3, 3.0, 19.0)) + 1e-6


def test_beliefs_that_are_always_right_or_always_wrong_stop_at_the_bounds():
    y = np.arange(20) % 2
    p = np.where(np.eye(2)[y] == 1, 0.6, 0.4)
    assert fit_temperature(p, y) == pytest.approx(1 / 20, rel=1e-3)
    assert fit_temperature(1 - p, y) == pytest.approx(20, rel=1e-3)


def test_too_little_to_fit_leaves_the_beliefs_alone():
    p, y = np.tile([[0.99, 0.01], [0.1, 0.9], [0.8, 0.2]], (4, 1)), np.tile([0, 1, 1], 4)
    assert fit_temperature(p[:10], y[:10]) > 1
    assert fit_temperature(p[:9], y[:9]) == 1
    assert fit_temperature(p, np.where(np.arange(12) < 9, y, -1)) == 1
    assert fit_temperature(p, np.zeros_like(y)) == 1
    assert fit_temperature(p[:0], y[:0]) == 1
    assert fit_temperature(np.full_like(p, np.nan), y) == 1


def test_missing_truths_change_nothing():
    p, y = honest(3, 100)
    more = np.concatenate([p, np.eye(3)])
    assert fit_temperature(more, np.append(y, [-1, -1, -1])) == fit_temperature(p, y)


def test_zeros_stay_finite_and_gaps_stay_gaps():
    p = np.array([[0.0, 1.0], [np.nan, np.nan], [0.5, 0.5]], dtype=np.float32)
    got = tempered(p, 0.05)
    assert got[0] == pytest.approx([0, 1], abs=1e-200)
    assert np.isnan(got[1]).all()
    assert got[2].tolist() == [0.5, 0.5]
    assert tempered(p[:0], 2.0).shape == (0, 2)


@pytest.mark.parametrize("T", [0.0, -1.0, float("nan")])
def test_a_temperature_that_is_none_is_refused(T):
    with pytest.raises(InputError, match="temperature"):
        tempered(np.array([[0.5, 0.5]]), T)
