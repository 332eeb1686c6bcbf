"""From scores of attributes to beliefs, and from the scores of all attributes to the disease.

Scores of cases that a scorer was trained on are too good to learn from. What they mean is learned from
scores that each case was given by a scorer of other patients.

    n cases, m features, k states, K states of all variables together
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float64, Int64
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from radreason.errors import InputError
from radreason.schema import Schema

FOLDS = 5
LEAST_BELIEF = 1e-3
"""Spread evenly over the states: a state that training did not have is not impossible."""


class Scorer(Protocol):
    """One attribute's own model: what it was shown becomes a score for every state."""

    def fit(self, features: Any, codes: Int64[np.ndarray, " n"], states: int) -> Scorer:
        """Learn from cases of known state."""

    def scores(self, features: Any) -> Float64[np.ndarray, "n k"]:
        """Score cases."""


class Calibrator:
    """A logistic regression from scores to beliefs in the states of one variable."""

    def __init__(self, states: int) -> None:
        self.states = states

    def fit(self, scores: Float64[np.ndarray, "n m"], codes: Int64[np.ndarray, " n"]) -> Calibrator:
        """Learn from the cases whose state is known, that is not -1."""
        known = codes >= 0
        self._present, counts = np.unique(codes[known], return_counts=True)
        self._shares = counts / max(1, counts.sum())
        if len(self._present) > 1:
            self._scale = StandardScaler().fit(scores[known])
            self._model = LogisticRegression(max_iter=5000)
            self._model.fit(self._scale.transform(scores[known]), codes[known])
        return self

    def beliefs(self, scores: Float64[np.ndarray, "n m"]) -> Float64[np.ndarray, "n k"]:
        """Give a distribution per case."""
        found = np.full((len(scores), self.states), LEAST_BELIEF / self.states)
        if not len(self._present):
            return np.full((len(scores), self.states), 1 / self.states)
        told: Any = self._shares
        if len(self._present) > 1:
            told = self._model.predict_proba(self._scale.transform(scores))
        found[:, self._present] += (1 - LEAST_BELIEF) * told
        return found


class AttributeStack:
    """A scorer and a calibrator per attribute, and one more calibrator for the disease."""

    def __init__(
        self,
        schema: Schema,
        scorer: Callable[[], Scorer],
        seed: int,
    ) -> None:
        if schema.disease is None or len(schema) < 2:
            raise InputError(
                found="no attribute",
                expected="one or more: the disease is read off the attributes",
                hint='data.attributes="all"',
            )
        self.schema, self.disease, self.scorer, self.seed = schema, schema.disease, scorer, seed
        self.attributes = [v for v in schema if v.name != schema.disease]

    def fit(
        self,
        features: Any,
        codes: Mapping[str, Int64[np.ndarray, " n"]],
        patients: Sequence[str],
    ) -> AttributeStack:
        """Learn; codes are positions of states, -1 where unknown."""
        columns = []
        self._scorers, self._calibrators = {}, {}
        for v in self.attributes:
            truth = codes[v.name]
            aside = self._aside(features, truth, v.size, patients)
            self._calibrators[v.name] = Calibrator(v.size).fit(aside, truth)
            self._scorers[v.name] = self.scorer().fit(features[truth >= 0], truth[truth >= 0], v.size)
            columns.append(aside)
        self._reader = Calibrator(self.schema[self.disease].size)
        self._reader.fit(np.concatenate(columns, axis=1), codes[self.disease])
        return self

    def beliefs(self, features: Any) -> dict[str, Float64[np.ndarray, "n K"]]:
        """Give the stages: ``evidence``, which says nothing of the disease, and ``fusion``, which does."""
        scores = {v.name: self._scorers[v.name].scores(features) for v in self.attributes}
        told = {name: self._calibrators[name].beliefs(score) for name, score in scores.items()}
        size = self.schema[self.disease].size
        disease = {
            "evidence": np.full((len(features), size), 1 / size),
            "fusion": self._reader.beliefs(np.concatenate(list(scores.values()), axis=1)),
        }
        return {
            stage: np.concatenate([(told | {self.disease: d})[n] for n in self.schema.names], axis=1)
            for stage, d in disease.items()
        }

    def _aside(
        self, features: Any, truth: Int64[np.ndarray, " n"], states: int, patients: Sequence[str]
    ) -> Float64[np.ndarray, "n k"]:
        """Score every case by a scorer of other patients."""
        people = np.asarray(patients)
        folds = min(FOLDS, len(np.unique(people)))
        if folds < 2:
            raise InputError(found="training cases of one patient", expected="two patients or more")
        scores = np.zeros((len(truth), states))
        chosen = GroupKFold(folds, shuffle=True, random_state=self.seed)
        for others, own in chosen.split(np.zeros(len(truth)), groups=people):
            known = others[truth[others] >= 0]
            if len(known):
                scores[own] = self.scorer().fit(features[known], truth[known], states).scores(features[own])
        return scores
