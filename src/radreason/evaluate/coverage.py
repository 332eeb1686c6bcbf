"""Is a coverage that was measured the one that was stated: what chance alone would make of it.

Two kinds of chance are at work. The cases that are counted are few: a binomial, whose central interval is
what one would expect if each case were covered with exactly the stated probability. And the sets themselves
rest on few cases: with n of them the probability of the next cases is drawn, too, from a beta distribution
with a standard deviation of some 0.04 for n = 60 and a coverage of 0.9. Together they are a beta-binomial, of
several models a sum of these.

    N cases
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from radreason.errors import InputError
from radreason.evaluate.conformal import rank_of


class Chance(NamedTuple):
    """The shares within which a coverage lies by chance."""

    low: float
    high: float

    def holds(self, share: float) -> bool:
        """Whether a share is within, up to rounding."""
        return self.low - 1e-12 <= share <= self.high + 1e-12


def of_cases(n: int, coverage: float, level: float = 0.99) -> Chance:
    """Give the central interval of the binomial of n cases that are each covered with this probability.

    >>> tuple(round(share, 3) for share in of_cases(100, 0.9))
    (0.82, 0.97)
    """
    from scipy.stats import binom

    _check(n, level)
    low, high = binom.interval(level, n, coverage)
    return Chance(float(low) / n, float(high) / n)


def of_cases_and_sets(parts: Sequence[tuple[int, int]], coverage: float, level: float = 0.99) -> Chance:
    """The same, with sets that rest on few cases themselves.

    ``parts`` holds for each model how many cases its sets rest on, and how many were counted.
    """
    from scipy.stats import betabinom

    n = sum(counted for _, counted in parts)
    _check(n, level)
    of_sum: Float64[np.ndarray, " _"] = np.ones(1)
    for behind, counted in parts:
        rank = rank_of(behind, coverage)
        if rank > behind:  # nothing is ruled out: all are covered
            of_one = np.zeros(counted + 1)
            of_one[-1] = 1.0
        else:
            of_one = betabinom.pmf(np.arange(counted + 1), counted, rank, behind + 1 - rank)
        of_sum = np.convolve(of_sum, of_one)
    up_to = np.cumsum(of_sum) / of_sum.sum()
    low, high = np.searchsorted(up_to, [(1 - level) / 2, (1 + level) / 2])
    return Chance(float(low) / n, float(min(high, n)) / n)


def _check(n: int, level: float) -> None:
    if n < 1 or not 0 < level < 1:
        raise InputError(
            found=f"{n} cases and a level of {level:g}", expected="one case or more, a level between 0 and 1"
        )
