r"""Sets of states that hold the true one as often as they say, whatever the model is worth (conformal).

Of each case that a model did not learn from it is known how strange its true state looked to the model:

.. math:: s(y) = 1 - p_y, \qquad
          s(y) = 1 - \min(\max_{j \le y} p_j, \max_{j \ge y} p_j) \text{ where states are grades.}

A state belongs to the set of a new case unless it looks stranger than nearly all of these. If the new case
is drawn as they were, the set holds the truth with probability :math:`\lceil (n+1) c \rceil / (n+1)`, or more
where scores tie: that is the stated coverage c, for any n and any model. It holds on average over cases, not
for each kind of case. Of grades the second score makes sets without holes, "2 to 4" and never "2 or 4"; of
two states both are the same. With too few cases (fewer than c / (1 - c)) no state can be ruled out.

Several models, each with cases that it did not learn from: a new case is asked of all, and a state is as
strange as it is to each of them among its own cases (cross-conformal, Vovk 2015). Then c is nearly kept in
practice, and 2c - 1 for certain.

    N cases, k states of one variable
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from radreason.errors import InputError
from radreason.evaluate.metrics import known_cases

EXACT = 9
"""Digits to which (n + 1) times a coverage is taken for the number that was meant."""


def strangeness(beliefs: Float[np.ndarray, "N k"], ordered: bool) -> Float64[np.ndarray, "N k"]:
    """How strange each state would be if it were true, from 0 to 1.

    >>> strangeness(np.array([[0.3, 0.1, 0.6]]), ordered=True).round(2).tolist()
    [[0.7, 0.7, 0.4]]
    """
    believed = beliefs.astype(np.float64)
    if ordered:
        upwards = np.maximum.accumulate(believed, axis=1)
        downwards = np.maximum.accumulate(believed[:, ::-1], axis=1)[:, ::-1]
        believed = np.minimum(upwards, downwards)
    scores: Float64[np.ndarray, "N k"] = 1.0 - believed
    return scores


def rank_of(n: int, coverage: float) -> int:
    """Give the place, counted from 1, of the strangest score that is still taken among n; above n: all.

    >>> rank_of(60, 0.9), rank_of(9, 0.9), rank_of(8, 0.9)
    (55, 9, 9)
    """
    if not 0 < coverage < 1:
        raise InputError(found=f"a coverage of {coverage:g}", expected="a number between 0 and 1")
    return ceil(round((n + 1) * coverage, EXACT))


@dataclass(frozen=True, eq=False)
class Conformal:
    """Sorted scores of the true states of cases, by the model that did not learn from them."""

    ordered: bool
    scores: Mapping[str, Float64[np.ndarray, " _"]]

    @classmethod
    def of(
        cls,
        ordered: bool,
        known: Mapping[str, tuple[Float[np.ndarray, "_ k"], Int[np.ndarray, " _"]]],
    ) -> Conformal:
        """Take beliefs and truths of each model; a missing truth (-1) is no case."""
        scores = {}
        for name, (beliefs, truth) in known.items():
            believed, true = known_cases(beliefs, truth)
            scores[name] = np.sort(strangeness(believed, ordered)[np.arange(len(true)), true])
        return cls(ordered, scores)

    @property
    def cases(self) -> int:
        """How many cases the sets rest on."""
        return sum(map(len, self.scores.values()))

    def guaranteed(self, coverage: float) -> float:
        """Coverage that one model keeps on average if no scores tie; 1 where nothing is ruled out."""
        return min(rank_of(self.cases, coverage) / (self.cases + 1), 1.0)

    def sets(
        self, beliefs: Mapping[str, Float[np.ndarray, "N k"]], coverage: float
    ) -> Bool[np.ndarray, "N k"]:
        """Say which states belong to the set of each case; a set may be empty, see `filled`."""
        if set(beliefs) != set(self.scores):
            raise InputError(
                found=f"beliefs of the models {', '.join(beliefs)}",
                expected=f"those that sets were made for: {', '.join(self.scores)}",
            )
        fewest = self.cases + 1 - rank_of(self.cases, coverage)
        as_strange = [
            len(scores) - np.searchsorted(scores, strangeness(beliefs[name], self.ordered))
            for name, scores in self.scores.items()
        ]
        held: Bool[np.ndarray, "N k"] = np.sum(as_strange, axis=0) >= fewest
        return held


def filled(sets: Bool[np.ndarray, "N k"], beliefs: Float[np.ndarray, "N k"]) -> Bool[np.ndarray, "N k"]:
    """Put the likeliest state into sets that are empty: a reader is told one state at least.

    An empty set says that even the likeliest state looks stranger than most truths did. Filled sets cover
    more than was asked for, never less.
    """
    empty = ~sets.any(axis=1)
    whole = sets.copy()
    whole[empty, beliefs[empty].argmax(axis=1)] = True
    return whole
