"""An invented chest, as formulas of a place in the radiograph, so that any part is drawn at any resolution.

x runs from -1 to 1 over the width of the radiograph, y from -1 to 1 downwards. The patient's right lung is on
the left. Places in a lung are (t, y), t the distance from the middle towards its side.

    H, W rows and columns of a grid
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

SIDES: Final = (-1, 1)
"""The lung on the left of the image, and the one on the right."""

LUNG, BODY, HEART, BELLY = 0.24, 0.70, 0.82, 0.80
"""Brightness of what is behind each other, from 0 (black) to 1; ribs and vessels add to it."""

Field = Float64[np.ndarray, "H W"]
Axis = Float64[np.ndarray, " _"]
Places = Float64[np.ndarray, "..."]
"""One coordinate of places, of any shape; two of them broadcast."""


@dataclass(frozen=True)
class Lung:
    """Where a lung ends: between the middle and the chest wall, above the diaphragm."""

    inner: float
    width: float
    height: float
    base: float
    dome: float

    def depth(self, t: Places, y: Places) -> Places:
        """How far inside the lung a place is; negative outside."""
        wall = self.width * np.sqrt(np.clip(1 - ((y - 0.25) / self.height) ** 2, 0, None))
        middle = (self.inner + self.width) / 2
        floor = self.base - self.dome + self.dome * ((t - middle) / (middle - self.inner)) ** 2
        return np.asarray(np.minimum(np.minimum(t - self.inner, wall - t), floor - y))


@dataclass(frozen=True)
class Anatomy:
    """What differs from chest to chest, whatever is found in it."""

    lungs: tuple[Lung, Lung]
    heart: tuple[float, float, float, float]
    ribs: tuple[float, float, float, float]
    gain: float
    shade: float
    vessels: tuple[tuple[int, float, float, float, float, float], ...]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Anatomy:
        """Invent a chest."""
        inner, width, height = rng.uniform(0.10, 0.14), rng.uniform(0.74, 0.84), rng.uniform(1.05, 1.15)
        base, dome = rng.uniform(0.62, 0.76), rng.uniform(0.12, 0.2)
        lungs = (
            Lung(inner, width * rng.uniform(0.97, 1.03), height, base - 0.05, dome),
            Lung(inner, width * rng.uniform(0.95, 1.0), height, base, dome * rng.uniform(0.9, 1.1)),
        )
        heart = (
            rng.uniform(0.1, 0.18),
            rng.uniform(0.28, 0.36),
            rng.uniform(0.26, 0.36),
            rng.uniform(0.3, 0.36),
        )
        ribs = (
            rng.uniform(-0.85, -0.75),
            rng.uniform(0.17, 0.2),
            rng.uniform(0.25, 0.4),
            rng.uniform(0.03, 0.04),
        )
        vessels = []
        for side in (0, 1):
            for _ in range(14):
                angle, length = rng.uniform(-1.2, 1.2), rng.uniform(0.2, 0.5)
                start_t, start_y = rng.uniform(0.14, 0.22), rng.uniform(-0.1, 0.15)
                end = start_t + length * np.cos(angle), start_y + length * np.sin(angle)
                vessels.append(
                    (side, start_t, start_y, float(end[0]), float(end[1]), rng.uniform(0.008, 0.018))
                )
        return cls(lungs, heart, ribs, rng.uniform(0.92, 1.08), rng.uniform(-0.05, 0.05), tuple(vessels))

    def depth(self, side: int, x: Places, y: Places) -> Places:
        """How far inside a lung places are; the heart takes its part."""
        return np.asarray(np.minimum(self.lungs[side].depth(SIDES[side] * x, y), self._heart(x, y)))

    def places(
        self,
        side: int,
        n: int,
        deep: float,
        rng: np.random.Generator,
        ys: tuple[float, float] = (-0.75, 0.7),
    ) -> list[tuple[float, float]]:
        """Draw so many places (t, y) in a lung, as deep as asked, or the deepest where too few are."""
        t, y = rng.uniform(0.1, 0.85, 40 * n + 160), rng.uniform(*ys, 40 * n + 160)
        depth = self.depth(side, SIDES[side] * t, y)
        fit = np.flatnonzero(depth >= deep)
        chosen = fit[:n] if len(fit) >= n else np.argsort(-depth)[:n]
        return [(float(t[at]), float(y[at])) for at in chosen]

    def box(self, side: int) -> tuple[float, float, float, float]:
        """Smallest box around a lung: left, top, right, bottom."""
        grid = np.linspace(-1, 1, 401)
        inside: Bool[np.ndarray, "_ _"] = self.depth(side, grid[None, :], grid[:, None]) > 0
        columns, rows = grid[inside.any(axis=0)], grid[inside.any(axis=1)]
        return float(columns[0]), float(rows[0]), float(columns[-1]), float(rows[-1])

    def lungs_at(self, xs: Axis, ys: Axis, edge: float = 0.012) -> Field:
        """How much of each place of a grid is lung."""
        x, y = xs[None, :], ys[:, None]
        return np.asarray(np.maximum(*(step(self.depth(side, x, y) / edge) for side in (0, 1))))

    def brightness(self, xs: Axis, ys: Axis, plain: bool = False) -> Field:
        """Draw the chest; ``plain`` leaves out what lies over the lungs: bones, vessels, shade."""
        x, y = xs[None, :], ys[:, None]
        torso = step((1.02 - np.abs(x) ** 3 * 0.9 - 0.06 * np.clip(-y, 0, 1) ** 4 - np.abs(x) * 0.05) / 0.1)
        image = 0.02 + (BODY - 0.02) * torso + 0.08 * step((0.09 - np.abs(x)) / 0.03)
        image = image + (BELLY - image) * step((y - 0.8) / 0.3) * torso
        lungs = self.lungs_at(xs, ys)
        image = image + (LUNG - image) * lungs
        image = image + (HEART - image) * step(-self._heart(x, y) / 0.02)
        if plain:
            return np.asarray(image)
        image = image + 0.08 * (self._ribs(x, y) + self._collar_bones(x, y)) * torso
        for side, *line, radius in self.vessels:
            add_line(image, xs, ys, SIDES[side], line, radius, 0.07, lungs)
        return np.asarray(image * self.gain + self.shade * x)

    def _heart(self, x: Places, y: Places) -> Places:
        middle_x, middle_y, rx, ry = self.heart
        length = np.sqrt(((x - middle_x) / rx) ** 2 + ((y - middle_y) / ry) ** 2)
        return np.asarray((length - 1) * min(rx, ry))

    def _ribs(self, x: Places, y: Places) -> Field:
        first, apart, bend, width = self.ribs
        total = np.zeros(np.broadcast_shapes(x.shape, y.shape))
        for number in range(9):
            middle = first + apart * number + bend * (np.abs(x) - 0.25) ** 2 + 0.12 * np.abs(x)
            total += step((width - np.abs(y - middle)) / 0.02)
        return np.asarray(total * step((np.abs(x) - 0.12) / 0.05) * step((0.92 - np.abs(x)) / 0.05))

    def _collar_bones(self, x: Places, y: Places) -> Field:
        middle = -0.68 - 0.16 * np.abs(x)
        return np.asarray(step((0.035 - np.abs(y - middle)) / 0.02) * step((np.abs(x) - 0.1) / 0.05))


def step(x: Places) -> Places:
    """Rise from 0 to 1 around zero, over a length of one."""
    return np.asarray(np.clip(x + 0.5, 0, 1))


def around(axis: Axis, low: float, high: float) -> slice:
    """The part of a rising axis between two places."""
    return slice(int(np.searchsorted(axis, low)), int(np.searchsorted(axis, high)))


def add_line(
    image: Field,
    xs: Axis,
    ys: Axis,
    sign: int,
    line: list[float] | tuple[float, ...],
    radius: float,
    amount: float,
    within: Field,
) -> None:
    """Add a line with soft edges between two places (t, y) of a side, in place."""
    t0, y0, t1, y1 = line
    x0, x1, edge = sign * t0, sign * t1, 0.01
    reach = radius + edge
    at = (
        around(ys, min(y0, y1) - reach, max(y0, y1) + reach),
        around(xs, min(x0, x1) - reach, max(x0, x1) + reach),
    )
    dx, dy = x1 - x0, y1 - y0
    x, y = xs[at[1]][None, :] - x0, ys[at[0]][:, None] - y0
    along = np.clip((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-12), 0, 1)
    distance = np.hypot(x - along * dx, y - along * dy)
    image[at] += amount * step((radius - distance) / edge) * within[at]
