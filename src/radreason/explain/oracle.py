"""What readers alone would decide: a forest that sees the grades of all other readers, and no image.

An upper bound of a kind: the readers whose grades it sees are those who say what is true.

Shape letters: B rows, F columns, N cases, R readers, d states of the disease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from radreason.data.reader_grades import ReaderGrades

TREES, LEAF = 300, 3


def shares(
    grades: ReaderGrades,
    rows: Int64[np.ndarray, " B"],
    truth: Mapping[str, Int64[np.ndarray, " N"]],
    without: Int64[np.ndarray, " B"] | None = None,
) -> Float64[np.ndarray, "B F"]:
    """Share of readers behind each state, ``without`` one of them; what none graded, as it is known."""
    columns = []
    for variable in grades.schema:
        if variable.name == grades.schema.disease:
            continue
        states = np.arange(variable.size)
        codes = grades.codes[variable.name][rows]
        if without is not None:
            codes = np.where(np.arange(codes.shape[1]) == without[:, None], -1, codes)
        votes = (codes[:, :, None] == states).sum(axis=1).astype(np.float64)
        told = votes.sum(axis=1, keepdims=True)
        known = truth[variable.name][rows][:, None] == states
        columns.append(np.where(told > 0, votes / np.maximum(told, 1), known))
    laid_out: Float64[np.ndarray, "B F"] = np.concatenate(columns, axis=1)
    return laid_out


@dataclass(frozen=True, eq=False)
class Forest:
    """A random forest over such shares."""

    states: int
    model: Any

    @classmethod
    def fit(
        cls, shares: Float64[np.ndarray, "B F"], truth: Int64[np.ndarray, " B"], states: int, seed: int
    ) -> Forest:
        """Fit it on the cases whose truth is known."""
        from sklearn.ensemble import RandomForestClassifier

        known = truth >= 0
        model = RandomForestClassifier(TREES, min_samples_leaf=LEAF, random_state=seed)
        return cls(states, model.fit(shares[known], truth[known]))

    def __call__(self, shares: Float64[np.ndarray, "B F"]) -> Float64[np.ndarray, "B d"]:
        """Give the belief in the disease."""
        beliefs = np.zeros((len(shares), self.states))
        beliefs[:, self.model.classes_] = self.model.predict_proba(shares)
        return beliefs
