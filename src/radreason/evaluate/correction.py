"""Correction at test time: how good a diagnosis is after 0, 1, 2 ... of its attributes were confirmed.

One reader of a case plays the radiologist, the other readers are the truth. That play is repeated with other
readers, and for every repeat of a cross-validation; figures are the mean over plays, and their
intervals resample patients. What is compared, is compared on the same plays and the same resamples.

Shape letters: P plays, N cases, Q + 1 numbers of answers, d states of the disease, R readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from radreason.errors import InputError
from radreason.evaluate import weighted
from radreason.evaluate.intervals import Interval, Resampled, Resampler
from radreason.evaluate.weighted import Figures, Statistic, Weights

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
    """The figures of one way to decide: for each metric one per number of answers, on the same resamples."""

    figures: Mapping[str, tuple[Resampled, ...]]

    def value(self, metric: str) -> list[float]:
        """Give a figure on all cases, for every number of answers."""
        return [figure.value for figure in self.figures[metric]]

    def interval(self, metric: str, answers: int) -> Interval:
        """Bound a figure."""
        return self.figures[metric][answers].interval()

    def gain(self, other: Curve, metric: str, answers: int, other_answers: int) -> Interval:
        """Bound the difference to another curve, or to another number of answers."""
        return (self.figures[metric][answers] - other.figures[metric][other_answers]).interval()


def score_curve(
    beliefs: Float[np.ndarray, "P Q1 N d"], truth: Int64[np.ndarray, "P N"], resampler: Resampler
) -> Curve:
    """Score beliefs after every number of answers, on average over plays."""

    def averaged(of: Callable[..., Statistic], answers: int) -> Statistic:
        statistics = [of(play[answers], true) for play, true in zip(beliefs, truth, strict=True)]

        def mean(weights: Weights) -> Figures:
            figures: Figures = np.mean([statistic(weights) for statistic in statistics], axis=0)
            return figures

        return mean

    return Curve(
        {
            metric: tuple(
                resampler(averaged(getattr(weighted, metric), answers)) for answers in range(beliefs.shape[1])
            )
            for metric in METRICS
        }
    )
