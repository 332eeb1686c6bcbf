"""One support vector machine per attribute (the paper's T2 and A2).

n cases, m features, k states
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


class Machine:
    """An RBF machine on scaled features; with more than two states, one against the rest by its votes."""

    def __init__(self, cost: float, seed: int) -> None:
        self.cost, self.seed = cost, seed

    def fit(
        self, features: Float64[np.ndarray, "n m"], codes: Int64[np.ndarray, " n"], states: int
    ) -> Machine:
        """Learn from cases of known state; with one state alone there is nothing to tell apart."""
        self._states, self._present = states, np.unique(codes)
        if len(self._present) > 1:
            self._scale = StandardScaler().fit(features)
            self._svm = SVC(C=self.cost, kernel="rbf", random_state=self.seed)
            self._svm.fit(self._scale.transform(features), codes)
        return self

    def scores(self, features: Float64[np.ndarray, "n m"]) -> Float64[np.ndarray, "n k"]:
        """Give a score for every state, the lowest of all for those that training did not have."""
        if len(self._present) < 2:
            return np.zeros((len(features), self._states))
        decided = self._svm.decision_function(self._scale.transform(features))
        if decided.ndim == 1:
            decided = np.stack([-decided, decided], axis=1)
        found = np.repeat(decided.min(axis=1, keepdims=True), self._states, axis=1)
        found[:, self._present] = decided
        return found
