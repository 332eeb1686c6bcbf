"""Metrics of weighted cases, for many weightings at once: what a bootstrap asks two thousand times.

Each function takes beliefs and truths as its namesake in `metrics` does, and gives a statistic: a
function from weights (R, N) to R figures. A missing truth weighs nothing; what cannot be computed for a
weighting (one class only, nobody called positive) is nan for that weighting.

    N cases, k states of one variable, R weightings
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Float64, Int, Int64

from radreason.evaluate import metrics
from radreason.evaluate.area import weighted_area

Weights = Float64[np.ndarray, "R N"]
Figures = Float64[np.ndarray, " R"]
Statistic = Callable[[Weights], Figures]
Beliefs = Float[np.ndarray, "N k"]
Truth = Int[np.ndarray, " N"]
OfEachCase = Callable[[Float64[np.ndarray, "n k"], Int64[np.ndarray, " n"]], Float64[np.ndarray, " n"]]


def mean(of_each_case: OfEachCase, beliefs: Beliefs, truth: Truth) -> Statistic:
    """Weighted mean over the cases whose truth is known of what each of them scores."""
    rows, scores = _scored(of_each_case, beliefs, truth)
    return lambda weights: _ratio(weights[:, rows] @ scores, weights[:, rows].sum(axis=1))


def accuracy(beliefs: Beliefs, truth: Truth) -> Statistic:
    """Share of the cases whose most probable state is the true one."""
    return mean(metrics.hits, beliefs, truth)


def within_one(beliefs: Beliefs, truth: Truth) -> Statistic:
    """Share of the cases whose most probable grade is at most one from the true one."""
    return mean(metrics.near_hits, beliefs, truth)


def log_loss(beliefs: Beliefs, truth: Truth) -> Statistic:
    """Mean log loss."""
    return mean(metrics.log_losses, beliefs, truth)


def brier(beliefs: Beliefs, truth: Truth) -> Statistic:
    """Mean Brier score, from 0 to 2."""
    return mean(metrics.briers, beliefs, truth)


def auc(beliefs: Beliefs, truth: Truth) -> Statistic:
    """Area under the ROC curve; of more than two states the mean of those that a weighting has."""
    known, (p, y) = _known_rows(beliefs, truth), metrics.known_cases(beliefs, truth)
    states = [1] if beliefs.shape[1] == 2 else range(beliefs.shape[1])

    def areas(weights: Weights) -> Figures:
        of_state = np.array([weighted_area(p[:, s], y == s, weights[:, known]) for s in states])
        there = ~np.isnan(of_state)
        return _ratio(np.where(there, of_state, 0.0).sum(axis=0), there.sum(axis=0).astype(np.float64))

    return areas


def calls(beliefs: Beliefs, truth: Truth, threshold: float = 0.5) -> dict[str, Statistic]:
    """Sensitivity, specificity, precision and F of the cases called by P(1) >= threshold."""
    known, (p, y) = _known_rows(beliefs, truth), metrics.known_cases(beliefs, truth)
    called, sick = p[:, 1] >= threshold, y == 1

    def share(part: np.ndarray, whole: np.ndarray) -> Statistic:
        return lambda weights: _ratio(weights[:, known] @ part, weights[:, known] @ whole)

    f_share = share(2.0 * (called & sick), called.astype(np.float64) + sick)
    has_sick = share(sick * 1.0, sick * 1.0)
    return {
        "sensitivity": share(called & sick, sick * 1.0),
        "specificity": share(~called & ~sick, ~sick * 1.0),
        "precision": share(called & sick, called * 1.0),
        "f_score": lambda weights: f_share(weights) * has_sick(weights),
    }


def _scored(of_each_case: OfEachCase, beliefs: Beliefs, truth: Truth) -> tuple[np.ndarray, np.ndarray]:
    return _known_rows(beliefs, truth), of_each_case(*metrics.known_cases(beliefs, truth))


def _known_rows(beliefs: Beliefs, truth: Truth) -> Int64[np.ndarray, " n"]:
    """Rows that `metrics.known_cases` keeps."""
    rows = np.flatnonzero(truth >= 0)
    return rows if np.isfinite(beliefs[rows]).all() else rows[:0]


def _ratio(part: np.ndarray, whole: np.ndarray) -> Figures:
    ratio: Figures = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return ratio
