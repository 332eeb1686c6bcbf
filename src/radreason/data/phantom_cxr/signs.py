"""What each finding looks like in a phantom: one function per finding, each adding light to the lungs.

All are brighter than lung by a stated amount, so that whoever measures a rendering without noise finds how
many there are, how large and where. Where they are is random. The figures are chosen so that a phantom looks
as radiologists describe the finding; they are not fitted to patients. Tuberculosis has no look of its own: it
goes with the findings.

    H, W rows and columns of a grid
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from radreason.data.phantom_cxr.anatomy import SIDES, Anatomy, Axis, Field, add_line, around, step

Sign = Callable[[Anatomy, Axis, Axis, np.random.Generator], Field]

STREAKS: Final = (7, 12)
TINY: Final = (70, 110)
"""Nodules in each lung where they are diffuse, each of TINY_RADIUS."""
TINY_RADIUS: Final = (0.010, 0.016)
ROUND: Final = (4, 8)
ROUND_RADIUS: Final = (0.035, 0.055)
CAVITY_RADIUS: Final = (0.07, 0.11)


def fibrotic_streaks(anatomy: Anatomy, xs: Axis, ys: Axis, rng: np.random.Generator) -> Field:
    """Thin bright lines that fan out from the hilum into one upper field."""
    light, within = _dark(xs, ys), anatomy.lungs_at(xs, ys)
    side, n = int(rng.integers(2)), int(rng.integers(STREAKS[0], STREAKS[1] + 1))
    for angle in np.linspace(0.25, 1.25, n) + rng.normal(0, 0.03, n):
        near, far = rng.uniform(0.12, 0.2), rng.uniform(0.45, 0.75)
        line = (
            0.16 + near * np.cos(angle),
            -0.02 - near * np.sin(angle),
            0.16 + far * np.cos(angle),
            -0.02 - far * np.sin(angle),
        )
        add_line(light, xs, ys, SIDES[side], line, 0.008, 0.2, within)
    return np.asarray(np.minimum(light, 0.2))


def consolidation(anatomy: Anatomy, xs: Axis, ys: Axis, rng: np.random.Generator) -> Field:
    """One large cloud of uneven outline in one lung."""
    side = int(rng.integers(2))
    ((t, y),) = anatomy.places(side, 1, 0.16, rng)
    radius = rng.uniform(0.16, 0.24)
    phases, depths = rng.uniform(0, 2 * np.pi, 5), rng.uniform(0.03, 0.12, 5)
    dx, dy = xs[None, :] - SIDES[side] * t, ys[:, None] - y
    angle = np.arctan2(dy, dx)
    outline = radius * (
        1 + sum(d * np.sin((k + 2) * angle + p) for k, (p, d) in enumerate(zip(phases, depths, strict=True)))
    )
    return np.asarray(0.32 * step((outline - np.hypot(dx, dy)) / 0.08) * anatomy.lungs_at(xs, ys))


def diffuse_nodules(anatomy: Anatomy, xs: Axis, ys: Axis, rng: np.random.Generator) -> Field:
    """Very many tiny nodules in both lungs."""
    light = _dark(xs, ys)
    for side in (0, 1):
        for t, y in anatomy.places(side, int(rng.integers(TINY[0], TINY[1] + 1)), 0.03, rng):
            _add_disc(light, xs, ys, SIDES[side] * t, y, rng.uniform(*TINY_RADIUS), 0.2, 0.01)
    return np.asarray(np.minimum(light, 0.2) * anatomy.lungs_at(xs, ys))


def cavitation(anatomy: Anatomy, xs: Axis, ys: Axis, rng: np.random.Generator) -> Field:
    """A bright ring around air that is darker than lung, in an upper field."""
    side, radius, wall = int(rng.integers(2)), rng.uniform(*CAVITY_RADIUS), rng.uniform(0.03, 0.04)
    ((t, y),) = anatomy.places(side, 1, radius + wall, rng, (-0.6, -0.1))
    distance = np.hypot(xs[None, :] - SIDES[side] * t, ys[:, None] - y)
    ring = step((radius + wall / 2 - distance) / 0.01) - step((radius - wall / 2 - distance) / 0.01)
    return np.asarray(0.32 * ring - 0.12 * step((radius - wall / 2 - distance) / 0.01))


def atelectasis(anatomy: Anatomy, xs: Axis, ys: Axis, rng: np.random.Generator) -> Field:
    """One or two thick plates above the diaphragm, nearly level."""
    light, within = _dark(xs, ys), anatomy.lungs_at(xs, ys)
    side, n = int(rng.integers(2)), int(rng.integers(1, 3))
    lung = anatomy.lungs[side]
    bottom = lung.base - lung.dome
    for number in range(n):
        y, tilt = bottom - 0.09 - 0.12 * number + rng.uniform(-0.02, 0.02), rng.uniform(-0.06, 0.06)
        start = rng.uniform(0.28, 0.4)
        line = (start, y - tilt, start + rng.uniform(0.28, 0.36), y + tilt)
        add_line(light, xs, ys, SIDES[side], line, 0.022, 0.26, within)
    return np.asarray(np.minimum(light, 0.26))


def multiple_nodules(anatomy: Anatomy, xs: Axis, ys: Axis, rng: np.random.Generator) -> Field:
    """Several round nodules, apart from each other."""
    light = _dark(xs, ys)
    taken: list[tuple[float, float]] = []
    n = int(rng.integers(ROUND[0], ROUND[1] + 1))
    found = [(SIDES[side] * t, y) for side in (0, 1) for t, y in anatomy.places(side, 60, 0.06, rng)]
    for at in rng.permutation(len(found)):
        x, y = found[at]
        if all(np.hypot(x - a, y - b) > 2.6 * ROUND_RADIUS[1] for a, b in taken):
            taken.append((x, y))
            _add_disc(light, xs, ys, x, y, rng.uniform(*ROUND_RADIUS), 0.28, 0.015)
        if len(taken) == n:
            break
    return np.asarray(light * anatomy.lungs_at(xs, ys))


def pleural_effusion(anatomy: Anatomy, xs: Axis, ys: Axis, rng: np.random.Generator) -> Field:
    """Fluid that fills the base of one lung and climbs the chest wall."""
    side = int(rng.integers(2))
    lung = anatomy.lungs[side]
    level = lung.base - rng.uniform(0.25, 0.45)
    t = SIDES[side] * xs[None, :]
    surface = level - 0.22 * np.clip((t - lung.inner) / (lung.width - lung.inner), 0, 1) ** 3
    own = step(anatomy.depth(side, xs[None, :], ys[:, None]) / 0.012)
    return np.asarray(0.5 * step((ys[:, None] - surface) / 0.03) * own)


def single_nodule(anatomy: Anatomy, xs: Axis, ys: Axis, rng: np.random.Generator) -> Field:
    """One round nodule, which is none of the findings."""
    side, light = int(rng.integers(2)), _dark(xs, ys)
    ((t, y),) = anatomy.places(side, 1, 0.06, rng)
    _add_disc(light, xs, ys, SIDES[side] * t, y, rng.uniform(*ROUND_RADIUS), 0.28, 0.015)
    return np.asarray(light * anatomy.lungs_at(xs, ys))


SIGNS: Final[Mapping[str, Sign]] = {
    "fibrotic_streaks": fibrotic_streaks,
    "consolidation": consolidation,
    "diffuse_nodules": diffuse_nodules,
    "cavitation": cavitation,
    "atelectasis": atelectasis,
    "multiple_nodules": multiple_nodules,
    "pleural_effusion": pleural_effusion,
}
"""The findings that have a look, by name."""


def _dark(xs: Axis, ys: Axis) -> Field:
    return np.zeros((len(ys), len(xs)))


def _add_disc(
    light: Field, xs: Axis, ys: Axis, x: float, y: float, radius: float, amount: float, edge: float
) -> None:
    reach = radius + edge
    at = around(ys, y - reach, y + reach), around(xs, x - reach, x + reach)
    distance = np.hypot(xs[at[1]][None, :] - x, ys[at[0]][:, None] - y)
    light[at] += amount * step((radius - distance) / edge)
