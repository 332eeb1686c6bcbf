"""Is one method better than another on the same cases, or is that chance: two tests and what they ask.

McNemar's asks whether, of the cases that one of two methods gets right and the other wrong, each wins
half. The corrected t-test asks whether the difference over folds is zero; training sets of folds overlap,
so that their differences are no independent draws, and the usual test finds far too much (Nadeau and
Bengio 2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from radreason.errors import InputError


class McNemar(NamedTuple):
    """Cases that only the first gets right, cases that only the second does, and the exact p-value."""

    only_first: int
    only_second: int
    p: float


class CorrectedT(NamedTuple):
    """Mean difference over the models, its t, and the two-sided p-value; nan where there is none."""

    difference: float
    t: float
    p: float


def mcnemar(first: Bool[np.ndarray, " N"], second: Bool[np.ndarray, " N"]) -> McNemar:
    """Compare which cases two methods get right, exactly, by the binomial distribution.

    >>> mcnemar(np.array([True] * 8 + [False]), np.array([False] * 8 + [True]))
    McNemar(only_first=8, only_second=1, p=0.0390625)
    """
    from scipy.stats import binomtest

    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    differ = only_first + only_second
    return McNemar(only_first, only_second, float(binomtest(only_first, differ).pvalue) if differ else 1.0)


def corrected_t(differences: Sequence[float], tested_per_trained: float) -> CorrectedT:
    """Test whether a difference over the models of a cross-validation is zero.

    ``differences`` are those of models trained on the same folds, ``tested_per_trained`` the number of
    cases that a fold tests over the number that it trains on. A difference that is nan is left out.
    """
    from scipy.stats import t as student

    if tested_per_trained < 0:
        raise InputError(found=f"a ratio of {tested_per_trained}", expected="tested over trained cases, >= 0")
    known = np.array([d for d in differences if d == d])
    if len(known) < 2:
        return CorrectedT(float(known.mean()) if len(known) else nan, nan, nan)
    difference, variance = float(known.mean()), float(known.var(ddof=1))
    if variance == 0:
        return CorrectedT(difference, nan, 1.0 if difference == 0 else nan)
    t = difference / np.sqrt((1 / len(known) + tested_per_trained) * variance)
    return CorrectedT(difference, float(t), float(2 * student.sf(abs(t), len(known) - 1)))
