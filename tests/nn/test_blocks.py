"""Blocks of neighbours against loops over voxels."""

from itertools import product

import pytest
import torch
from torch.testing import assert_close

from radreason.nn.blocks import Halve, into_blocks


@pytest.mark.parametrize("sizes", [(4, 6), (5, 1), (3, 2, 5), (1, 1, 1)])
def test_halving_averages_the_neighbours_that_there_are(sizes):
    x = torch.randn(2, 3, *sizes, dtype=torch.float64)
    half = Halve()(x)
    assert half.shape[2:] == tuple(-(-n // 2) for n in sizes)
    for where in product(*(range(n) for n in half.shape[2:])):
        corners = product(*((2 * w, min(2 * w + 1, n - 1)) for w, n in zip(where, sizes, strict=True)))
        told = [x[(..., *corner)] for corner in corners]
        assert_close(half[(..., *where)], sum(told) / len(told))


@pytest.mark.parametrize(("sizes", "block"), [((4, 6), (2, 3)), ((5, 4, 1), (2, 3, 2)), ((3,), (5,))])
def test_every_voxel_lies_in_its_block_and_the_last_ones_fill_the_rest(sizes, block):
    x = torch.randn(2, 3, *sizes)
    blocks = into_blocks(x, block)
    for where in product(*(range(-(-n // b)) for n, b in zip(sizes, block, strict=True))):
        for inside in product(*map(range, block)):
            voxel = [min(w * b + i, n - 1) for w, b, i, n in zip(where, block, inside, sizes, strict=True)]
            at = [step for pair in zip(where, inside, strict=True) for step in pair]
            assert blocks[(..., *at)].equal(x[(..., *voxel)])
