"""What could be said of the disease by who knew the readers' grades: bounds, not methods for images.

n cases, A states of all attributes, K of all variables together
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64, Int64
from sklearn.ensemble import RandomForestClassifier

from radreason.classic.stack import LEAST_BELIEF
from radreason.schema import Schema

Grades = Mapping[str, Float64[np.ndarray, "n _"]]
"""What is true of every attribute, as distributions, NaN where nobody knows."""


class ForestOracle:
    """A random forest from the true grades of all attributes to the disease."""

    def __init__(self, schema: Schema, seed: int, trees: int = 500) -> None:
        assert schema.disease is not None  # a task without a disease was refused
        self.schema, self.disease = schema, schema.disease
        self.attributes = [v.name for v in schema if v.name != schema.disease]
        self._forest = RandomForestClassifier(trees, min_samples_leaf=3, random_state=seed)

    def fit(self, grades: Grades, codes: Int64[np.ndarray, " n"]) -> ForestOracle:
        """Learn from training cases whose disease is known."""
        self._usual = {
            name: np.nan_to_num(np.nanmean(_some(grades[name]), axis=0)) for name in self.attributes
        }
        known = codes >= 0
        self._forest.fit(self._filled(grades)[known], codes[known])
        return self

    def beliefs(self, grades: Grades) -> Float64[np.ndarray, "n k"]:
        """Give the belief in the disease."""
        told = self._forest.predict_proba(self._filled(grades))
        size = self.schema[self.disease].size
        found = np.full((len(told), size), LEAST_BELIEF / size)
        found[:, self._forest.classes_] += (1 - LEAST_BELIEF) * told
        return found

    def _filled(self, grades: Grades) -> Float64[np.ndarray, "n A"]:
        """Let the usual shares stand in for grades that nobody gave."""
        columns = [np.where(np.isnan(grades[n]), self._usual[n], grades[n]) for n in self.attributes]
        return np.concatenate(columns, axis=1)


def _some(column: Float64[np.ndarray, "n k"]) -> Float64[np.ndarray, "m k"]:
    """Rows that are known, or one flat row: a mean over none is a warning."""
    known = column[~np.isnan(column).any(axis=1)]
    return known if len(known) else np.full((1, column.shape[1]), 1 / column.shape[1])
