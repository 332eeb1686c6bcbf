"""Points of the ROC curve, for a plot: the area itself is `metrics.auc`.

N cases
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64, Int

from radreason.evaluate.metrics import known_cases


def roc(beliefs: Float[np.ndarray, "N 2"], truth: Int[np.ndarray, " N"]) -> Float64[np.ndarray, "points 2"]:
    """Give (1 - specificity, sensitivity) at every threshold, from calling nothing to calling everything.

    Cases of the same belief are called together: a tie is a slope. Without both classes there is no point.

    >>> roc(np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), np.array([0, 0, 1])).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.5, 1.0], [1.0, 1.0]]
    """
    beliefs, truth = known_cases(beliefs, truth)
    if len(np.unique(truth)) < 2:
        return np.empty((0, 2))
    order = np.argsort(-beliefs[:, 1], kind="stable")
    last_of_tie = np.append(np.diff(beliefs[order, 1]) != 0, True)
    counts = [np.cumsum(truth[order] == state)[last_of_tie] for state in (0, 1)]
    points = np.stack([count / count[-1] for count in counts], axis=1)
    curve: Float64[np.ndarray, "points 2"] = np.concatenate([np.zeros((1, 2)), points])
    return curve
