"""From the grades that several readers gave to one label, by a stated rule.

Grades are positions 0 ... k-1 on the scale of their variable, or fractions of them where a scale was
stretched; arithmetic is exact, so that a mean of exactly the middle grade is seen to be one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

Rule = Literal["median", "mean", "majority", "distribution"]
Label = tuple[float, ...]
"""One share per state; they sum to one."""


def vote(
    grades: Sequence[Fraction], size: int, rule: Rule, *, ordered: bool, decisive: bool = False
) -> Label:
    """Make one label of grades on a scale of ``size`` states.

    Between grades there is no state, so a mean or median is rounded: to the nearest state, halves away
    from the middle of the scale. ``decisive`` rounds everything away from the middle, so that only
    exactly the middle is the middle: that is how a disease becomes benign, uncertain or malignant. What
    has no order has no mean: there the most frequent state counts, of equally frequent ones the first.

    >>> vote([Fraction(1), Fraction(2), Fraction(2), Fraction(4)], 5, "mean", ordered=True)
    (0.0, 0.0, 1.0, 0.0, 0.0)
    >>> vote([Fraction(1), Fraction(2), Fraction(2), Fraction(4)], 5, "mean", ordered=True, decisive=True)
    (0.0, 0.0, 0.0, 1.0, 0.0)
    """
    counts = Counter(settle(grade, size) for grade in grades)
    if rule == "distribution":
        return tuple(counts[state] / len(grades) for state in range(size))
    if ordered and rule == "mean":
        winner = settle(sum(grades, Fraction()) / len(grades), size, decisive)
    elif ordered and rule == "median":
        winner = settle(median(grades), size, decisive)
    else:
        most = max(counts.values())
        modes = [Fraction(state) for state in range(size) if counts[state] == most]
        winner = settle(median(modes), size, decisive) if ordered else int(modes[0])
    return tuple(float(state == winner) for state in range(size))


def median(values: Sequence[Fraction]) -> Fraction:
    """Take the middle value, or the mean of the two in the middle."""
    ranked = sorted(values)
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2


def settle(value: Fraction, size: int, decisive: bool = False) -> int:
    """Round to a state; what lies in the middle of an even number of states goes up."""
    middle = Fraction(size - 1, 2)
    if decisive:
        return math.floor(value) if value < middle else math.ceil(value)
    half = Fraction(1, 2)
    return math.ceil(value - half) if value < middle else math.floor(value + half)
