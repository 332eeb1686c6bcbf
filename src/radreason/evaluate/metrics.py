"""Metrics of beliefs against truths, one variable at a time, where a truth may be missing.

A missing truth (-1) is left out: it never counts as a mistake, and never as a hit. What cannot be
computed is nan, never an exception: no case with a truth, one class where it takes two, or a belief
that is no number, for a network that diverged is not scored on the cases that it survived.

    N cases, k states of one variable
"""

from __future__ import annotations

from math import nan

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int64

from radreason.errors import InputError
from radreason.evaluate.area import weighted_area

FLOOR = 1e-12
"""No logarithm is taken of less: one certain mistake costs 27.6 nats, not infinitely many."""

ECE_BINS = 15
"""Bins of the calibration error, as in Guo et al. 2017."""


def known_cases(
    beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]
) -> tuple[Float64[np.ndarray, "n k"], Int64[np.ndarray, " n"]]:
    """Keep the cases whose truth is known; none at all if one of their beliefs is no number.

    >>> known_cases(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([-1, 1]))
    (array([[0.2, 0.8]]), array([1]))
    """
    states = beliefs.shape[1]
    if truth.size and not -1 <= truth.min() <= truth.max() < states:
        raise InputError(
            found=f"truths from {truth.min()} to {truth.max()}",
            expected=f"positions from 0 to {states - 1}, or -1 where the truth is missing",
        )
    known = truth >= 0
    rows, states_of = beliefs[known].astype(np.float64), truth[known].astype(np.int64)
    return (rows, states_of) if np.isfinite(rows).all() else (rows[:0], states_of[:0])


def accuracy(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Share of cases whose most probable state is the true one; of equals the first counts.

    >>> accuracy(np.array([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]]), np.array([0, 1, -1]))
    0.5
    """
    return _mean(hits(*known_cases(beliefs, truth)))


def hits(beliefs: Float64[np.ndarray, "n k"], truth: Int64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Whether the most probable state is the true one, of each case whose truth is known: 1 or 0."""
    right: Float64[np.ndarray, " n"] = (beliefs.argmax(axis=1) == truth).astype(np.float64)
    return right


