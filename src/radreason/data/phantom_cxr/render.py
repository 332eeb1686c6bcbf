"""One phantom: the whole radiograph, or both lungs cut out by their boxes and placed side by side.

H, W rows and columns
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64, Int16, UInt8

from radreason.data.phantom_cxr.anatomy import Anatomy, Axis, Field
from radreason.data.phantom_cxr.signs import SIGNS, single_nodule

WHITE: Final = 4095
"""Brightness runs from 0 to so much, as in radiographs of 12 bits."""

FINE: Final = 128
"""Smaller images are drawn as finely as this and averaged, so that thin lines do not fall between pixels."""

NODULE_ALONE: Final = 0.15
"""Share of phantoms with a single nodule, which is no finding of the schema."""


@dataclass(frozen=True)
class Phantom:
    """A chest with findings, from which any part can be drawn."""

    anatomy: Anatomy
    findings: tuple[str, ...]
    seeds: tuple[int, ...]
    plain: bool

    @classmethod
    def draw(cls, findings: Collection[str], rng: np.random.Generator, plain: bool = False) -> Phantom:
        """Invent a chest. What is found changes what it shows and nothing else: not the chest, nor the noise.

        ``plain`` leaves out all that lies over the lungs and is no finding, and the noise.
        """
        seeds = tuple(rng.integers(2**63, size=len(SIGNS) + 3).tolist())
        shown = tuple(name for name in SIGNS if name in findings)
        return cls(Anatomy.draw(np.random.default_rng(seeds[0])), shown, seeds, plain)

    def side_by_side(self, size: int) -> tuple[Int16[np.ndarray, "H W"], UInt8[np.ndarray, "H W"]]:
        """Draw both lungs, each resized to (size, size / 2), and where they are lung."""
        fine = -(-FINE // size) if size < FINE else 1
        halves = []
        for side in (0, 1):
            left, top, right, bottom = self.anatomy.box(side)
            xs, ys = _centres(left, right, size // 2 * fine), _centres(top, bottom, size * fine)
            halves.append((self._light(xs, ys), self.anatomy.lungs_at(xs, ys)))
        light, lungs = (_averaged(np.concatenate(pair, axis=1), fine) for pair in zip(*halves, strict=True))
        return self._developed(light), (lungs > 0.5).astype(np.uint8)

    def whole(self, size: int) -> tuple[Int16[np.ndarray, "H W"], UInt8[np.ndarray, "H W"]]:
        """Draw the whole radiograph, and where it is lung: 1 on the left of the image, 2 on the right."""
        axis = _centres(-1.0, 1.0, size)
        masks = [self.anatomy.depth(side, axis[None, :], axis[:, None]) > 0 for side in (0, 1)]
        return self._developed(self._light(axis, axis)), (masks[0] + 2 * masks[1]).astype(np.uint8)

    def _light(self, xs: Axis, ys: Axis) -> Field:
        light = self.anatomy.brightness(xs, ys, self.plain)
        for number, (name, sign) in enumerate(SIGNS.items(), start=1):
            if name in self.findings:
                light = light + sign(self.anatomy, xs, ys, np.random.default_rng(self.seeds[number]))
        rng = np.random.default_rng(self.seeds[-2])
        if not self.plain and rng.random() < NODULE_ALONE:
            light = light + single_nodule(self.anatomy, xs, ys, rng)
        return np.asarray(light)

    def _developed(self, light: Field) -> Int16[np.ndarray, "H W"]:
        if not self.plain:
            light = light + np.random.default_rng(self.seeds[-1]).normal(0, 0.02, light.shape)
        return np.clip(np.round(light * WHITE), 0, WHITE).astype(np.int16)


def _centres(low: float, high: float, n: int) -> Axis:
    """Middles of n pixels between two places."""
    return np.asarray(low + (high - low) * (np.arange(n) + 0.5) / n)


def _averaged(image: Field, by: int) -> Float64[np.ndarray, "_ _"]:
    height, width = image.shape
    return np.asarray(image.reshape(height // by, by, width // by, by).mean(axis=(1, 3)))


def generator(seed: int, name: str) -> np.random.Generator:
    """Give a phantom its own random numbers, whichever worker renders it and in whatever order."""
    return np.random.default_rng([seed, 1, *name.encode()])
