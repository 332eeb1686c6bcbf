"""The feature pyramid over a backbone: coarse maps tell fine ones what they are part of.

Shape letters: B batch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor, nn

from radreason.errors import InputError
from radreason.nn.feature_maps import check_dims, check_map


class Pyramid(nn.Module):
    """A feature pyramid network (Lin et al., 2017), the block of MONAI: as many maps out as in.

    The paper integrates it into the backbone (section "The Backbone Stage"); every map leaves it
    with the same number of channels.
    """

    def __init__(self, dims: int, in_channels: Sequence[int], *, channels: int = 256) -> None:
        from monai.networks.blocks.feature_pyramid_network import FeaturePyramidNetwork

        super().__init__()
        check_dims("Pyramid", dims)
        self.dims, self.in_channels = dims, tuple(in_channels)
        self.channels = (channels,) * len(in_channels)
        self.net = FeaturePyramidNetwork(dims, list(in_channels), channels)

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        """Give each map, from fine to coarse, what the coarser ones know."""
        check_maps("Pyramid", maps, self.dims, self.in_channels)
        named = OrderedDict((str(scale), x) for scale, x in enumerate(maps))
        return list(self.net(named).values())


def check_maps(layer: str, maps: Sequence[Tensor], dims: int, channels: Sequence[int]) -> None:
    """Refuse maps of other number or channels than the layer was made for, by layer and scale."""
    if len(maps) != len(channels):
        raise InputError(
            found=f"{layer} was given {len(maps)} maps",
            expected=f"{len(channels)}, from fine to coarse, of {', '.join(map(str, channels))} channels",
        )
    for scale, (found, expected) in enumerate(zip(maps, channels, strict=True)):
        check_map(f"{layer}, scale {scale},", found, dims, expected)
