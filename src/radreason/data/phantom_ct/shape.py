"""A nodule's shape from its readers' outlines: a radius in every direction, smooth, and stretched to order.

Outlines are points in millimetres on slices that may be 3 mm apart, from up to four readers who do not
agree. A radius that is a polynomial of the direction, fitted to all their points at once, is their mean
and needs no slices. What that leaves out (hooks, corners finer than a slice) a phantom does without.

Letters: N points, M directions; coordinates are z, y, x in mm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from jaxtyping import Float64

from radreason.data.reading import Outline

DEGREE: Final = 4
"""Degree of the polynomial. Lobules come on top, at finer detail than it can follow."""

SMOOTHNESS: Final = 3e-4
"""Weight of roughness in the fit; it fills in where a nodule is on one slice only."""

ENOUGH: Final = 600
"""More points than that say the same again: readers draw from pixel to pixel."""

MONOMIALS: Final = tuple(
    (total - b - c, b, c) for total in range(DEGREE + 1) for c in (0, 1) for b in range(total - c + 1)
)
"""Powers of z, y, x. One power of x is enough, since the squares add up to one."""

_POWERS = np.array(MONOMIALS)
_DEGREES = _POWERS.sum(1)


@dataclass(frozen=True, eq=False)
class Shape:
    """The readers' shape: principal axes (columns), their relative lengths, and the radius besides these.

    ``polynomial`` are coefficients of `MONOMIALS` in coordinates in which the nodule is as long as wide.
    """

    axes: Float64[np.ndarray, "3 3"]
    log_lengths: Float64[np.ndarray, " 3"]
    polynomial: Float64[np.ndarray, " monomials"]


@dataclass(frozen=True, eq=False)
class Body:
    """A shape of given size, stretch and lobules, centred on its centre of mass.

    A point p is inside where |q| < radius(q / |q|) for q = matrix (p + shift), and the radius is the
    polynomial, less the clefts between lobules.
    """

    matrix: Float64[np.ndarray, "3 3"]
    shift: Float64[np.ndarray, " 3"]
    polynomial: Float64[np.ndarray, " monomials"]
    lobes: Float64[np.ndarray, "lobes 3"]
    cleft_cosine: float
    lobule_depth: float
    radius_mm: float

    def radius(self, directions: Float64[np.ndarray, "M 3"]) -> Float64[np.ndarray, " M"]:
        """Radius in some directions, in the coordinates q."""
        smooth = np.maximum(_monomials(directions) @ self.polynomial, 0.2)
        return np.asarray(smooth * _cleft(directions, self.lobes, self.cleft_cosine, self.lobule_depth))

    def surface(self, directions: Float64[np.ndarray, "M 3"]) -> Float64[np.ndarray, "M 3"]:
        """Points of the surface, in mm from the centre."""
        q = directions * self.radius(directions)[:, None]
        return np.asarray(q @ np.linalg.inv(self.matrix).T - self.shift)


def fit_shape(outlines: Sequence[Sequence[Outline]], pixel_mm: float, slice_mm: float) -> Shape:
    """Fit one shape to the outlines of all readers of a nodule."""
    points = np.concatenate([_points(own, pixel_mm, slice_mm) for own in outlines])
    points = points[:: -(-len(points) // ENOUGH)]
    points = points - (points.max(0) + points.min(0)) / 2
    matrix = np.diag(1 / np.maximum(points.std(0), 0.1))
    for _ in range(3):  # as round as can be, about the centre of mass
        radius = np.maximum(_monomials_all_around() @ _fit(points @ matrix.T), 0.2)
        _, centre, spread = _moments(directions(), radius)
        points = points - np.linalg.solve(matrix, centre)
        matrix = _power(spread, -0.5) @ matrix
    squares, axes = np.linalg.eigh(np.linalg.inv(matrix.T @ matrix))
    lengths = np.sqrt(squares)
    polynomial = _fit(points @ axes / lengths)
    return Shape(axes, np.log(lengths) - np.log(lengths).mean(), polynomial)


def make_body(
    shape: Shape, diameter_mm: float, axis_ratio: float, lobule_depth: float, rng: np.random.Generator
) -> Body:
    """Give a shape its equivalent diameter, longest to shortest axis, and lobules, each exactly."""
    lobes = spread_directions(int(rng.integers(6, 10)), rng)
    grid = directions()
    cleft_cosine = float((grid @ lobes.T).max(1).min())
    radius = np.maximum(_monomials_all_around() @ shape.polynomial, 0.2)
    radius = radius * _cleft(grid, lobes, cleft_cosine, lobule_depth)
    volume, centre, spread = _moments(grid, radius)
    stretch = shape.axes * np.exp(_with_range(shape.log_lengths, float(np.log(axis_ratio)))) @ shape.axes.T
    # of the coordinates p = stretch axes spread^(-1/2) (q - centre), the second moments are stretch's own
    from_q = stretch @ shape.axes @ _power(spread, -0.5)
    volume *= float(np.linalg.det(from_q))
    from_q = from_q * ((np.pi / 6 * diameter_mm**3 / abs(volume)) ** (1 / 3))
    return Body(
        matrix=np.linalg.inv(from_q),
        shift=from_q @ centre,
        polynomial=shape.polynomial,
        lobes=lobes,
        cleft_cosine=cleft_cosine,
        lobule_depth=lobule_depth,
        radius_mm=diameter_mm / 2,
    )


def spread_directions(count: int, rng: np.random.Generator) -> Float64[np.ndarray, "count 3"]:
    """Unit vectors that keep away from each other: a turned spiral, each a little off its place."""
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    vectors = _spiral(count) @ turn + rng.normal(0, 0.35 / np.sqrt(max(count, 1)), (count, 3))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@cache
def directions() -> Float64[np.ndarray, "M 3"]:
    """Directions all around, evenly: means over them are integrals over the sphere."""
    return _spiral(1500)


@cache
def _monomials_all_around() -> Float64[np.ndarray, "M monomials"]:
    return _monomials(directions())


def _spiral(count: int) -> Float64[np.ndarray, "count 3"]:
    place = np.arange(count) + 0.5
    height = 1 - 2 * place / max(count, 1)
    angle = np.pi * (1 + 5**0.5) * place
    across = np.sqrt(1 - height**2)
    return np.stack([height, across * np.sin(angle), across * np.cos(angle)], axis=1)


def _points(outlines: Sequence[Outline], pixel_mm: float, slice_mm: float) -> Float64[np.ndarray, "N 3"]:
    """Points of one reader's outlines, closed at both ends by caps that hold what half a slice holds."""
    drawn = sorted((o for o in outlines if o.inside), key=lambda o: o.z_mm)
    places = [np.c_[np.full(len(o.xy), o.z_mm), o.xy[:, ::-1] * pixel_mm] for o in drawn]
    height = 0.75 * slice_mm  # a half ellipsoid holds two thirds of base times height
    for end, sign in ((places[0], -1), (places[-1], 1)):
        middle = end.mean(0)
        for width in (0.0, 0.7):
            ring = middle + width * (end - middle)
            ring[:, 0] += sign * height * np.sqrt(1 - width**2)
            places.append(ring)
    return np.concatenate(places)


