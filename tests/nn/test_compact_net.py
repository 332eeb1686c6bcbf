"""The compact network against the same written with torch's functions, from its weights alone."""

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from radreason.nn.compact_net import CompactNet, ResidualBlock


def stirred(net):
    """Norms as they begin change nothing; here each has its own scale, shift and statistics."""
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point():
                tensor.add_(
                    torch.rand_like(tensor) if "running_var" in name else 0.3 * torch.randn_like(tensor)
                )
    return net.eval()


def normed(x, w, at):
    statistics = w[f"{at}.running_mean"], w[f"{at}.running_var"]
    return functional.batch_norm(x, *statistics, w[f"{at}.weight"], w[f"{at}.bias"])


def convolved(x, w, at, stride=1):
    kernel = w[f"{at}.weight"]
    function = functional.conv2d if x.ndim == 4 else functional.conv3d
    return function(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)


def halved(x, w, at):
    change = normed(convolved(x, w, f"{at}.change.0", stride=2), w, f"{at}.change.1").relu()
    change = normed(convolved(change, w, f"{at}.change.3"), w, f"{at}.change.4")
    pool = functional.avg_pool2d if x.ndim == 4 else functional.avg_pool3d
    shorter = pool(x, 2, ceil_mode=True, count_include_pad=False)
    return (change + normed(convolved(shorter, w, f"{at}.shortcut.1"), w, f"{at}.shortcut.2")).relu()


@pytest.mark.parametrize("sizes", [(9, 8), (17, 6), (5, 8, 6)])
@pytest.mark.parametrize("conv1_stride", [1, 2])
def test_it_is_a_convolution_and_then_a_residual_block_per_scale(sizes, conv1_stride):
    net = stirred(CompactNet(len(sizes), width=3, scales=2, conv1_stride=conv1_stride)).double()
    images, w = torch.randn(2, 1, *sizes, dtype=torch.float64), net.state_dict()
    x = normed(convolved(images, w, "stem.0", stride=conv1_stride), w, "stem.1").relu()
    for scale, found in enumerate(net(images)):
        x = halved(x, w, f"scales.{scale}")
        assert_close(found, x)


def test_the_stem_of_the_compact_net_keeps_the_resolution():
    net = CompactNet(3, width=2)
    assert net.stem(torch.rand(1, 1, 9, 8, 7)).shape == (1, 2, 9, 8, 7)


def test_a_residual_block_that_changes_nothing_is_its_shortcut():
    x = torch.randn(2, 3, 4, 6)
    block = ResidualBlock(2, 3, 3, halve=True).eval()
    torch.nn.init.zeros_(block.change[-1].weight)
    averaged = sum(x[:, :, i::2, j::2] for i in range(2) for j in range(2)) / 4
    assert_close(block(x), averaged.clamp(min=0))
    torch.nn.init.ones_(block.change[-1].bias)
    assert_close(block(x), (averaged + 1).clamp(min=0))
