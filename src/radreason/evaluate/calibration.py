"""Temperature: one number that makes beliefs as sure as they are right (Guo et al. 2017).

It changes no ranking within a case, so no accuracy. Fit it on validation data; on the data it is
then reported for it would flatter.

    N cases, k states of one variable
"""

from __future__ import annotations

from math import exp, log

import numpy as np
from jaxtyping import Float, Float64, Int

from radreason.errors import InputError
from radreason.evaluate.metrics import FLOOR, known_cases

HOTTEST = 20.0
"""The highest temperature, and one over the lowest: beliefs that are always right ask for zero."""

MIN_CASES = 10
"""Fewer cases say nothing about how sure one may be."""


def fit_temperature(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Find the T of the lowest log loss of softmax(log(p) / T): above 1 for beliefs that are too sure.

    1.0 where there are fewer than ten cases with a truth, or one class only. Never worse than 1.0 on
    the cases fitted.
    """
    from scipy.optimize import minimize_scalar

    beliefs, truth = known_cases(beliefs, truth)
    if len(truth) < MIN_CASES or len(np.unique(truth)) < 2:
        return 1.0
    logits = np.log(np.maximum(beliefs, FLOOR))

    def loss(log_t: float) -> float:
        """Log loss without a floor: convex in 1/T, so that its one valley is found."""
        scaled = logits * exp(-log_t)
        scaled = scaled - scaled.max(axis=1, keepdims=True)
        true = scaled[np.arange(len(truth)), truth]
        return float((np.log(np.exp(scaled).sum(axis=1)) - true).mean())

    bound = log(HOTTEST)
    found = float(minimize_scalar(loss, bounds=(-bound, bound), method="bounded").x)
    return exp(found) if loss(found) < loss(0.0) else 1.0


def tempered(beliefs: Float[np.ndarray, "N k"], T: float) -> Float64[np.ndarray, "N k"]:
    """Give softmax(log(p) / T): flatter for T above 1, sharper below. Zeros count as 1e-12.

    >>> tempered(np.array([[0.1, 0.9]]), 0.5).round(3).tolist()
    [[0.012, 0.988]]
    """
    if not T > 0:
        raise InputError(found=f"temperature {T}", expected="a number above zero")
    scaled = np.log(np.maximum(beliefs.astype(np.float64), FLOOR)) / T
    weights = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    probabilities: Float64[np.ndarray, "N k"] = weights / weights.sum(axis=1, keepdims=True)
    return probabilities
