"""The two classic methods whole: images in, beliefs of the stages ``evidence`` and ``fusion`` out.

n cases, m features, s segments, K states of all variables together
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Float64, Int64

from radreason.classic import descriptors, segments
from radreason.classic.generative import PieceModel
from radreason.classic.machines import Machine
from radreason.classic.stack import AttributeStack
from radreason.schema import Schema

Codes = Mapping[str, Int64[np.ndarray, " n"]]


class SvmMethod:
    """Features of the whole image and one support vector machine per attribute (T2 and A2)."""

    def __init__(self, schema: Schema, seed: int, cost: float = 1.0) -> None:
        self._stack = AttributeStack(schema, lambda: Machine(cost, seed), seed)

    def describe(self, image: Float[np.ndarray, "*space"]) -> Float64[np.ndarray, " m"]:
        """What is kept of an image."""
        return descriptors.describe(image)

    def fit(self, seen: Sequence[Float64[np.ndarray, " m"]], codes: Codes, patients: Sequence[str]) -> None:
        """Learn from training cases."""
        self._stack.fit(np.stack(list(seen)), codes, patients)

    def beliefs(self, seen: Sequence[Float64[np.ndarray, " m"]]) -> dict[str, Float64[np.ndarray, "n K"]]:
        """Give what is believed of other cases."""
        return self._stack.beliefs(np.stack(list(seen)))


class PrimitivesMethod:
    """Pieces of alike grey and a generative model of them per attribute (T1 and A1)."""

    def __init__(self, schema: Schema, seed: int, looks: int = 32, forms: int = 16) -> None:
        self._words = segments.Words(looks, forms, seed)
        self._stack = AttributeStack(schema, PieceModel, seed)

    def describe(self, image: Float[np.ndarray, "*space"]) -> Float64[np.ndarray, "s f"]:
        """What is kept of an image."""
        return segments.describe(image)

    def fit(self, seen: Sequence[Float64[np.ndarray, "_ f"]], codes: Codes, patients: Sequence[str]) -> None:
        """Learn from training cases: words from all of them, models from those whose grade is known."""
        self._stack.fit(self._words.fit(seen).count(seen), codes, patients)

    def beliefs(self, seen: Sequence[Float64[np.ndarray, "_ f"]]) -> dict[str, Float64[np.ndarray, "n K"]]:
        """Give what is believed of other cases."""
        return self._stack.beliefs(self._words.count(seen))
