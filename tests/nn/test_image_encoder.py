"""The backbone stage as one: F0 with and without a feature pyramid."""

import pytest
import torch

from radreason.errors import InputError
from radreason.nn.image_encoder import image_encoder


@pytest.mark.parametrize("dims", [2, 3])
def test_f0_is_one_vector_per_image_of_any_size(dims):
    encoder = image_encoder("compact", dims, width=2, pyramid_channels=4, features=7).eval()
    for sizes in [(16, 16, 16), (5, 24, 9), (1, 1, 1)]:
        assert encoder(torch.rand(3, 1, *sizes[:dims])).shape == (3, encoder.features) == (3, 7)


def test_defaults_are_those_of_the_paper():
    encoder = image_encoder("resnet50", 2)
    assert encoder.backbone.strides == (4, 8, 16, 32)
    assert encoder.pooling.channels == (256,) * 4
    assert [(pool.width, pool.block) for pool in encoder.pooling.pools] == [(2048, (2, 4))] * 4


def test_without_a_pyramid_it_is_the_plain_network_and_its_average():
    encoder = image_encoder("compact", 3, width=2, pyramid_channels=None, features=5).eval()
    images = torch.randn(2, 1, 12, 12, 12)
    pooled = encoder.backbone(images)[-1].mean((2, 3, 4))
    torch.testing.assert_close(
        encoder(images), encoder.pooling.last(encoder.pooling.parallel[0](pooled).clamp(min=0))
    )


def test_scales_of_a_plain_network_pool_to_one_width():
    encoder = image_encoder("resnet50", 2, pyramid_channels=None, scales=4, features=5)
    assert [pool.block for pool in encoder.pooling.pools] == [(2, 4), (2, 2), (1, 2), (1, 1)]


def test_fewer_scales_leave_out_the_finest():
    encoder = image_encoder("compact", 2, width=2, pyramid_channels=4, scales=2, features=5).eval()
    assert encoder.pyramid.in_channels == encoder.backbone.channels[1:]
    assert encoder(torch.rand(1, 1, 8, 8)).shape == (1, 5)
    with pytest.raises(InputError) as error:
        image_encoder("compact", 2, scales=4)
    assert str(error.value) == "4 scales of compact\n  expected: 1 to 3"


def test_exported_it_takes_batches_of_any_size():
    encoder = image_encoder("compact", 3, width=2, pyramid_channels=4, features=5).eval()
    images = torch.rand(3, 1, 9, 8, 8)
    batch = {0: torch.export.Dim("batch", min=1)}
    exported = torch.export.export(encoder, (images[:2],), dynamic_shapes=(batch,)).module()
    for n in (1, 2, 3):
        torch.testing.assert_close(exported(images[:n]), encoder(images[:n]))
