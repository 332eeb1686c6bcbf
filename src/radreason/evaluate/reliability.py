"""Are beliefs as often true as they say: the diagram, and what chance alone would make of it.

A calibration error is never zero: a perfectly calibrated model has one, too, because each bin holds a
few dozen cases. How large, follows from the beliefs alone, by drawing the truths from them.

    n cases, k states of one variable
"""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from radreason.errors import InputError
from radreason.evaluate.metrics import ECE_BINS, came_true, confidences, known_cases


class Bin(NamedTuple):
    """Cases of a bin, what they were believed on average, and how often that came true.

    A calibrated model's share would be from ``low`` to ``high`` in 95 of 100 such sets of cases.
    """

    cases: int
    believed: float
    came_true: float
    low: float
    high: float


class Band(NamedTuple):
    """The interval in which 95 of 100 calibration errors of a perfectly calibrated model lie."""

    low: float
    high: float


def reliability(
    beliefs: Float[np.ndarray, "N k"],
    truth: Int[np.ndarray, " N"],
    bins: int = 10,
    simulations: int = 2000,
    seed: int = 0,
) -> list[Bin]:
    """Give the bins that hold cases, from low confidence to high; see `metrics.ece` for what is believed."""
    beliefs, truth = known_cases(beliefs, truth)
    confidence, of_bin = confidences(beliefs, bins)
    hit = came_true(beliefs, truth)
    random, found = np.random.default_rng(seed), []
    for number in range(bins):
        inside = of_bin == number
        if n := int(inside.sum()):
            drawn = random.random((simulations, n)) < confidence[inside]
            low, high = np.quantile(drawn.mean(axis=1), [0.025, 0.975])
            found.append(
                Bin(n, float(confidence[inside].mean()), float(hit[inside].mean()), float(low), float(high))
            )
    return found


def calibrated_band(
    beliefs: Float[np.ndarray, "N k"],
    truth: Int[np.ndarray, " N"],
    bins: int = ECE_BINS,
    simulations: int = 2000,
    seed: int = 0,
) -> Band:
    """Bound the `metrics.ece` that these beliefs would have if each were as often true as it says.

    ``truth`` says only which cases count. nan where there is none.
    """
    if simulations < 1:
        raise InputError(found=f"{simulations} simulations", expected="one or more")
    beliefs, truth = known_cases(beliefs, truth)
    confidence, of_bin = confidences(beliefs, bins)
    if not len(truth):
        return Band(nan, nan)
    random, errors = np.random.default_rng(seed), np.zeros(simulations)
    for number in np.unique(of_bin):
        believed = confidence[of_bin == number]
        drawn = random.random((simulations, len(believed))) < believed
        errors += np.abs(drawn.sum(axis=1) - believed.sum())
    low, high = np.quantile(errors / len(truth), [0.025, 0.975])
    return Band(float(low), float(high))
