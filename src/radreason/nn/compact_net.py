"""A residual network small enough for two cores and patches of 24 to 64 voxels.

Shape letters: B batch, C channels.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from radreason.nn.blocks import Halve
from radreason.nn.feature_maps import FeatureMaps


class CompactNet(FeatureMaps):
    """One convolution at full resolution, then a residual block per scale; channels double as it halves.

    The first convolution keeps the resolution: on small patches, halving it there costs more than any layer
    afterwards wins back. A residual block there would take half of all the time.

    >>> net = CompactNet(dims=3, width=8)
    >>> net.channels, net.strides
    ((16, 32, 64), (2, 4, 8))
    """

    def __init__(
        self, dims: int, *, in_channels: int = 1, width: int = 16, scales: int = 3, conv1_stride: int = 1
    ) -> None:
        super().__init__(dims, in_channels)
        self.channels = tuple(width * 2**s for s in range(1, scales + 1))
        self.strides = tuple(conv1_stride * 2**s for s in range(1, scales + 1))
        self.stem = nn.Sequential(
            convolution(dims, in_channels, width, stride=conv1_stride),
            batch_norm(dims, width),
            nn.ReLU(),
        )
        self.scales = nn.ModuleList(
            ResidualBlock(dims, before, after, halve=True)
            for before, after in zip((width, *self.channels), self.channels, strict=False)
        )

    def maps(self, images: Tensor) -> list[Tensor]:
        """Give what every scale makes of the one before."""
        found = [self.part((self.stem,), images)]
        for scale in self.scales:
            found.append(self.part((scale,), found[-1]))
        return found[1:]


class ResidualBlock(nn.Module):
    """Two convolutions of width 3 around a shortcut, which averages where the block halves.

    >>> import torch
    >>> ResidualBlock(2, 4, 8, halve=True)(torch.rand(2, 4, 5, 5)).shape
    torch.Size([2, 8, 3, 3])
    """

    def __init__(self, dims: int, before: int, after: int, *, halve: bool = False) -> None:
        super().__init__()
        self.change = nn.Sequential(
            convolution(dims, before, after, stride=2 if halve else 1),
            batch_norm(dims, after),
            nn.ReLU(),
            convolution(dims, after, after),
            batch_norm(dims, after),
        )
        shorter = [Halve()] if halve else []
        wider = [convolution(dims, before, after, size=1), batch_norm(dims, after)] if before != after else []
        self.shortcut = nn.Sequential(*shorter, *wider)
        self.rectify = nn.ReLU()

    def forward(self, x: Float[Tensor, "B _ *space"]) -> Float[Tensor, "B _ *smaller"]:
        """Add what the convolutions change."""
        changed: Tensor = self.rectify(self.change(x) + self.shortcut(x))
        return changed


def convolution(dims: int, before: int, after: int, *, size: int = 3, stride: int = 1) -> nn.Module:
    """Build one without bias, for a batch norm follows."""
    kind = nn.Conv2d if dims == 2 else nn.Conv3d
    return kind(before, after, size, stride=stride, padding=size // 2, bias=False)


def batch_norm(dims: int, channels: int) -> nn.Module:
    """Build the one of the right dimension."""
    return nn.BatchNorm2d(channels) if dims == 2 else nn.BatchNorm3d(channels)