def _fit(q: Float64[np.ndarray, "N 3"]) -> Float64[np.ndarray, " monomials"]:
    length = np.maximum(np.linalg.norm(q, axis=1), 1e-9)
    to_monomials = _harmonics()
    at = _monomials(q / length[:, None])
    squares = to_monomials.T @ (at.T @ at) @ to_monomials
    roughness = SMOOTHNESS * len(q) * np.diag((_DEGREES * (_DEGREES + 1.0)) ** 2)
    return np.asarray(to_monomials @ np.linalg.solve(squares + roughness, to_monomials.T @ (at.T @ length)))


@cache
def _harmonics() -> Float64[np.ndarray, "monomials monomials"]:
    """Coefficients (columns) of polynomials that are orthonormal on the sphere, by degree."""
    _, triangle = np.linalg.qr(_monomials_all_around())
    return np.asarray(np.linalg.inv(triangle) * np.sqrt(len(directions())))


def _monomials(unit: Float64[np.ndarray, "M 3"]) -> Float64[np.ndarray, "M monomials"]:
    powers = np.ones((len(unit), 3, DEGREE + 1))
    for degree in range(DEGREE):
        powers[:, :, degree + 1] = powers[:, :, degree] * unit
    z, y, x = _POWERS.T
    return np.asarray(powers[:, 0, z] * powers[:, 1, y] * powers[:, 2, x])


def _cleft(
    unit: Float64[np.ndarray, "M 3"], lobes: Float64[np.ndarray, "L 3"], lowest: float, depth: float
) -> Float64[np.ndarray, " M"]:
    """Share of the radius that is left: all on top of a lobule, least where lobules meet."""
    top = ((unit @ lobes.T).max(1) - lowest) / (1 - lowest)
    return np.asarray(1 - depth * (1 - np.maximum(top, 0.0)))


def _moments(
    unit: Float64[np.ndarray, "M 3"], radius: Float64[np.ndarray, " M"]
) -> tuple[float, Float64[np.ndarray, " 3"], Float64[np.ndarray, "3 3"]]:
    """Volume, centre of mass and second moments of what lies within the radius."""
    volume = 4 * np.pi / 3 * np.mean(radius**3)
    centre = np.pi * (radius**4 @ unit) / len(unit) / volume
    second = 4 * np.pi / 5 * (unit.T * radius**5) @ unit / len(unit) / volume
    return float(volume), centre, second - np.outer(centre, centre)


def _with_range(logs: Float64[np.ndarray, " 3"], wanted: float) -> Float64[np.ndarray, " 3"]:
    """Stretch the logarithms of three lengths to a range, in proportion; equal ones evenly."""
    range_ = logs.max() - logs.min()
    shares = (logs - logs.mean()) / range_ if range_ > 1e-6 else np.array([-0.5, 0.0, 0.5])
    return np.asarray(shares * wanted)


def _power(matrix: Float64[np.ndarray, "3 3"], power: float) -> Float64[np.ndarray, "3 3"]:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.maximum(values, 1e-9) ** power @ vectors.T)
