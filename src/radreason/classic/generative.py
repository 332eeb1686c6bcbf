r"""A generative model of the pieces of an image, given the grade of one attribute (Ferrari et al. 2008).

.. math:: p(a, g \mid s) = \pi \, p_s(a) \, p_s(g) + (1 - \pi) \, p_0(a) \, p_0(g)

A piece with the looks a and the form g belongs to what the grade s is about, or to a background that all
grades share. Whose it is, nobody says: the share and the distributions are learned by EM.

    n cases, A words of looks, G words of forms, k states of the attribute
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

ROUNDS = 30
PSEUDOCOUNT = 0.5
"""Added to each word's count, so that no piece is impossible."""


class PieceModel:
    """The looks and forms of the pieces for every state of one attribute."""

    def fit(
        self, counts: Float64[np.ndarray, "n A G"], codes: Int64[np.ndarray, " n"], states: int
    ) -> PieceModel:
        """Learn from images of known state; a state of which there is none looks like the background."""
        total = np.stack([counts[codes == state].sum(axis=0) for state in range(states)])
        background = total.sum(axis=0)
        self.share = 0.5
        self.looks, self.forms = _normal(total.sum(axis=2)), _normal(total.sum(axis=1))
        self.background = np.outer(_normal(background.sum(axis=1)), _normal(background.sum(axis=0)))
        for _ in range(ROUNDS):
            own = self.share * self.looks[:, :, None] * self.forms[:, None, :]
            belongs = own / (own + (1 - self.share) * self.background)
            mine, others = total * belongs, (total * (1 - belongs)).sum(axis=0)
            self.share = float(np.clip(mine.sum() / max(total.sum(), 1e-9), 0.05, 0.95))
            self.looks, self.forms = _normal(mine.sum(axis=2)), _normal(mine.sum(axis=1))
            self.background = np.outer(_normal(others.sum(axis=1)), _normal(others.sum(axis=0)))
        empty = total.sum(axis=(1, 2)) == 0
        self._table = self.share * self.looks[:, :, None] * self.forms[:, None, :]
        self._table = np.where(
            empty[:, None, None], self.background, self._table + (1 - self.share) * self.background
        )
        return self

    def scores(self, counts: Float64[np.ndarray, "n A G"]) -> Float64[np.ndarray, "n k"]:
        """Give the mean log likelihood of the pieces of each image under each state."""
        pieces = np.maximum(counts.sum(axis=(1, 2)), 1)
        together = np.einsum("nag,kag->nk", counts, np.log(self._table))
        told: Float64[np.ndarray, "n k"] = together / pieces[:, None]
        return told


def _normal(counts: Float64[np.ndarray, "*any m"]) -> Float64[np.ndarray, "*any m"]:
    smooth = counts + PSEUDOCOUNT
    shares: Float64[np.ndarray, "*any m"] = smooth / smooth.sum(axis=-1, keepdims=True)
    return shares
