"""The feature pyramid against its definition, written with loops over voxels."""

from itertools import product

import pytest
import torch

from radreason.errors import InputError
from radreason.nn.pyramid import Pyramid


def convolved(x, kernel, bias):
    """Convolve one map with zeros around it, voxel by voxel."""
    reach = kernel.shape[-1] // 2
    out = torch.empty(kernel.shape[0], *x.shape[1:])
    for where in product(*map(range, x.shape[1:])):
        total = bias.clone()
        for step in product(*map(range, kernel.shape[2:])):
            voxel = [w + s - reach for w, s in zip(where, step, strict=True)]
            if all(0 <= v < n for v, n in zip(voxel, x.shape[1:], strict=True)):
                total += kernel[(slice(None), slice(None), *step)] @ x[(slice(None), *voxel)]
        out[(slice(None), *where)] = total
    return out


@pytest.mark.parametrize("sizes", [[(6, 4), (3, 2), (2, 1)], [(4, 3, 2), (2, 2, 1)]])
def test_each_map_adds_what_the_coarser_ones_know(sizes):
    dims, channels = len(sizes[0]), [2, 3, 4][: len(sizes)]
    pyramid = Pyramid(dims, channels, channels=5)
    for parameter in pyramid.parameters():
        torch.nn.init.normal_(parameter)
    maps = [torch.randn(1, c, *size) for c, size in zip(channels, sizes, strict=True)]
    with torch.inference_mode():
        found = pyramid(maps)

        known = None
        for scale in reversed(range(len(maps))):
            lateral, smooth = pyramid.net.inner_blocks[scale], pyramid.net.layer_blocks[scale]
            own = convolved(maps[scale][0], lateral.weight, lateral.bias)
            if known is not None:
                for where in product(*map(range, sizes[scale])):
                    coarser = [
                        w * n // m for w, n, m in zip(where, sizes[scale + 1], sizes[scale], strict=True)
                    ]
                    own[(slice(None), *where)] += known[(slice(None), *coarser)]
            known = own
            torch.testing.assert_close(
                found[scale][0], convolved(known, smooth.weight, smooth.bias), rtol=1e-4, atol=1e-4
            )


def test_mistakes_are_named_by_scale():
    with pytest.raises(InputError) as error:
        Pyramid(2, [2, 3], channels=4)([torch.rand(1, 2, 4, 4), torch.rand(1, 2, 2, 2)])
    assert str(error.value) == (
        "Pyramid, scale 1, was given a tensor of shape (1, 2, 2, 2)\n  expected: (batch, 3, height, width)"
    )
    with pytest.raises(InputError, match=r"^Pyramid of 5 dimensions"):
        Pyramid(5, [2, 3])
