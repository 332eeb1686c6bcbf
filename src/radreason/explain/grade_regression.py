"""The rival without a network: a logistic regression on the image's score and the grades that were given.

Grades with an order count by their position, others by one indicator per state; a missing grade counts as
the average. Columns are scaled to one standard deviation and the coefficients shrunk (L2, C = 1).

Shape letters: B rows, F columns, d states of the disease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from radreason.schema import Schema

FLOOR = 1e-12


@dataclass(frozen=True, eq=False)
class GradeRegression:
    """Fitted on some rows, asked of others; ``names`` are the attributes that it is told."""

    schema: Schema
    names: tuple[str, ...]
    mean: Float64[np.ndarray, " F"]
    scale: Float64[np.ndarray, " F"]
    model: Any

    @classmethod
    def fit(
        cls,
        schema: Schema,
        names: Sequence[str],
        score: Float64[np.ndarray, "B d"] | None,
        grades: Mapping[str, Int64[np.ndarray, " B"]],
        truth: Int64[np.ndarray, " B"],
        weight: Float64[np.ndarray, " B"],
    ) -> GradeRegression:
        """Fit on log-beliefs of the image (None: on grades alone) and the grades of the named attributes."""
        from sklearn.linear_model import LogisticRegression

        columns = _columns(schema, names, score, grades)
        mean = np.nan_to_num(np.nanmean(columns, axis=0))
        scale = np.nan_to_num(np.nanstd(columns, axis=0))
        scale = np.where(scale > 0, scale, 1.0)
        model = LogisticRegression(max_iter=1000)
        model.fit(np.nan_to_num((columns - mean) / scale), truth, sample_weight=weight)
        return cls(schema, tuple(names), mean, scale, model)

    def __call__(
        self, score: Float64[np.ndarray, "B d"] | None, grades: Mapping[str, Int64[np.ndarray, " B"]]
    ) -> Float64[np.ndarray, "B d"]:
        """Give the belief in the disease; a state that no row of the fit had gets none."""
        columns = _columns(self.schema, self.names, score, grades)
        found = self.model.predict_proba(np.nan_to_num((columns - self.mean) / self.scale))
        beliefs = np.zeros((len(columns), self.schema[self.schema.disease or ""].size))
        beliefs[:, self.model.classes_] = found
        return beliefs


def greedy_order(
    schema: Schema,
    names: Sequence[str],
    score: Float64[np.ndarray, "B d"],
    grades: Mapping[str, Int64[np.ndarray, " B"]],
    truth: Int64[np.ndarray, " B"],
    weight: Float64[np.ndarray, " B"],
    groups: Int64[np.ndarray, " B"],
    parts: int = 5,
) -> tuple[str, ...]:
    """Order attributes by what each adds to those before it: log loss in parts of whole ``groups``."""
    part_of = np.unique(groups, return_inverse=True)[1] % parts
    chosen: list[str] = []
    while len(chosen) < len(names):
        losses = {}
        for name in (n for n in names if n not in chosen):
            loss = 0.0
            for part in range(parts):
                inside, out = part_of != part, part_of == part
                if len(np.unique(truth[inside])) < 2 or not out.any():
                    continue
                told = (*chosen, name)
                model = GradeRegression.fit(
                    schema, told, score[inside], _at(grades, inside), truth[inside], weight[inside]
                )
                belief = model(score[out], _at(grades, out))[np.arange(out.sum()), truth[out]]
                loss -= float(weight[out] @ np.log(np.maximum(belief, FLOOR)))
            losses[name] = loss
        chosen.append(min(losses, key=losses.__getitem__))
    return tuple(chosen)


def _at(grades: Mapping[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: codes[rows] for name, codes in grades.items()}


def _columns(
    schema: Schema,
    names: Sequence[str],
    score: Float64[np.ndarray, "B d"] | None,
    grades: Mapping[str, Int64[np.ndarray, " B"]],
) -> Float64[np.ndarray, "B F"]:
    """Lay out score and grades; NaN where a grade is missing."""
    columns = [] if score is None else [score[:, 1:] - score[:, :1]]
    for name in names:
        variable, codes = schema[name], grades[name]
        missing = (codes < 0)[:, None]
        if variable.ordered or variable.size == 2:
            columns.append(np.where(missing, np.nan, codes[:, None]).astype(np.float64))
        else:
            hot = np.eye(variable.size)[codes.clip(0)][:, 1:]
            columns.append(np.where(missing, np.nan, hot))
    laid_out: Float64[np.ndarray, "B F"] = np.concatenate(columns, axis=1)
    return laid_out
