"""Rules of consensus, worked out by hand and enumerated."""

from __future__ import annotations

import statistics
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from radreason.data.vote import settle, vote

RULES = ("median", "mean", "majority", "distribution")


def winner(grades, rule, **how):
    label = vote([Fraction(g - 1) for g in grades], how.pop("size", 5), rule, **{"ordered": True, **how})
    assert sorted(label) == [0.0] * (len(label) - 1) + [1.0]
    return label.index(1.0) + 1


BY_HAND = [
    # grades, median, mean, majority; nearest, halves away from the middle
    ([4], 4, 4, 4),
    ([2, 3], 2, 2, 2),
    ([3, 4], 4, 4, 4),
    ([1, 2], 1, 1, 1),
    ([4, 5], 5, 5, 5),
    ([2, 4], 3, 3, 3),
    ([1, 5], 3, 3, 3),
    ([1, 1, 5], 1, 2, 1),
    ([2, 3, 3, 3], 3, 3, 3),
    ([1, 2, 4, 4], 3, 3, 4),
    ([2, 2, 3, 5], 2, 3, 2),
    ([1, 1, 4, 4], 2, 2, 2),
]


@pytest.mark.parametrize(("grades", "median", "mean", "majority"), BY_HAND)
def test_by_hand(grades, median, mean, majority):
    assert [winner(grades, rule) for rule in RULES[:3]] == [median, mean, majority]


@pytest.mark.parametrize(
    ("grades", "expected"), [([2, 3, 3, 3], 2), ([3, 3, 3, 4], 4), ([2, 4], 3), ([1, 2], 1), ([1, 2, 2], 1)]
)
def test_decisive_is_uncertain_only_in_the_very_middle(grades, expected):
    assert winner(grades, "mean", decisive=True) == expected


def test_every_set_of_up_to_four_grades():
    for n in range(1, 5):
        for grades in combinations_with_replacement(range(1, 6), n):
            for rule, value in (("mean", statistics.mean), ("median", statistics.median)):
                exact = value(map(Fraction, grades))
                near = [state for state in range(1, 6) if abs(state - exact) <= Fraction(1, 2)]
                assert winner(grades, rule) == max(near, key=lambda state: abs(state - 3))
                group = winner(grades, rule, decisive=True) - 3
                assert (group > 0) - (group < 0) == (exact > 3) - (exact < 3)
                assert abs(group + 3 - exact) < 1
            shares = vote([Fraction(g - 1) for g in grades], 5, "distribution", ordered=True)
            assert shares == pytest.approx([grades.count(state) / n for state in range(1, 6)])
            if grades.count(statistics.mode(grades)) > n / 2:
                assert winner(grades, "majority") == statistics.mode(grades)


@pytest.mark.parametrize("rule", RULES[:3])
def test_without_order_the_most_frequent_counts(rule):
    assert winner([1, 6, 6], rule, size=6, ordered=False) == 6
    assert winner([3, 3, 6, 6], rule, size=6, ordered=False) == 3
    assert winner([6, 4], rule, size=6, ordered=False) == 4


def test_no_middle_no_tie_left():
    assert [settle(Fraction(1, 2), 2), settle(Fraction(3, 2), 4), settle(Fraction(5, 2), 6)] == [1, 2, 3]
    assert winner([1, 2], "mean", size=2) == 2  # one of two saw it
    thirds = [Fraction(4 * g, 3) for g in (0, 1, 2, 3)]  # four states stretched to five
    assert [settle(g, 5) for g in thirds] == [0, 1, 3, 4]
