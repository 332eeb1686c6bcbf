"""The area under the ROC curve for many weightings of the same cases at once.

A case may count twice, half or not at all: with ones it is the statistic of Mann and Whitney, with the
counts of a resample it is that resample's area.

    N cases, R weightings of them
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64


def weighted_area(
    score: Float64[np.ndarray, " N"],
    positive: Bool[np.ndarray, " N"],
    weights: Float64[np.ndarray, "R N"],
) -> Float64[np.ndarray, " R"]:
    """How often a positive case scores more than another one, a tie being half; nan without both kinds.

    >>> weighted_area(np.array([0.1, 0.4, 0.4]), np.array([False, False, True]), np.ones((1, 3)))
    array([0.75])
    """
    if not len(score):
        return np.full(len(weights), np.nan)
    order = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.diff(score[order], prepend=-np.inf) > 0)
    starts = starts if len(starts) else np.array([0])
    in_order = weights[:, order]
    of_kind = [np.add.reduceat(in_order * kind[order], starts, axis=1) for kind in (positive, ~positive)]
    wins = of_kind[0] * (of_kind[1].cumsum(axis=1) - of_kind[1] / 2)
    pairs = of_kind[0].sum(axis=1) * of_kind[1].sum(axis=1)
    area: Float64[np.ndarray, " R"] = np.divide(
        wins.sum(axis=1), pairs, out=np.full(len(weights), np.nan), where=pairs > 0
    )
    return area
