"""How sure a figure is: resample patients, with all their cases, and look how the figure varies.

Two nodules of one patient are not two independent cases. An interval that resamples cases takes them
for that and comes out too narrow; patients are what was sampled, so patients are resampled.

Figures of two methods resampled by one `Resampler` stand on the same draws: subtract them, and what is
hard for both cancels. Two intervals that overlap may hide a difference that the paired one shows.

    N cases, R resamples
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from radreason.errors import InputError
from radreason.evaluate.weighted import Statistic, Weights

AT_ONCE = 4 << 20
"""Weights computed together: many resamples of a thousand cases, few of a million."""


class Interval(NamedTuple):
    """A figure on all cases, and the percentile interval of its resamples; nan where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Resampled:
    """A figure on all cases and on every resample; nan where a resample has none."""

    value: float
    draws: Float64[np.ndarray, " R"]

    def __sub__(self, other: Resampled) -> Resampled:
        """Give the difference to a figure of the same resamples."""
        return Resampled(self.value - other.value, self.draws - other.draws)

    def interval(self, level: float = 0.95) -> Interval:
        """Give the figure with its percentile interval; resamples without a figure are left out."""
        if not 0 < level < 1:
            raise InputError(found=f"level {level}", expected="a level between 0 and 1")
        draws = self.draws[~np.isnan(self.draws)]
        if not len(draws):
            return Interval(self.value, nan, nan)
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        return Interval(self.value, float(low), float(high))


@dataclass(frozen=True)
class Resampler:
    """As many patients as there are, drawn with replacement; ``patients`` names the one of each case."""

    patients: Sequence[str]
    resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise InputError(found=f"{self.resamples} resamples", expected="one or more")

    def __call__(self, statistic: Statistic) -> Resampled:
        """Compute a statistic on all cases, and on every resample.

        With fewer than two patients there is nothing to resample, and the bounds are nan.
        """
        if not self.patients:
            return Resampled(nan, np.empty(0))
        value = float(statistic(np.ones((1, len(self.patients))))[0])
        return Resampled(value, np.concatenate([statistic(w) for w in self.weights()] or [np.empty(0)]))

    def weights(self) -> Iterator[Weights]:
        """Say how often each resample has each case, a bounded number of resamples at a time."""
        patient_of = np.unique(np.array(self.patients), return_inverse=True)[1]
        n_patients = int(patient_of.max()) + 1
        if n_patients < 2:
            return
        random = np.random.default_rng(self.seed)
        at_once = max(1, AT_ONCE // len(patient_of))
        for start in range(0, self.resamples, at_once):
            rows = min(at_once, self.resamples - start)
            drawn = (
                random.integers(n_patients, size=(rows, n_patients)) + n_patients * np.arange(rows)[:, None]
            )
            times = np.bincount(drawn.ravel(), minlength=rows * n_patients).reshape(rows, n_patients)
            yield times[:, patient_of].astype(np.float64)
