"""The paper's pooling against its definition as loops over voxels."""

from itertools import product

import pytest
import torch

from radreason.errors import InputError
from radreason.nn.pooling import LosslessPooling, PyramidPooling, neighbours


def by_definition(x, block):
    """Join the channels of every block of neighbours, position by position, then average over blocks."""
    channels, *sizes = x.shape
    blocks = [-(-n // b) for n, b in zip(sizes, block, strict=True)]
    pooled = []
    for position in product(*map(range, block)):
        for channel in range(channels):
            total = 0.0
            for where in product(*map(range, blocks)):
                voxel = [w * b + p for w, b, p in zip(where, block, position, strict=True)]
                inside = [min(v, n - 1) for v, n in zip(voxel, sizes, strict=True)]
                total += x[(channel, *inside)].item()
            pooled.append(total / torch.tensor(blocks).prod().item())
    return torch.tensor(pooled, dtype=x.dtype)


@pytest.mark.parametrize("sizes", [(8, 8), (4, 8), (1, 1), (3, 5), (2, 9)])
@pytest.mark.parametrize("width", [3, 6, 24, 27])
def test_pooling_in_two_dimensions(sizes, width):
    check(sizes, width)


@pytest.mark.parametrize("sizes", [(4, 4, 4), (2, 2, 2), (1, 1, 1), (3, 2, 5)])
@pytest.mark.parametrize("width", [3, 12, 24])
def test_pooling_in_three_dimensions(sizes, width):
    check(sizes, width)


def check(sizes, width):
    pool = LosslessPooling(len(sizes), channels=3, width=width)
    x = torch.randn(2, 3, *sizes, dtype=torch.float64)
    torch.testing.assert_close(pool(x), torch.stack([by_definition(one, pool.block) for one in x]))


def test_the_example_of_the_paper():
    x = torch.randn(64, 64, 256)
    joined = torch.empty(32, 16, 2048)
    for i, j in product(range(32), range(16)):
        joined[i, j] = torch.cat([x[2 * i + a, 4 * j + b] for a in range(2) for b in range(4)])
    pooled = LosslessPooling(2, channels=256, width=2048)(x.permute(2, 0, 1)[None])[0]
    torch.testing.assert_close(pooled, joined.mean((0, 1)), rtol=1e-4, atol=1e-6)


def test_a_map_of_one_block_loses_nothing():
    x = torch.randn(1, 5, 2, 2, 2)
    pooled = LosslessPooling(3, channels=5, width=40)(x)
    assert pooled.sort().values.equal(x.flatten(1).sort().values)


@pytest.mark.parametrize("count", range(1, 40))
def test_neighbours_lie_as_evenly_as_can_be(count):
    for dims in (2, 3):
        layouts = [sides for sides in product(range(1, count + 1), repeat=dims) if prod(sides) == count]
        assert sum(neighbours(count, dims)) == min(map(sum, layouts))
        assert prod(neighbours(count, dims)) == count
        assert list(neighbours(count, dims)) == sorted(neighbours(count, dims))


def prod(sides):
    return torch.tensor(sides).prod().item()


def test_scales_are_added():
    pooling = PyramidPooling(2, [2, 4], width=8, features=3)
    maps = [torch.randn(2, 2, 6, 6), torch.randn(2, 4, 3, 3)]
    total = 0
    for scale, x in enumerate(maps):
        pooled = torch.stack([by_definition(one, (2, 2) if scale == 0 else (1, 2)) for one in x])
        weight, bias = pooling.parallel[scale].weight, pooling.parallel[scale].bias
        total = total + (pooled @ weight.T + bias).clamp(min=0)
    torch.testing.assert_close(pooling(maps), total @ pooling.last.weight.T + pooling.last.bias)


def test_without_activation_all_is_linear():
    a, b = ([torch.randn(2, 2, 4, 4), torch.randn(2, 2, 2, 2)] for _ in range(2))
    middle = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
    for rectify in (True, False):
        pooling = PyramidPooling(2, [2, 2], width=8, features=64, rectify=rectify)
        linear = torch.allclose(pooling(middle), (pooling(a) + pooling(b)) / 2, atol=1e-5)
        assert linear is not rectify


def test_mistakes_are_named_by_layer_and_scale():
    with pytest.raises(InputError) as error:
        LosslessPooling(3, channels=56, width=2048)
    assert str(error.value) == (
        "LosslessPooling from 56 channels to a width of 2048\n"
        "  expected: a multiple of 56: neighbours are joined whole\n"
        "  try: a feature pyramid, which gives every scale the same channels"
    )
    with pytest.raises(InputError, match=r"^LosslessPooling of 1 dimensions"):
        LosslessPooling(1, channels=4, width=8)
    pooling = PyramidPooling(2, [2, 2], width=8, features=3)
    with pytest.raises(InputError) as error:
        pooling([torch.rand(1, 2, 4, 4), torch.rand(1, 3, 2, 2)])
    assert str(error.value) == (
        "PyramidPooling, scale 1, was given a tensor of shape (1, 3, 2, 2)\n"
        "  expected: (batch, 2, height, width)"
    )
    with pytest.raises(InputError) as error:
        pooling([torch.rand(1, 2, 4, 4)])
    assert str(error.value) == (
        "PyramidPooling was given 1 maps\n  expected: 2, from fine to coarse, of 2, 2 channels"
    )
    with pytest.raises(InputError, match=r"^LosslessPooling was given a tensor of shape \(1, 2, 4\)"):
        LosslessPooling(2, 2, 8)(torch.rand(1, 2, 4))
