"""The window that a model looks through: its first layer, so that it takes intensities as they are.

Shape letters: none, any shape goes.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from radreason.errors import InputError


class Window(nn.Module):
    """Intensities clipped to [low, high] and scaled to [-1, 1].

    The bounds are settings, not weights: they are no buffers, so that a state_dict fits every window and
    each device. Integers become the default type of floats first, so that no sum of theirs runs over;
    floats keep their type, and what is no number stays none.

    >>> Window(-1000, 400)(torch.tensor([-2000, -1000, -300, 400, 3071]))
    tensor([-1., -1.,  0.,  1.,  1.])
    """

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        if not (low < high and math.isfinite(high - low)):
            raise InputError(
                found=f"a window from {low:g} to {high:g}",
                expected="two finite numbers, the lower one first",
                hint="Window(-1000, 400), which suits lungs in Hounsfield units",
            )
        self.low, self.high = float(low), float(high)

    def forward(self, images: Num[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Clip after scaling: rounding takes nothing out of [-1, 1], and infinities stay at its ends."""
        x = images if images.is_floating_point() else images.to(torch.get_default_dtype())
        return ((x - self.low) * (2 / (self.high - self.low)) - 1).clamp(-1, 1)

    def extra_repr(self) -> str:
        """Say the bounds."""
        return f"{self.low:g}, {self.high:g}"
