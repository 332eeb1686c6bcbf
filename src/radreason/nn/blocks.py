"""Maps cut into blocks of neighbours, of which one averages either over the blocks or within them.

Shape letters: B batch, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


def into_blocks(x: Float[Tensor, "B C *space"], block: Sequence[int]) -> Float[Tensor, "B C *blocks"]:
    """Split every axis of space in two: which block, and which neighbour in it.

    Where blocks do not fit into the map, its last voxels are repeated.

    >>> into_blocks(torch.rand(1, 3, 4, 5), block=(2, 3)).shape
    torch.Size([1, 3, 2, 2, 2, 3])
    """
    for axis, size in enumerate(block, start=2):
        if missing := -x.shape[axis] % size:
            x = torch.cat([x, *[x.narrow(axis, -1, 1)] * missing], dim=axis)
    for axis, size in enumerate(block):
        x = x.unflatten(2 + 2 * axis, (-1, size))
    return x


class Halve(nn.Module):
    """Average every two neighbours of each axis; the last one of an odd number stays as it is.

    PyTorch's own pooling in 3-D refuses a map of one voxel, and its gradient on a GPU depends on the run.

    >>> Halve()(torch.tensor([[[[1.0, 3.0, 7.0]]]]))
    tensor([[[[2., 7.]]]])
    """

    def forward(self, x: Float[Tensor, "B C *space"]) -> Float[Tensor, "B C *half"]:
        """Average within blocks: adding the two of each pair is thrice as fast as a mean over strides."""
        dims = x.ndim - 2
        blocks = into_blocks(x, (2,) * dims)
        for axis in reversed(range(dims)):
            first, second = blocks.unbind(3 + 2 * axis)
            blocks = first + second
        halved: Tensor = blocks / 2**dims
        return halved
