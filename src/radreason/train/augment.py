"""Augmentation: parameters are drawn first, for each case alone, and applied to a batch second.

What a case looks like in an epoch follows from the seed, the epoch and the row of the case. Batches,
their order, the number of processes and an interruption change nothing.

Shape letters: B batch, D dimensions of the images, R orientations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from radreason.errors import InputError, unknown

Flips = Literal["none", "left-right", "all"]
Turns = Literal["none", "plane", "cube"]


@dataclass(frozen=True, eq=False)
class Parameters:
    """What is done to each case; of images in two dimensions the last two axes count.

    ``turn`` is a place in [0, 1) among the turns that the core allows; ``shift`` is in voxels of the patch
    before it is turned; ``degrees`` are about each axis; a ``zoom`` above one enlarges.
    """

    mirror: Bool[Tensor, "B 3"]
    turn: Float64[Tensor, " B"]
    shift: Int64[Tensor, "B 3"]
    degrees: Float64[Tensor, "B 3"]
    zoom: Float64[Tensor, " B"]

    def __len__(self) -> int:
        return len(self.turn)


@dataclass(frozen=True)
class Augmentation:
    """How images of a training may differ from what was scanned; as it comes, not at all.

    flips   mirror each axis, or the last alone (``"left-right"``), in half of the cases
    turns   quarter turns within the slice, or all 24 rotations of the cube. Between axes of
            different length there are only half turns
    degrees turn freely by up to so much, about the slice axis and, in three dimensions, each other axis
    shift   displace the core by up to so many voxels along each axis
    scale   zoom by a factor between 1 / (1 + scale) and 1 + scale

    ``degrees`` and ``scale`` interpolate linearly, which smooths; the others only move voxels. Beyond the
    patch its last voxels are repeated. Angles are those of voxels as long as they are wide.

    >>> augmentation = Augmentation(flips="all", turns="cube", shift=4)
    >>> parameters = augmentation.draw(seed=0, epoch=3, rows=[7, 2])
    >>> augmentation.apply(torch.zeros(2, 20, 20, 20), parameters, (12, 12, 12)).shape
    torch.Size([2, 12, 12, 12])
    """

    flips: Flips = "none"
    turns: Turns = "none"
    degrees: float = 0.0
    shift: int = 0
    scale: float = 0.0

    def __post_init__(self) -> None:
        if self.flips not in get_args(Flips):
            raise unknown("kind of flips", self.flips, get_args(Flips))
        if self.turns not in get_args(Turns):
            raise unknown("kind of turns", self.turns, get_args(Turns))
        if not 0 <= self.degrees <= 180:
            raise InputError(found=f"rotation by up to {self.degrees} degrees", expected="0 to 180")
        if self.shift < 0:
            raise InputError(found=f"a shift by up to {self.shift} voxels", expected="0 or more")
        if not 0 <= self.scale < math.inf:
            raise InputError(found=f"augmentation with scale {self.scale}", expected="0 or more: 0.1 is 10 %")

    @property
    def interpolates(self) -> bool:
        """Whether voxels get values that were not in the patch."""
        return self.degrees > 0 or self.scale > 0

    def check(self, space: tuple[int, ...], core: tuple[int, ...]) -> None:
        """Refuse to shift further than patches of such a shape have tissue."""
        margin = min(centred(space, core))
        if self.shift > margin:
            raise InputError(
                found=f"a shift by up to {self.shift} voxels, with a margin of {margin}",
                expected=f"no shift beyond the margin: patches of shape {space} around a core of {core} "
                "hold no more tissue",
                hint=f"shift={margin}, a smaller core, or a dataset prepared with a wider margin",
            )

    def draw(self, seed: int, epoch: int, rows: Sequence[int] | np.ndarray) -> Parameters:
        """Draw the parameters of some cases.

        Each is drawn whether it is wanted or not, so that experiments that differ in one setting share
        all other draws.
        """
        for what, number in (("seed", seed), ("epoch", epoch), *(("row", row) for row in rows)):
            if number < 0:
                raise InputError(found=f"augmentation of {what} {number}", expected="0 or more")
        draws = np.empty((len(rows), 11))
        for place, row in enumerate(rows):
            source = np.random.SeedSequence(seed, spawn_key=(int(epoch), int(row)))
            draws[place] = np.random.default_rng(source).random(11)
        mirror, turn, shift, degrees, zoom = torch.from_numpy(draws).split([3, 1, 3, 3, 1], dim=1)
        mirrored_axes = {"none": [0, 0, 0], "left-right": [0, 0, 1], "all": [1, 1, 1]}[self.flips]
        return Parameters(
            mirror=(mirror < 0.5) & torch.tensor(mirrored_axes, dtype=torch.bool),
            turn=turn[:, 0],
            shift=(shift * (2 * self.shift + 1)).floor().long() - self.shift,
            degrees=self.degrees * (2 * degrees - 1),
            zoom=(1 + self.scale) ** (2 * zoom[:, 0] - 1),
        )

    def apply(
        self, patches: Float[Tensor, " B *space"], parameters: Parameters, core: tuple[int, ...]
    ) -> Float[Tensor, " B *core"]:
        """Cut the core out of each patch, displaced, turned and mirrored as was drawn."""
        space = tuple(patches.shape[1:])
        corner = centred(space, core)
        if len(patches) != len(parameters):
            raise InputError(
                found=f"{len(parameters)} set(s) of parameters for {len(patches)} patch(es)",
                expected="one for each patch",
            )
        self.check(space, core)
        dims = len(core)
        choices = orientations(core, self.turns)
        chosen = choices[(parameters.turn * len(choices)).long()]
        sign = 1 - 2 * parameters.mirror[:, -dims:].long()
        orientation = chosen * sign[:, None, :]
        shift = parameters.shift[:, -dims:]
        if not self.interpolates:
            return _rearranged(patches, shift + torch.tensor(corner), orientation, core)
        turned = _rotations(parameters.degrees, dims) @ orientation.double()
        return _resampled(patches, shift, turned / parameters.zoom[:, None, None], core)


def centred(space: tuple[int, ...], core: tuple[int, ...]) -> tuple[int, ...]:
    """Where the centred core of a patch starts, as `Dataset.patches_at` cuts it.

    >>> centred((48, 48), (32, 31))
    (8, 8)
    """
    fits = len(space) == len(core) and all(0 < n <= m for n, m in zip(core, space, strict=True))
    if not fits or len(core) not in (2, 3):
        raise InputError(
            found=f"a core of shape {core} in patches of shape {space}",
            expected="one within them, of two or three dimensions as they are",
        )
    return tuple((m - n) // 2 for n, m in zip(core, space, strict=True))


@lru_cache(maxsize=64)
def orientations(core: tuple[int, ...], turns: Turns) -> Int64[Tensor, "R D D"]:
    """All rotations of a core onto itself, as matrices from axes of the result to axes of the patch.

    >>> [len(orientations((8, 8, 8), turns)) for turns in ("none", "plane", "cube")]
    [1, 4, 24]
    >>> [len(orientations((4, 8, 8), turns)) for turns in ("none", "plane", "cube")]
    [1, 4, 8]
    """
    dims = len(core)
    found = []
    for axes, signs in product(permutations(range(dims)), product((1, -1), repeat=dims)):
        matrix = torch.zeros(dims, dims, dtype=torch.long)
        for axis, (source, sign) in enumerate(zip(axes, signs, strict=True)):
            matrix[source, axis] = sign
        is_rotation = torch.linalg.det(matrix.double()) > 0
        onto_itself = all(core[source] == n for source, n in zip(axes, core, strict=True))
        in_the_slice = dims == 2 or matrix[0, 0] == 1
        if is_rotation and onto_itself and (turns == "cube" or in_the_slice):
            found.append(matrix)
    return torch.stack(found[:1] if turns == "none" else found)  # the first leaves all as it is


def _rearranged(
    patches: Float[Tensor, " B *space"],
    corner: Int64[Tensor, "B D"],
    orientation: Int64[Tensor, "B D D"],
    core: tuple[int, ...],
) -> Float[Tensor, " B *core"]:
    """Move voxels and nothing else."""
    result = patches.new_empty((len(patches), *core))
    sources = orientation.abs().argmax(dim=1).tolist()
    signs = orientation.sum(dim=1).tolist()
    for case, starts in enumerate(corner.tolist()):
        inner = tuple(slice(start, start + n) for start, n in zip(starts, core, strict=True))
        mirrored = [axis for axis, sign in enumerate(signs[case]) if sign < 0]
        result[case] = patches[case][inner].permute(sources[case]).flip(mirrored)
    return result


def _resampled(
    patches: Float[Tensor, " B *space"],
    shift: Int64[Tensor, "B D"],
    matrix: Float64[Tensor, "B D D"],
    core: tuple[int, ...],
) -> Float[Tensor, " B *core"]:
    """Interpolate each voxel at ``matrix @ (its place from the centre of the core) + shift``."""
    space = torch.tensor(patches.shape[1:], dtype=torch.float64)
    size = torch.tensor(core, dtype=torch.float64)
    odd = (space - size) % 2 / 2  # the core cannot lie in the middle, and lies half a voxel before it
    # grid_sample counts from -1 to 1 across each image, and its last axis first
    moved = (shift - odd) * 2 / space
    theta = torch.cat([(matrix * size / space[:, None]).flip(1, 2), moved.flip(1)[..., None]], dim=2)
    grid = affine_grid(theta.to(patches), [len(patches), 1, *core], align_corners=False)
    sampled = grid_sample(patches[:, None], grid, padding_mode="border", align_corners=False)
    return sampled[:, 0]


def _rotations(degrees: Float64[Tensor, "B 3"], dims: int) -> Float64[Tensor, "B D D"]:
    """Turn about the last axis, then the middle one, then the first: that of the slices."""
    angles = degrees.deg2rad()
    about = torch.eye(3, dtype=torch.float64).repeat(3, len(degrees), 1, 1)
    for axis, (one, other) in enumerate([(1, 2), (0, 2), (0, 1)]):
        about[axis, :, one, one] = about[axis, :, other, other] = angles[:, axis].cos()
        about[axis, :, other, one] = angles[:, axis].sin()
        about[axis, :, one, other] = -angles[:, axis].sin()
    return about[0, :, 1:, 1:] if dims == 2 else about[0] @ about[1] @ about[2]
