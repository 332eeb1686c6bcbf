"""From maps of many sizes to one vector: pooling that keeps where things are, then sums over scales.

Shape letters: B batch, C channels of a map, W width of a pooled map, F features of F0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from radreason.errors import InputError
from radreason.nn.blocks import into_blocks
from radreason.nn.feature_maps import check_dims, check_map
from radreason.nn.pyramid import check_maps


class LosslessPooling(nn.Module):
    """Global average pooling after neighbours have become channels (paper, "The Backbone Stage").

    A map of 64 x 64 x 256 is reshaped to 32 x 16 x 2048 by joining the channels of every 2 x 4 neighbours,
    and then averaged to 2048 numbers: the fewer channels a map has, the more neighbours are joined,
    and every map pools to the same width. Where neighbours do not fit, a map's last voxels are repeated.

    >>> LosslessPooling(dims=2, channels=256, width=2048).block
    (2, 4)
    >>> LosslessPooling(dims=3, channels=256, width=2048).block
    (2, 2, 2)
    """

    def __init__(self, dims: int, channels: int, width: int) -> None:
        super().__init__()
        check_dims("LosslessPooling", dims)
        if width <= 0 or width % channels:
            raise InputError(
                found=f"LosslessPooling from {channels} channels to a width of {width}",
                expected=f"a multiple of {channels}: neighbours are joined whole",
                hint="a feature pyramid, which gives every scale the same channels",
            )
        self.dims, self.channels, self.width = dims, channels, width
        self.block = neighbours(width // channels, dims)

    def forward(self, x: Float[Tensor, "B C *space"]) -> Float[Tensor, "B W"]:
        """Average the blocks of neighbours, not the neighbours."""
        check_map("LosslessPooling", x, self.dims, self.channels)
        per_neighbour = into_blocks(x, self.block).mean(dim=[2 + 2 * axis for axis in range(self.dims)])
        return per_neighbour.movedim(1, -1).flatten(start_dim=1)


def neighbours(count: int, dims: int) -> tuple[int, ...]:
    """Lay out so many neighbours as evenly as can be, the longer sides last.

    >>> neighbours(8, 2), neighbours(8, 3), neighbours(4, 3), neighbours(1, 3)
    ((2, 4), (2, 2, 2), (1, 2, 2), (1, 1, 1))
    """
    if dims == 2:
        short = max(n for n in range(1, math.isqrt(count) + 1) if count % n == 0)
        return short, count // short
    layouts = [
        (n, *neighbours(count // n, 2)) for n in range(1, round(count ** (1 / 3)) + 1) if count % n == 0
    ]
    return min(layouts, key=sum)


class PyramidPooling(nn.Module):
    """Pool every scale, a fully connected layer for each, their sum, a fully connected layer: F0.

    .. math:: F_0 = W \\sum_s \\max(0, W_s \\, pool(x_s))

    The paper names no activation between the layers; without one they would be a single linear layer.
    ``rectify=False`` leaves it out.
    """

    def __init__(
        self, dims: int, channels: Sequence[int], *, width: int, features: int, rectify: bool = True
    ) -> None:
        super().__init__()
        self.dims, self.channels, self.features, self.rectify = dims, tuple(channels), features, rectify
        self.pools = nn.ModuleList(LosslessPooling(dims, c, width) for c in channels)
        self.parallel = nn.ModuleList(nn.Linear(width, features) for _ in channels)
        self.last = nn.Linear(features, features)

    def forward(self, maps: Sequence[Tensor]) -> Float[Tensor, "B F"]:
        """Give F0 of maps from fine to coarse."""
        check_maps("PyramidPooling", maps, self.dims, self.channels)
        scales = zip(self.pools, self.parallel, maps, strict=True)
        pooled = [connected(pool(x)) for pool, connected, x in scales]
        f0: Tensor = self.last(torch.stack([relu(p) if self.rectify else p for p in pooled]).sum(dim=0))
        return f0
