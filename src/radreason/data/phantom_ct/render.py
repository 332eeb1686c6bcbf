"""One phantom: lung, nodule, noise."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int16, UInt8

from radreason.data.phantom_ct.looks import traits
from radreason.data.phantom_ct.lung import AIR_HU, add_noise, draw_lung, flat_lung
from radreason.data.phantom_ct.nodule import draw_nodule
from radreason.data.phantom_ct.shape import Shape, make_body


def render(
    shape: Shape,
    diameter_mm: float,
    labels: Mapping[str, Sequence[float] | None],
    size: tuple[int, int, int],
    rng: np.random.Generator,
    plain: bool = False,
) -> tuple[Int16[np.ndarray, "D H W"], UInt8[np.ndarray, "D H W"]]:
    """Render HU and the nodule's mask at 1 mm, the nodule's centre of mass in the middle.

    ``plain`` leaves out everything random around the nodule and in its ground glass (lung of one HU), so
    that grades can be measured.
    """
    of_body, of_nodule, of_lung, of_noise = rng.spawn(4)  # a grade changes what it shows and nothing else
    look = traits(labels)
    body = make_body(shape, diameter_mm, look.axis_ratio, look.lobule_depth, of_body)
    hu, lung_hu = flat_lung(size) if plain else draw_lung(size, body.radius_mm, of_lung)
    mask = draw_nodule(hu, lung_hu, body, look, of_nodule, mottle=0.0 if plain else 0.2)
    if not plain:
        add_noise(hu, of_noise)
    return np.clip(np.round(hu), AIR_HU, 3000).astype(np.int16), mask.astype(np.uint8)


def generator(seed: int, name: str) -> np.random.Generator:
    """Give a phantom its own random numbers, whichever worker renders it and in whatever order."""
    return np.random.default_rng([seed, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])])
