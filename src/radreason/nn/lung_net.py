"""A small U-Net that marks both lungs on a radiograph, each by the side of the picture it is on.

It is told how the lungs are to be drawn, because data sets differ: with what lies behind the heart, or
without. So it can learn from both and be asked for one.

Shape letters: B batch, H rows, W columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn

from radreason.errors import InputError

CLASSES = ("background", "left of the picture", "right of the picture")
SWAPPED = [0, 2, 1]
"""The classes of a mirrored picture."""

WIDTH = 8
"""Channels at full resolution."""


class LungNet(nn.Module):
    """Grey pictures to logits of the background and of the lung on either side of the picture.

    >>> net = LungNet().eval()
    >>> net(torch.rand(2, 64, 64), torch.tensor([0.0, 1.0])).shape
    torch.Size([2, 3, 64, 64])
    """

    def __init__(self, channels: Sequence[int] = (16, 32, 64, 128, 128)) -> None:
        super().__init__()
        from monai.networks.nets import UNet

        self.step = 2 ** (len(channels) - 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of MONAI, on its own arguments
            self.unet = UNet(
                2, 2, WIDTH, channels, (2,) * (len(channels) - 1), act="RELU", num_res_units=1, norm="batch"
            )
        # the U-Net halves the picture first; edges are drawn with the picture itself at hand
        self.edges = nn.Sequential(
            nn.Conv2d(WIDTH + 1, WIDTH, 3, padding=1),
            nn.BatchNorm2d(WIDTH),
            nn.ReLU(),
            nn.Conv2d(WIDTH, len(CLASSES), 3, padding=1),
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # a third faster

    def forward(self, grey: Float[Tensor, "B H W"], drawing: Float[Tensor, " B"]) -> Float[Tensor, "B 3 H W"]:
        """Mark lungs; ``drawing`` is 1 where what lies behind the heart is to be lung, else 0."""
        if any(n % self.step for n in grey.shape[1:]):
            raise InputError(
                found=f"pictures of {' x '.join(map(str, grey.shape[1:]))}",
                expected=f"sides that are multiples of {self.step}",
            )
        mean = grey.mean((1, 2), keepdim=True)
        spread = grey.std((1, 2), keepdim=True).clamp_min(1e-3)
        asked = (2 * drawing - 1)[:, None, None].expand_as(grey)
        seen = torch.stack([(grey - mean) / spread, asked.to(grey)], 1)
        seen = seen.contiguous(memory_format=torch.channels_last)
        logits: Tensor = self.edges(torch.cat([self.unet(seen), seen[:, :1]], 1))
        return logits

    @torch.no_grad()
    def beliefs(
        self, grey: Float32[Tensor, "B H W"], drawing: Float32[Tensor, " B"]
    ) -> Float32[Tensor, "B 3 H W"]:
        """Give probabilities, the mean over the picture and its mirror image: neither side is preferred."""
        plain = self(grey, drawing).softmax(1)
        mirrored = self(grey.flip(2), drawing).softmax(1).flip(3)[:, SWAPPED]
        both: Tensor = (plain + mirrored) / 2
        return both
