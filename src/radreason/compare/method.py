"""One method on one share of the training cases: its models, and what each believed of cases it never saw.

A method is trained anew for every fold of every repeat; each of its models tests the fold left out. Here
is only what a comparison needs of that, so that it can be kept in a small file without the weights.

    N cases of the method, n of them tested by one model, k states of the disease
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Int64

from radreason.evaluate.metrics import FLOOR
from radreason.schema import Variable

DIGITS = 3
"""Digits of kept log odds: a probability is off by one in eight thousand at most."""


@dataclass(frozen=True)
class Grades:
    """How often a model's most probable grade of one attribute was the true one, or next to it."""

    known: int
    exact: int
    near: int


@dataclass(frozen=True)
class Edges:
    """How many of a method's networks join two variables, and how many are sure of an arrow each way."""

    networks: int
    joined: Mapping[tuple[str, str], tuple[int, int, int]]


@dataclass(frozen=True, eq=False)
class Model:
    """One training: what it tested, what every stage believed of the disease there, what it took."""

    repeat: int
    fold: int
    trained: int
    validated: int
    rows: Int64[np.ndarray, " n"]
    beliefs: Mapping[str, Float64[np.ndarray, "n k"]]
    temperature: Mapping[str, float] = field(default_factory=dict)
    threshold: Mapping[str, float] = field(default_factory=dict)
    grades: Mapping[str, Grades] = field(default_factory=dict)
    seconds: float = nan
    epochs: int = 0

    @property
    def final(self) -> Float64[np.ndarray, "n k"]:
        """The beliefs of the last stage."""
        return list(self.beliefs.values())[-1]


@dataclass(frozen=True, eq=False)
class Method:
    """A method; ``data``, ``settings`` and ``made_with`` are what the plans of its runs say.

    ``patients`` names the patient of each case, or is empty where nobody told. ``truths`` counts the
    cases of each state of every attribute. ``paper`` names rows of the published tables.
    """

    name: str
    fraction: float
    disease: Variable
    cases: tuple[str, ...]
    patients: tuple[str, ...]
    truth: Int64[np.ndarray, " N"]
    models: tuple[Model, ...]
    attributes: tuple[Variable, ...] = ()
    truths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    networks: Mapping[str, Edges] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    made_with: Mapping[str, Any] = field(default_factory=dict)
    paper: tuple[str, ...] = ()

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages, the last one being the answer."""
        return tuple(self.models[0].beliefs)

    @property
    def fingerprint(self) -> str:
        """What the dataset is known by."""
        return str(self.data.get("fingerprint", ""))

    @property
    def key(self) -> str:
        """A name of its own among all methods and shares: hybrid, hybrid@25."""
        return self.name if self.fraction == 1 else f"{self.name}@{100 * self.fraction:g}"

    @property
    def trained(self) -> float:
        """Cases that a model trains on, on average."""
        return float(np.mean([model.trained for model in self.models]))

    @cached_property
    def pooled(self) -> Float64[np.ndarray, "N k"]:
        """What is believed of each case by the models that did not train on it, averaged over repeats."""
        return self.pool({model: model.final for model in self.models})

    def stage(self, name: str) -> Float64[np.ndarray, "N k"]:
        """Pool the beliefs of one stage."""
        return self.pool({model: model.beliefs[name] for model in self.models})

    def pool(self, beliefs: Mapping[Model, Float64[np.ndarray, "n k"]]) -> Float64[np.ndarray, "N k"]:
        """Average beliefs of models over the repeats; a case that nobody tested would be nan."""
        total = np.zeros((len(self.cases), self.disease.size))
        times = np.zeros(len(self.cases))
        for model, believed in beliefs.items():
            total[model.rows] += believed
            times[model.rows] += 1
        mean: Float64[np.ndarray, "N k"] = np.divide(
            total, times[:, None], out=np.full_like(total, nan), where=times[:, None] > 0
        )
        return mean

    @property
    def times_tested(self) -> Int64[np.ndarray, " N"]:
        """How many models tested each case."""
        times = np.zeros(len(self.cases), np.int64)
        for model in self.models:
            times[model.rows] += 1
        return times

    def only(self, cases: Iterable[str]) -> Method:
        """Keep some of the cases; figures of grades and networks stay those of all."""
        kept = set(cases)
        rows = np.array([row for row, case in enumerate(self.cases) if case in kept], np.int64)
        new_row = np.full(len(self.cases), -1)
        new_row[rows] = np.arange(len(rows))
        models = []
        for model in self.models:
            inside = new_row[model.rows] >= 0
            models.append(
                replace(
                    model,
                    rows=new_row[model.rows[inside]],
                    beliefs={stage: believed[inside] for stage, believed in model.beliefs.items()},
                )
            )
        return replace(
            self,
            cases=tuple(self.cases[row] for row in rows),
            patients=tuple(self.patients[row] for row in rows) if self.patients else (),
            truth=self.truth[rows],
            models=tuple(models),
        )


def to_log_odds(beliefs: Float64[np.ndarray, "n k"]) -> Float64[np.ndarray, "n odds"]:
    """Write beliefs as the logarithm of each later state's odds to the first, rounded as they are kept."""
    logs = np.log(np.maximum(beliefs, FLOOR))
    odds: Float64[np.ndarray, "n odds"] = np.round(logs[:, 1:] - logs[:, :1], DIGITS) + 0.0  # no -0.0
    return odds


def from_log_odds(odds: Float64[np.ndarray, "n odds"]) -> Float64[np.ndarray, "n k"]:
    """Read what `to_log_odds` wrote.

    >>> from_log_odds(to_log_odds(np.array([[0.25, 0.75]]))).round(3).tolist()
    [[0.25, 0.75]]
    """
    logs = np.concatenate([np.zeros((len(odds), 1)), odds], axis=1)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    beliefs: Float64[np.ndarray, "n k"] = weights / weights.sum(axis=1, keepdims=True)
    return beliefs


def count_states(truth: Int[np.ndarray, " N"], size: int) -> tuple[int, ...]:
    """Count the cases of each state; a missing truth counts for none."""
    return tuple(int(count) for count in np.bincount(truth[truth >= 0], minlength=size))