def within_one(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Share of cases whose most probable grade is at most one from the true one: as near as readers are."""
    return _mean(near_hits(*known_cases(beliefs, truth)))


def near_hits(
    beliefs: Float64[np.ndarray, "n k"], truth: Int64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """Whether the most probable grade is at most one from the true one, of each case: 1 or 0."""
    near: Float64[np.ndarray, " n"] = (np.abs(beliefs.argmax(axis=1) - truth) <= 1).astype(np.float64)
    return near


def auc(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Area under the ROC curve: how often a case of the class is believed more than one of another.

    Two states: the probability of the last. More: the mean of one state versus the rest over the
    states that some cases have and others have not; each weighs the same, however rare it is, and a
    state that no case has is left out.

    >>> auc(np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), np.array([0, 1, 1]))
    1.0
    """
    beliefs, truth = known_cases(beliefs, truth)
    size = beliefs.shape[1]
    areas = [_area(beliefs[:, state], truth == state) for state in ([1] if size == 2 else range(size))]
    return _mean(np.array([area for area in areas if area == area]))


def sensitivity(
    beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"], threshold: float = 0.5
) -> float:
    """Share of the cases of state 1 that are called so: P(1) >= threshold."""
    tp, _, fn, _ = _confusion(beliefs, truth, threshold)
    return _share(tp, tp + fn)


def specificity(
    beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"], threshold: float = 0.5
) -> float:
    """Share of the cases of state 0 that are called so: P(1) < threshold."""
    _, fp, _, tn = _confusion(beliefs, truth, threshold)
    return _share(tn, tn + fp)


def precision(
    beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"], threshold: float = 0.5
) -> float:
    """Share of what is called state 1 that is; nan, not zero, where nothing is called so."""
    tp, fp, _, _ = _confusion(beliefs, truth, threshold)
    return _share(tp, tp + fp)


def f_score(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"], threshold: float = 0.5) -> float:
    """F1, the harmonic mean of precision and sensitivity, as 2 TP / (2 TP + FP + FN).

    Zero where cases have state 1 and none is called so; nan where no case has it, for then there is
    no sensitivity.
    """
    tp, fp, fn, _ = _confusion(beliefs, truth, threshold)
    return _share(2 * tp, 2 * tp + fp + fn) if tp + fn else nan


def binary_metrics(
    beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"], threshold: float = 0.5
) -> dict[str, float]:
    """Compute the paper's six; the accuracy, too, is that of the calls at the threshold.

    >>> binary_metrics(np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), np.array([0, 1, 1]), threshold=0.3)
    {'accuracy': 1.0, 'sensitivity': 1.0, 'specificity': 1.0, 'auc': 1.0, 'precision': 1.0, 'f_score': 1.0}
    """
    tp, fp, fn, tn = _confusion(beliefs, truth, threshold)
    return {
        "accuracy": _share(tp + tn, tp + fp + fn + tn),
        "sensitivity": sensitivity(beliefs, truth, threshold),
        "specificity": specificity(beliefs, truth, threshold),
        "auc": auc(beliefs, truth),
        "precision": precision(beliefs, truth, threshold),
        "f_score": f_score(beliefs, truth, threshold),
    }


def best_threshold(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Find the threshold of the highest balanced accuracy, the mean of sensitivity and specificity.

    Choose it on validation data, never on what it is reported for. It lies midway between two
    neighbouring probabilities; of equally good ones the nearest to 0.5 wins, of two as near the
    lower, which misses less. Where one class is missing, or where no threshold beats calling all
    cases alike, it is 0.5.

    >>> round(best_threshold(np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), np.array([0, 0, 1])), 6)
    0.3
    """
    _two_states(beliefs)
    beliefs, truth = known_cases(beliefs, truth)
    sick, well = int((truth == 1).sum()), int((truth == 0).sum())
    values, at = np.unique(beliefs[:, 1], return_inverse=True)
    if not sick or not well or len(values) < 2:
        return 0.5
    sick_below = np.bincount(at, weights=truth == 1).cumsum()[:-1]
    well_below = np.bincount(at, weights=truth == 0).cumsum()[:-1]
    # Both shares times sick * well: whole numbers, so that equally good is exactly equal.
    merit = (sick - sick_below) * well + well_below * sick
    if merit.max() <= sick * well:
        return 0.5
    low, high = values[:-1], values[1:]
    middle = (low + high) / 2
    middle = np.where(middle > low, middle, high)  # between neighbouring floats there is no middle
    best = middle[merit == merit.max()]
    return float(best[np.abs(best - 0.5).argmin()])


def log_loss(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Mean of minus the natural logarithm of the true state's probability, taken as 1e-12 at least."""
    return _mean(log_losses(*known_cases(beliefs, truth)))


def log_losses(
    beliefs: Float64[np.ndarray, "n k"], truth: Int64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """Give the log loss of each case whose truth is known."""
    of_truth = beliefs[np.arange(len(truth)), truth]
    losses: Float64[np.ndarray, " n"] = -np.log(np.maximum(of_truth, FLOOR))
    return losses


def brier(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Squared difference to the truth, summed over the states, mean over the cases: from 0 to 2.

    This is Brier's own score; for two states it is twice the one that looks at state 1 alone.

    >>> brier(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 1]))
    1.25
    """
    return _mean(briers(*known_cases(beliefs, truth)))


def briers(beliefs: Float64[np.ndarray, "n k"], truth: Int64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Give the Brier score of each case whose truth is known."""
    scores: Float64[np.ndarray, " n"] = ((beliefs - _one_hot(truth, beliefs.shape[1])) ** 2).sum(axis=1)
    return scores


def ece(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"], bins: int = ECE_BINS) -> float:
    """Expected calibration error: how far confidence is from frequency, over bins of equal width.

    Two states: the probability of state 1 against how often state 1 is true, so that a small
    probability is held to its word, too. More: the probability of the most probable state against
    how often it is the true one. A bin holds its lower edge; the last one holds 1 as well. A bin
    weighs as many cases as it holds.
    """
    beliefs, truth = known_cases(beliefs, truth)
    confidence, of_bin = confidences(beliefs, bins)
    if not len(truth):
        return nan
    gaps = confidence - came_true(beliefs, truth)
    return float(np.abs(np.bincount(of_bin, weights=gaps)).sum() / len(truth))


def confidences(
    beliefs: Float64[np.ndarray, "n k"], bins: int = ECE_BINS
) -> tuple[Float64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
    """Give the probability of each case that `ece` holds to its word, and the bin that it falls in."""
    if bins < 1:
        raise InputError(found=f"{bins} bins", expected="one or more")
    confidence = beliefs[:, 1] if beliefs.shape[1] == 2 else beliefs.max(axis=1)
    return confidence, np.searchsorted(np.arange(1, bins) / bins, confidence, side="right")


def came_true(
    beliefs: Float64[np.ndarray, "n k"], truth: Int64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """Whether what has that probability is so: state 1 of two, otherwise the most probable state."""
    if beliefs.shape[1] > 2:
        return hits(beliefs, truth)
    sick: Float64[np.ndarray, " n"] = (truth == 1).astype(np.float64)
    return sick


def ranked_probability_score(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Squared difference of the cumulative distributions, mean over the k - 1 borders and the cases.

    For ordered states: belief two grades away costs more than belief next door. Through the mean
    over borders it runs from 0 to 1 for any k; for two states it is half of `brier`.
    """
    beliefs, truth = known_cases(beliefs, truth)
    excess = (beliefs - _one_hot(truth, beliefs.shape[1])).cumsum(axis=1)[:, :-1]
    return _mean((excess**2).mean(axis=1))


def spearman(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> float:
    """Rank correlation of the expected grade with the true one; nan where one of them never changes."""
    from scipy.stats import rankdata

    beliefs, truth = known_cases(beliefs, truth)
    # Not a matrix product: it may round equal rows differently, and ranks see the last digit.
    expected = (beliefs * np.arange(beliefs.shape[1])).sum(axis=1)
    if len(np.unique(expected)) < 2 or len(np.unique(truth)) < 2:
        return nan
    return float(np.corrcoef(rankdata(expected), rankdata(truth))[0, 1])


def _confusion(
    beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"], threshold: float
) -> tuple[int, int, int, int]:
    """Count true and false positives, false and true negatives."""
    _two_states(beliefs)
    beliefs, truth = known_cases(beliefs, truth)
    called, sick = beliefs[:, 1] >= threshold, truth == 1
    return (
        int((called & sick).sum()),
        int((called & ~sick).sum()),
        int((~called & sick).sum()),
        int((~called & ~sick).sum()),
    )


def _two_states(beliefs: Float[np.ndarray, "N k"]) -> None:
    if beliefs.shape[1] != 2:
        raise InputError(
            found=f"a variable of {beliefs.shape[1]} states",
            expected="two: a threshold on the probability of state 1 calls a case the one or the other",
        )


def _area(score: Float64[np.ndarray, " N"], positive: Bool[np.ndarray, " N"]) -> float:
    """Area under one ROC curve, as the statistic of Mann and Whitney: a tie is half a win."""
    return float(weighted_area(score, positive, np.ones((1, len(score))))[0])


def _one_hot(truth: Int64[np.ndarray, " N"], size: int) -> Float64[np.ndarray, "N k"]:
    rows: Float64[np.ndarray, "N k"] = np.eye(size)[truth]
    return rows


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else nan


def _share(part: int, whole: int) -> float:
    return part / whole if whole else nan
