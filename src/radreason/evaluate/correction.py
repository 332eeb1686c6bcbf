"""Correction at test time: how good a diagnosis is after 0, 1, 2 ... of its attributes were confirmed.

One reader of a case plays the radiologist, the other readers are the truth. That play is repeated with other
readers, and for every repeat of a cross-validation; figures are the mean over plays, and their
intervals resample patients. What is compared, is compared on the same plays and the same resamples.

Shape letters: P plays, N cases, Q + 1 numbers of answers, d states of the disease, W resamples, R readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from radreason.errors import InputError
from radreason.evaluate.intervals import Interval
from radreason.evaluate.metrics import FLOOR

METRICS = ("auc", "accuracy", "log_loss")


@dataclass(frozen=True, eq=False)
class Plays:
    """Who plays the radiologist of each case in each play, and what the others say; -1: undefined."""

    reader: Int64[np.ndarray, "P N"]
    truth: Int64[np.ndarray, "P N"]

    @property
    def undefined(self) -> int:
        """Cases, counted per play, that cannot be scored: the others are undecided or nobody."""
        return int((self.truth < 0).sum())


def deal_readers(
    graded: Bool[np.ndarray, "N R"], others: Int64[np.ndarray, "N R"], plays: int, seed: int = 0
) -> Plays:
    """Let the readers of each case take turns, in an order drawn for the case.

    ``graded`` says which readers there are; ``others`` what the rest say of the disease. With as many plays
    as readers, each plays once.
    """
    if plays < 1:
        raise InputError(found=f"{plays} plays", expected="one or more")
    generator = np.random.default_rng(seed)
    reader = np.full((plays, len(graded)), -1)
    for case, present in enumerate(graded):
        order = generator.permutation(np.flatnonzero(present))
        if len(order):
            reader[:, case] = order[np.arange(plays) % len(order)]
    truth = np.where(reader >= 0, np.take_along_axis(others.T, reader.clip(0), axis=0), -1)
    return Plays(reader, truth)


@dataclass(frozen=True, eq=False)
class Curve:
    """The figures of one way to decide, per number of answers, on all cases and on every resample."""

    value: Mapping[str, Float64[np.ndarray, " Q1"]]
    resampled: Mapping[str, Float64[np.ndarray, "W Q1"]]

    def interval(self, metric: str, answers: int, level: float = 0.95) -> Interval:
        """Bound a figure."""
        return _interval(self.value[metric][answers], self.resampled[metric][:, answers], level)

    def gain(
        self, other: Curve, metric: str, answers: int, other_answers: int, level: float = 0.95
    ) -> Interval:
        """Bound the difference to another curve, or to another number of answers, on the same resamples."""
        return _interval(
            self.value[metric][answers] - other.value[metric][other_answers],
            self.resampled[metric][:, answers] - other.resampled[metric][:, other_answers],
            level,
        )


def score_curve(
    beliefs: Float[np.ndarray, "P Q1 N d"],
    truth: Int64[np.ndarray, "P N"],
    patients: Sequence[str],
    resamples: int = 1000,
    seed: int = 0,
) -> Curve:
    """Score beliefs after every number of answers; the same patients and seed give the same resamples."""
    weights = patient_weights(patients, resamples, seed)
    everyone = np.ones((1, len(patients)))
    found = {m: np.zeros((len(weights) + 1, beliefs.shape[1])) for m in METRICS}
    counted = np.concatenate([everyone, weights])
    for play, true in zip(beliefs, truth, strict=True):
        known = true >= 0
        w, y = counted[:, known], true[known]
        with np.errstate(invalid="ignore", divide="ignore"):
            total = w.sum(axis=1)
            for answers, belief in enumerate(play[:, known].astype(np.float64)):
                hit = belief.argmax(axis=1) == y
                loss = -np.log(np.maximum(belief[np.arange(len(y)), y], FLOOR))
                found["accuracy"][:, answers] += w @ hit / total
                found["log_loss"][:, answers] += w @ loss / total
                found["auc"][:, answers] += _auc(belief, y, w)
    scores = {metric: values / len(beliefs) for metric, values in found.items()}
    return Curve({m: v[0] for m, v in scores.items()}, {m: v[1:] for m, v in scores.items()})


def patient_weights(patients: Sequence[str], resamples: int, seed: int) -> Float64[np.ndarray, "W N"]:
    """How often each case is in a resample: as often as its patient was drawn."""
    names, of_case = np.unique(np.array(patients), return_inverse=True)
    draws = np.random.default_rng(seed).integers(len(names), size=(resamples, len(names)))
    times = np.stack([np.bincount(draw, minlength=len(names)) for draw in draws])
    weights: Float64[np.ndarray, "W N"] = times[:, of_case].astype(np.float64)
    return weights


def weighted_auc(
    score: Float64[np.ndarray, " N"], positive: Bool[np.ndarray, " N"], weights: Float64[np.ndarray, "W N"]
) -> Float64[np.ndarray, " W"]:
    """Area under the ROC curve for many weightings of the same cases; nan where a class has no weight.

    >>> weighted_auc(np.array([0.1, 0.4, 0.4]), np.array([False, False, True]), np.ones((1, 3)))
    array([0.75])
    """
    order = np.argsort(score, kind="stable")
    score, positive, weights = score[order], positive[order], weights[:, order]
    first = np.flatnonzero(np.concatenate([[True], score[1:] > score[:-1]]))
    up = np.add.reduceat(weights * positive, first, axis=1)
    down = np.add.reduceat(weights * ~positive, first, axis=1)
    below = np.cumsum(down, axis=1) - down / 2
    pairs = up.sum(axis=1) * down.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        area: Float64[np.ndarray, " W"] = np.where(pairs > 0, (up * below).sum(axis=1) / pairs, np.nan)
    return area


def _auc(
    belief: Float64[np.ndarray, "n d"], true: Int64[np.ndarray, " n"], weights: Float64[np.ndarray, "W n"]
) -> Float64[np.ndarray, " W"]:
    """As `metrics.auc`: the last of two states, or the mean over states of one against the rest."""
    if not len(true):
        return np.full(len(weights), np.nan)
    size = belief.shape[1]
    states = [1] if size == 2 else [s for s in range(size) if 0 < (true == s).sum() < len(true)]
    areas = np.stack([weighted_auc(belief[:, s], true == s, weights) for s in states])
    mean: Float64[np.ndarray, " W"] = areas.mean(axis=0)
    return mean


def _interval(value: float, resampled: Float64[np.ndarray, " W"], level: float) -> Interval:
    known = resampled[~np.isnan(resampled)]
    if not len(known):
        return Interval(float(value), float("nan"), float("nan"))
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(value), float(low), float(high))
