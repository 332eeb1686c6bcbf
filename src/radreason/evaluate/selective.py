"""Accuracy against the share answered: what a model is worth that may say "I do not know".

Cases are answered in the order of confidence, the probability of the likeliest state. Cases of equal
confidence are answered together. The area is the mean accuracy over all shares: 1 for a model without
mistakes, its plain accuracy for one whose confidence says nothing.

    N cases, k states of one variable, R weightings
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from jaxtyping import Float, Float64, Int

from radreason.errors import InputError
from radreason.evaluate.metrics import hits, known_cases
from radreason.evaluate.weighted import Figures, Statistic, Weights


@dataclass(frozen=True, eq=False)
class Selective:
    """A step for each confidence: share of cases that are answered, their accuracy, the lowest confidence."""

    answered: Float64[np.ndarray, " steps"]
    accuracy: Float64[np.ndarray, " steps"]
    confidence: Float64[np.ndarray, " steps"]
    area: float
    best_area: float
    """That of the same mistakes if they were the least confident answers."""

    def at(self, share: float) -> float:
        """Accuracy of the first step that answers at least this share; nan without cases."""
        if not 0 < share <= 1:
            raise InputError(found=f"a share of {share:g}", expected="more than 0, up to 1")
        step = int(np.searchsorted(self.answered, share - 1e-12))
        return float(self.accuracy[step]) if step < len(self.accuracy) else nan


def selective(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> Selective:
    """Give the curve; a missing truth is no case."""
    believed, true = known_cases(beliefs, truth)
    if not len(true):
        return Selective(np.empty(0), np.empty(0), np.empty(0), nan, nan)
    confidence, hit = believed.max(axis=1), hits(believed, true)
    values, first = np.unique(-confidence, return_inverse=True)
    answered = np.cumsum(np.bincount(first, minlength=len(values)))
    right = np.cumsum(np.bincount(first, weights=hit, minlength=len(values)))
    n, sure = len(true), int(hit.sum())
    best = np.minimum(np.arange(1, n + 1), sure) / np.arange(1, n + 1)
    return Selective(
        answered / n,
        right / answered,
        -values,
        float(np.sum(np.diff(answered, prepend=0) * right / answered) / n),
        float(best.mean()),
    )


def area(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> Statistic:
    """The area for many weightings of the cases at once, as `evaluate.weighted` has other figures."""
    rows = np.flatnonzero(truth >= 0)
    believed, true = known_cases(beliefs, truth)
    rows = rows[: len(true)]
    order = np.argsort(-believed.max(axis=1), kind="stable") if len(true) else rows
    confidence, hit = believed.max(axis=1)[order] if len(true) else np.empty(0), hits(believed, true)[order]
    starts = np.flatnonzero(np.diff(confidence, prepend=np.inf))

    def areas(weights: Weights) -> Figures:
        if not len(true):
            return np.full(len(weights), nan)
        chosen = weights[:, rows[order]]
        of_step = np.add.reduceat(chosen, starts, axis=1)
        answered = of_step.cumsum(axis=1)
        right = np.add.reduceat(chosen * hit, starts, axis=1).cumsum(axis=1)
        share = np.divide(right, answered, out=np.zeros_like(right), where=answered > 0)
        total = answered[:, -1]
        figures: Figures = np.divide(
            (of_step * share).sum(axis=1), total, out=np.full(len(weights), nan), where=total > 0
        )
        return figures

    return areas
