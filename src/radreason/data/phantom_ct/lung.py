"""Invented lung around a nodule: parenchyma, branching vessels, sometimes the chest wall, and noise.

Nothing of it comes from a patient, and nothing of it depends on a grade.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64

from radreason.data.phantom_ct.kernels import paint_tubes, smooth_noise

AIR_HU, BLOOD_HU, MUSCLE_HU, FAT_HU = -1000.0, 40.0, 50.0, -100.0
MARROW_HU, CORTEX_HU = 150.0, 500.0

Patch = Float32[np.ndarray, "D H W"]


def draw_lung(shape: tuple[int, int, int], radius_mm: float, rng: np.random.Generator) -> tuple[Patch, float]:
    """Fill a patch with lung whose vessels make way for a nodule in the middle; give it and its mean HU."""
    lung_hu = float(rng.uniform(-890, -820))
    hu = np.full(shape, lung_hu, np.float32)
    hu += 18 * _smooth_field(shape, 14.0, rng) + 22 * _smooth_field(shape, 4.0, rng)
    start = -(np.array(shape) - 1) / 2

    ends, radii = _vessels(np.array(shape, float), radius_mm, rng)
    cover = np.zeros(shape, np.float32)
    paint_tubes(cover, start, ends, radii, float(rng.uniform(1.2, 2.4)))
    hu += cover * (BLOOD_HU - hu)
    if rng.random() < 0.35:
        _draw_chest_wall(hu, start, radius_mm, rng)
    return hu, lung_hu


def flat_lung(shape: tuple[int, int, int], lung_hu: float = -850.0) -> tuple[Patch, float]:
    """Fill a patch with one value, so that all that differs from it is the nodule."""
    return np.full(shape, lung_hu, np.float32), lung_hu


def add_noise(hu: Patch, rng: np.random.Generator) -> None:
    """Add noise as of a scanner, in place: correlated between neighbours, most along z."""
    noise = rng.standard_normal(hu.shape, dtype=np.float32)
    smooth_noise(noise, rng.uniform(0.2, 0.5), rng.uniform(0.4, 0.9), rng.uniform(12, 40))
    hu += noise


def _smooth_field(shape: tuple[int, ...], scale_mm: float, rng: np.random.Generator) -> Patch:
    """Random values that vary over some millimetres, with a deviation near 1: B-splines, axis by axis."""
    splines = [_splines(size, scale_mm) for size in shape]
    field = rng.standard_normal([len(s) for s in splines], dtype=np.float32)
    for spline in splines:  # each turn moves the first axis to the end
        field = np.tensordot(field, spline, axes=(0, 0))
    return np.asarray(field)


def _splines(size: int, scale_mm: float) -> Float32[np.ndarray, "knots size"]:
    knots = np.arange(-1, size / scale_mm + 2)
    x = np.abs(np.arange(size) / scale_mm - knots[:, None])
    near, far = 2 / 3 - x**2 + x**3 / 2, np.maximum(2 - x, 0) ** 3 / 6
    values = np.where(x < 1, near, far)
    return np.asarray(values / np.sqrt((values**2).sum(0)), dtype=np.float32)


def _vessels(
    size_mm: Float64[np.ndarray, " 3"], radius_mm: float, rng: np.random.Generator
) -> tuple[Float64[np.ndarray, "tubes 2 3"], Float64[np.ndarray, "tubes 2"]]:
    """Grow trees that enter from outside and branch, and small vessels anywhere, all tips at once."""
    reach = float(np.linalg.norm(size_mm)) / 2
    trees, twigs = int(rng.poisson(3 + (reach / 22) ** 2)), int(rng.poisson(np.prod(size_mm) / 9_000))
    leading = int(rng.choice(3, p=(0.55, 0.35, 0.1)))  # vessels that start in the nodule
    inward = _units(rng.standard_normal((trees, 3)))
    away = _units(rng.standard_normal((leading, 3)))
    tips = np.concatenate([-inward * reach, rng.uniform(-0.5, 0.5, (twigs, 3)) * size_mm, 1e-3 * away])
    aim = rng.uniform(-0.35, 0.35, (trees, 3)) * size_mm
    ways = _units(np.concatenate([aim - tips[:trees], rng.standard_normal((twigs, 3)), away]))
    radii = np.concatenate(
        [rng.uniform(1, 3.6, trees), rng.uniform(0.4, 0.9, twigs), rng.uniform(0.7, 1.4, leading)]
    )
    ends, widths = [], []
    for _ in range(60):
        step = rng.uniform(2.5, 5, (len(tips), 1))
        ways = _units(ways + rng.normal(0, 0.16, ways.shape))
        nexts = tips + step * ways
        thinner = radii * 0.97
        ends.append(np.stack([tips, nexts], axis=1))
        widths.append(np.stack([radii, thinner], axis=1))
        forks = rng.random(len(tips)) < 0.2
        side = _units(np.cross(ways[forks], rng.standard_normal((int(forks.sum()), 3))))
        share = rng.uniform(0.55, 0.8, int(forks.sum()))  # of the radius; the cubes add up (Murray's law)
        branch_ways, branch_radii = _units(ways[forks] + 0.9 * side), thinner[forks] * share
        ways[forks] = _units(ways[forks] - 0.35 * side)
        thinner[forks] *= (1 - share**3) ** (1 / 3)
        tips = np.concatenate([nexts, nexts[forks]])
        ways = np.concatenate([ways, branch_ways])
        radii = np.concatenate([thinner, branch_radii])
        alive = (radii > 0.3) & (np.abs(tips) < size_mm / 2 + 6).all(1) | (
            np.linalg.norm(tips, axis=1) > reach
        )
        alive &= np.linalg.norm(tips, axis=1) < reach + 6
        tips, ways, radii = tips[alive], ways[alive], radii[alive]
        if not len(tips):
            break
    thick = np.concatenate(widths)
    points = _aside(np.concatenate(ends), radius_mm + thick)
    outside = np.linalg.norm(points.mean(1), axis=1) > radius_mm + thick.min(1)
    return points[outside], thick[outside]


def _aside(
    points: Float64[np.ndarray, "tubes 2 3"], radius_mm: Float64[np.ndarray, "tubes 2"]
) -> Float64[np.ndarray, "tubes 2 3"]:
    """Push points outwards as a ball in the middle would that displaces its own volume."""
    away = np.maximum(np.linalg.norm(points, axis=-1), 1e-6)
    return np.asarray(points * ((1 + (radius_mm / away) ** 3) ** (1 / 3))[..., None])


def _draw_chest_wall(
    hu: Patch, start: Float64[np.ndarray, " 3"], radius_mm: float, rng: np.random.Generator
) -> None:
    """Put muscle, fat and a rib beyond a large sphere, somewhere between touching the nodule and far off."""
    outward = _units(rng.standard_normal((1, 3)) * [0.3, 1, 1])[0]
    bend = float(rng.uniform(70, 150))
    away = radius_mm + float(rng.uniform(-1, 0.5 * max(hu.shape)) * rng.random())
    middle = outward * (away - bend)
    z, y, x = (
        (start[a] + np.arange(size, dtype=np.float32) - middle[a]) ** 2 for a, size in enumerate(hu.shape)
    )
    depth = np.sqrt(z[:, None, None] + y[:, None] + x) - bend
    wall = np.clip(depth + 0.5, 0, 1)
    if not wall.any():
        return
    layers = np.clip(2.5 * _smooth_field(hu.shape, 9.0, rng) + np.clip(depth - 4, -4, 4) / 4, -1, 1)
    tissue = (MUSCLE_HU + FAT_HU) / 2 - layers * (MUSCLE_HU - FAT_HU) / 2
    hu += wall * (tissue - hu)

    across = _units(np.cross(outward, rng.normal(0, 0.3, 3) + np.eye(3)[0])[None])[0]
    angle = np.linspace(-1, 1, 16)[:, None]
    lift = float(rng.uniform(-15, 15)) * np.cross(outward, across)
    rib = middle + lift + (bend + 9) * (np.cos(angle) * outward + np.sin(angle) * across)
    ends = np.stack([rib[:-1], rib[1:]], axis=1)
    for radius, value in ((5.5, CORTEX_HU), (4.0, MARROW_HU)):
        cover = np.zeros(hu.shape, np.float32)
        paint_tubes(cover, start, ends, np.full((len(ends), 2), radius), 1.5)
        hu += cover * (value - hu)


def _units(vectors: Float64[np.ndarray, "n 3"]) -> Float64[np.ndarray, "n 3"]:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9))
