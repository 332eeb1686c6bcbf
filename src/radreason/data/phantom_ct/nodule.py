"""Draw one nodule into a patch of lung: shape, edge, ground glass, core, calcium and spicules.

The share of the way from the centre to the surface, ``t``, is 0 in the middle and 1 on the surface, in
every direction: core and calcium are drawn in it and so follow the shape. Edges are drawn in mm.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float32, Float64

from radreason.data.phantom_ct.kernels import nodule_field, paint_tubes, smooth_noise
from radreason.data.phantom_ct.looks import (
    CALCIUM_HU,
    CORE_HU,
    CORE_RADIUS,
    GROUND_GLASS,
    Traits,
    edge_mm,
)
from radreason.data.phantom_ct.shape import MONOMIALS, Body, directions, spread_directions

Box = Float32[np.ndarray, "d h w"]
_POWERS = np.array(MONOMIALS)


def draw_nodule(
    hu: Float32[np.ndarray, "D H W"],
    lung_hu: float,
    body: Body,
    traits: Traits,
    rng: np.random.Generator,
    mottle: float = 0.3,
) -> Bool[np.ndarray, "D H W"]:
    """Draw a nodule in the middle of a patch, in place, and give the mask of its body without spicules.

    ``mottle`` is how unevenly ground glass is spread; 0 for a rendering that can be measured exactly.
    """
    middle = (np.array(hu.shape) - 1) / 2
    lines = _spicules(body, traits, rng)
    reach = np.abs(body.surface(directions())).max(0) + traits.edge_mm / 2 + 1
    if len(lines):
        reach = np.maximum(reach, np.abs(lines[:, 1]).max(0) + 2)
    low = np.maximum(np.floor(middle - reach), 0).astype(int)
    high = np.minimum(np.ceil(middle + reach) + 1, hu.shape).astype(int)
    box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    start = low - middle

    length, radius = np.empty((2, *(high - low)), np.float32)
    nodule_field(
        start,
        body.matrix,
        body.shift,
        _POWERS,
        body.polynomial,
        body.lobes,
        body.cleft_cosine,
        body.lobule_depth,
        length,
        radius,
    )
    t = length / radius
    per_mm = 1 / np.maximum(_slope(length - radius), 1e-3)  # of q, in mm: the distance to first order
    inwards = (radius - length) * per_mm
    edge = _step(inwards / edge_mm(traits.edge_mm, body.radius_mm) + 0.5)

    solid_radius = traits.solid_share ** (1 / 3)
    solid = _step((solid_radius * radius - length) * per_mm + 0.5) if 0 < solid_radius < 1 else solid_radius
    glass = rng.standard_normal(t.shape, dtype=np.float32)
    smooth_noise(glass, 0.6, 0.6, GROUND_GLASS * mottle)
    glass += GROUND_GLASS
    density = glass + (1 - glass) * solid
    inside = lung_hu + traits.contrast_hu * density

    to_mm = radius * per_mm
    if traits.structure in CORE_HU:
        inside = _blend(inside, CORE_HU[traits.structure], _step((CORE_RADIUS - t) * to_mm + 0.5))
    calcium = _calcium(traits.calcification, t, to_mm, start, body, rng)
    if calcium is not None:
        inside = inside + CALCIUM_HU * calcium

    if len(lines):
        cover = np.zeros(t.shape, np.float32)
        paint_tubes(cover, start, lines, np.tile([1.0, 0.2], (len(lines), 1)), 1.0)
        rim = GROUND_GLASS + (1 - GROUND_GLASS) * traits.solid_share
        hu[box] = _blend(hu[box], lung_hu + traits.contrast_hu * rim, cover)
    hu[box] = _blend(hu[box], inside, edge)
    mask = np.zeros(hu.shape, bool)
    mask[box] = inwards > 0
    return mask


def _spicules(body: Body, traits: Traits, rng: np.random.Generator) -> Float64[np.ndarray, "lines 2 3"]:
    """Straight lines from within the surface outwards, away from each other."""
    roots = body.surface(spread_directions(traits.spicules, rng))
    away = roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-9)
    lengths = (2 + 0.6 * body.radius_mm) * rng.uniform(0.8, 1.2, (len(roots), 1))
    bend = rng.normal(0, 0.15, away.shape)
    return np.stack([0.8 * roots, roots + lengths * (away + bend)], axis=1)


def _calcium(
    pattern: str, t: Box, to_mm: Box, start: Float64[np.ndarray, " 3"], body: Body, rng: np.random.Generator
) -> Box | None:
    """Share of each voxel that is calcified, in the patterns that readers choose from."""
    match pattern:
        case "solid":
            return np.ones_like(t)
        case "central":
            return _step((0.45 - t) * to_mm + 0.5)
        case "laminated":
            shell = _step((0.12 - np.abs(t - 0.68)) * to_mm + 0.5)
            return np.asarray(np.maximum(shell, _step((0.28 - t) * to_mm + 0.5)))
        case "non-central":
            return _balls(spread_directions(1, rng), 0.55, 0.32, t.shape, start, body)
        case "popcorn":
            return _balls(spread_directions(7, rng), 0.5, 0.24, t.shape, start, body)
        case _:
            return None


def _balls(
    towards: Float64[np.ndarray, "balls 3"],
    share: float,
    size: float,
    shape: tuple[int, ...],
    start: Float64[np.ndarray, " 3"],
    body: Body,
) -> Box:
    """Balls part of the way to the surface, their radius a share of the nodule's."""
    middles = share * body.surface(towards)
    cover = np.zeros(shape, np.float32)
    radii = np.full((len(middles), 2), size * body.radius_mm)
    paint_tubes(cover, start, np.stack([middles, middles], axis=1), radii, 1.0)
    return cover


def _slope(values: Box) -> Box:
    """Length of the gradient, per mm; along an axis with one voxel there is none."""
    square = np.zeros_like(values)
    for axis, size in enumerate(values.shape):
        if size > 1:
            square += np.gradient(values, axis=axis) ** 2
    return np.asarray(np.sqrt(square))


def _step(x: Box) -> Box:
    """From 0 to 1 between 0 and 1, smoothly."""
    x = np.clip(x, 0, 1)
    return np.asarray(x * x * (3 - 2 * x))


def _blend(below: Box, above: Box | float, share: Box) -> Box:
    return np.asarray(below + share * (above - below), dtype=np.float32)
