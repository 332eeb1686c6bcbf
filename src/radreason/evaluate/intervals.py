"""How sure a figure is: resample patients, with all their cases, and look how the figure varies.

Two nodules of one patient are not two independent cases. An interval that resamples cases takes them
for that and comes out too narrow; patients are what was sampled, so patients are resampled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from radreason.errors import InputError


class Interval(NamedTuple):
    """A figure on all cases, and the percentile interval of its resamples; nan where there is none."""

    value: float
    low: float
    high: float


def bootstrap_by_patient(
    patients: Sequence[str],
    statistic: Callable[[Int[np.ndarray, " n"]], float],
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Bound a statistic of rows: give it the rows of as many patients as there are, drawn with replacement.

    ``patients`` names the patient of each case; the statistic gets positions of cases, in which a
    patient drawn twice stands twice. Resamples for which it is nan (one class only) are left out.
    With fewer than two patients there is nothing to resample, and the bounds are nan.
    """
    if resamples < 1 or not 0 < level < 1:
        raise InputError(
            found=f"{resamples} resamples, level {level}",
            expected="one resample or more, and a level between 0 and 1",
        )
    if not patients:
        return Interval(nan, nan, nan)
    value = float(statistic(np.arange(len(patients))))
    _, patient_of = np.unique(np.array(patients), return_inverse=True)
    order = np.argsort(patient_of, kind="stable")
    rows_of = np.split(order, np.bincount(patient_of).cumsum()[:-1])
    if len(rows_of) < 2:
        return Interval(value, nan, nan)

    draws = np.random.default_rng(seed).integers(len(rows_of), size=(resamples, len(rows_of)))
    values = np.array([float(statistic(np.concatenate([rows_of[p] for p in draw]))) for draw in draws])
    values = values[~np.isnan(values)]
    if not len(values):
        return Interval(value, nan, nan)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))


def paired_bootstrap(
    patients: Sequence[str],
    statistic_a: Callable[[Int[np.ndarray, " n"]], float],
    statistic_b: Callable[[Int[np.ndarray, " n"]], float],
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Bound the difference a - b, both on the same resamples: what is hard for both cancels.

    Two intervals that overlap may hide a difference that this one shows.
    """

    def difference(rows: Int[np.ndarray, " n"]) -> float:
        return float(statistic_a(rows)) - float(statistic_b(rows))

    return bootstrap_by_patient(patients, difference, resamples, seed, level)
