"""Where an image lights up, by hand and by scipy; and ADINet's gate as loops."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from radreason import Schema, Variable
from radreason.nn.rivals.adinet import WeighedAttributes
from radreason.nn.rivals.two_branches import enlarged, heat, hot_box


@pytest.mark.parametrize("space", [(9, 7), (5, 6, 7)])
def test_the_box_is_that_of_the_region_around_the_hottest_place(space):
    generator = torch.Generator().manual_seed(0)
    warm = heat(torch.randn(8, 3, *space, generator=generator))
    assert warm.flatten(1).amin(dim=1).eq(0).all()
    assert warm.flatten(1).amax(dim=1).eq(1).all()
    for threshold in (0.3, 0.6):
        low, high = hot_box(warm, threshold)
        for case, image in enumerate(warm.numpy()):
            label, _ = ndimage.label(image >= threshold, np.ones((3,) * len(space)))
            peak = np.unravel_index(image.argmax(), space)
            (box,) = ndimage.find_objects((label == label[peak]).astype(int))
            np.testing.assert_allclose(low[case], [s.start / n for s, n in zip(box, space, strict=True)])
            np.testing.assert_allclose(high[case], [s.stop / n for s, n in zip(box, space, strict=True)])


def test_an_image_without_contrast_is_hot_everywhere():
    low, high = hot_box(heat(torch.full((1, 2, 4, 4), 3.0)), 0.7)
    assert low.tolist() == [[0, 0]]
    assert high.tolist() == [[1, 1]]


@pytest.mark.parametrize("space", [(8, 12), (8, 4, 12)])
def test_a_box_is_stretched_to_the_whole(space):
    images = torch.randn(2, 1, *space)
    zero, one = torch.zeros(2, len(space)), torch.ones(2, len(space))
    torch.testing.assert_close(enlarged(images, zero, one), images)
    ramp = torch.linspace(0, 1, space[-1]).expand(1, 1, *space).clone()
    middle = enlarged(ramp, zero[:1] + 0.25, one[:1] - 0.25)
    assert middle.amin() == pytest.approx(0.25, abs=0.05)
    assert middle.amax() == pytest.approx(0.75, abs=0.05)
    assert (middle.diff(dim=-1) > 0).all()
    box = torch.zeros(1, 1, *space)
    box[..., : space[-1] // 2] = 1
    left = one[:1].clone()
    left[0, -1] = 0.5
    assert enlarged(box, zero[:1], left).min() > 0.4


def test_adinet_weighs_attributes_by_all_of_them():
    schema = Schema(
        (Variable("a", ("1", "2", "3")), Variable("d", ("no", "yes")), Variable("b", ("1", "2"))), "d"
    )
    torch.manual_seed(0)
    layer = WeighedAttributes(schema, 4)
    feature, pieces = torch.randn(3, 4), [torch.rand(3, k) + 0.1 for k in schema.sizes]
    a, d, b = (piece / piece.sum(dim=1, keepdim=True) for piece in pieces)
    told = layer(feature, torch.cat([a, d, b], dim=1))
    for case in range(3):
        both = torch.cat([a[case], b[case]])
        weights = torch.sigmoid(layer.weigh.weight @ both + layer.weigh.bias)
        powers = [a[case] ** (2 * weights[0]), b[case] ** (2 * weights[1])]
        scaled = torch.cat([weights[0] * a[case], weights[1] * b[case]])
        disease = (layer.read.weight @ torch.cat([feature[case], scaled]) + layer.read.bias).softmax(dim=0)
        wanted = torch.cat([powers[0] / powers[0].sum(), disease, powers[1] / powers[1].sum()])
        torch.testing.assert_close(told[case], wanted)
    torch.nn.init.zeros_(layer.weigh.weight)
    torch.nn.init.zeros_(layer.weigh.bias)
    told = layer(feature, torch.cat([a, d, b], dim=1))
    torch.testing.assert_close(told[:, [0, 1, 2, 5, 6]], torch.cat([a, b], dim=1))
