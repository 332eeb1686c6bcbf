"""The paper's backbones in 2-D and 3-D, from MONAI, and a compact one of ours.

MONAI takes seconds to import, so it is imported where a network is built.

Shape letters: B batch, C channels of the images.
"""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor, nn

from radreason.errors import InputError, unknown
from radreason.nn.blocks import Halve
from radreason.nn.compact_net import CompactNet
from radreason.nn.feature_maps import FeatureMaps

BackboneName = Literal["resnet50", "efficientnet-b4", "densenet121", "compact"]


def features(
    name: str,
    dims: int,
    *,
    in_channels: int = 1,
    conv1_stride: int | None = None,
    width: int | None = None,
) -> FeatureMaps:
    """Build a backbone by its name: ``resnet50``, ``efficientnet-b4``, ``densenet121`` or ``compact``.

    ``conv1_stride`` is that of the first convolution: by default 2 as published, and 1 in the compact one.
    With 1, every map is twice as fine, at four (2-D) or eight times (3-D) the work. ``width`` is the
    channels at full resolution of the compact one, 16 by default; the others have theirs.

    >>> net = features("compact", dims=2, width=4)
    >>> net.channels, net.strides
    ((8, 16, 32), (2, 4, 8))
    """
    if width is not None and name in ("resnet50", "efficientnet-b4", "densenet121"):
        raise InputError(
            found=f"width={width} for {name}",
            expected="no width: its channels are those that were published",
            hint="the backbone 'compact'",
        )
    if conv1_stride not in (None, 1, 2):
        raise InputError(found=f"conv1_stride={conv1_stride} for {name}", expected="1 or 2")
    published = conv1_stride or 2
    match name:
        case "resnet50":
            return ResNet50(dims, in_channels=in_channels, conv1_stride=published)
        case "efficientnet-b4":
            return EfficientNetB4(dims, in_channels=in_channels, conv1_stride=published)
        case "densenet121":
            return DenseNet121(dims, in_channels=in_channels, conv1_stride=published)
        case "compact":
            return CompactNet(
                dims, in_channels=in_channels, width=width or 16, conv1_stride=conv1_stride or 1
            )
        case _:
            raise unknown("backbone", name, get_args(BackboneName))


class ResNet50(FeatureMaps):
    """The residual network of 50 layers (He et al., 2016): the outputs of its four stages."""

    channels = (256, 512, 1024, 2048)

    def __init__(self, dims: int, *, in_channels: int = 1, conv1_stride: int = 2) -> None:
        from monai.networks.nets.resnet import ResNet

        super().__init__(dims, in_channels)
        self.strides = tuple(conv1_stride * s for s in (2, 4, 8, 16))
        self.net = ResNet(
            "bottleneck",
            [3, 4, 6, 3],
            [64, 128, 256, 512],
            spatial_dims=dims,
            n_input_channels=in_channels,
            conv1_t_stride=conv1_stride,
            feed_forward=False,
            bias_downsample=False,  # the batch norm behind it would take the bias away
        )

    def maps(self, images: Tensor) -> list[Tensor]:
        """Give what the stages make of each other."""
        net, found = self.net, []
        x = self.part((net.conv1, net.bn1, net.act, net.maxpool), images)
        for stage in (net.layer1, net.layer2, net.layer3, net.layer4):
            for block in stage:
                x = self.part((block,), x)
            found.append(x)
        return found


class EfficientNetB4(FeatureMaps):
    """EfficientNet-B4 (Tan and Le, 2019): the last maps before each halving, but for the finest one.

    MONAI pads for one size of image, which leaves nothing of 24 voxels; padding alike on both sides suits
    all. The layers behind the last map are taken away, for weights that no gradient reaches stop training
    on several devices.
    """

    channels = (32, 56, 160, 448)

    def __init__(self, dims: int, *, in_channels: int = 1, conv1_stride: int = 2) -> None:
        from monai.networks.nets.efficientnet import EfficientNetBNFeatures, MBConvBlock

        super().__init__(dims, in_channels)
        self.strides = tuple(conv1_stride * s for s in (2, 4, 8, 16))
        self.net = EfficientNetBNFeatures(
            "efficientnet-b4", pretrained=False, spatial_dims=dims, in_channels=in_channels
        )
        net = self.net
        net._conv_stem.stride = (conv1_stride,) * dims
        net._conv_stem.padding, net._conv_stem_padding = _same(net._conv_stem), nn.Identity()
        for block in (module for module in net.modules() if isinstance(module, MBConvBlock)):
            convolution = block._depthwise_conv
            convolution.padding, block._depthwise_conv_padding = _same(convolution), nn.Identity()
        net._conv_head, net._bn1, net._fc = nn.Identity(), nn.Identity(), nn.Identity()

    def maps(self, images: Tensor) -> list[Tensor]:
        """Leave out the map behind the first stage, the only one that is half as fine as the image."""
        net, found = self.net, []
        x = self.part((net._conv_stem, net._bn0, net._swish), images)
        for number, stage in enumerate(net._blocks, start=1):
            for block in stage:
                x = self.part((block,), x)
            if number in net.extract_stacks:
                found.append(x)
        return found[1:]


def _same(convolution: nn.Module) -> tuple[int, ...]:
    size: tuple[int, ...] = convolution.kernel_size  # type: ignore[assignment]
    return tuple(k // 2 for k in size)


class DenseNet121(FeatureMaps):
    """DenseNet-121 (Huang et al., 2017): its four dense blocks, each normalised and rectified.

    A dense block only gathers; the norm that would make one scale of its parts stands in the transition
    behind it, so the maps are taken there.
    """

    channels = (256, 512, 1024, 1024)

    def __init__(self, dims: int, *, in_channels: int = 1, conv1_stride: int = 2) -> None:
        from monai.networks.nets.densenet import DenseNet

        super().__init__(dims, in_channels)
        self.strides = tuple(conv1_stride * s for s in (2, 4, 8, 16))
        self.net = DenseNet(dims, in_channels, out_channels=1).features
        self.net.conv0.stride = (conv1_stride,) * dims
        for transition in (self.net.transition1, self.net.transition2, self.net.transition3):
            transition.pool = Halve()  # the pooling as published leaves nothing of one voxel

    def maps(self, images: Tensor) -> list[Tensor]:
        """Take each map between the norm of a transition and its convolution."""
        net, found = self.net, []
        x = self.part((net.conv0, net.norm0, net.relu0, net.pool0), images)
        for i in (1, 2, 3):
            transition = net.get_submodule(f"transition{i}")
            found.append(self._dense(net.get_submodule(f"denseblock{i}"), transition.norm, x))
            x = transition.pool(transition.conv(found[-1]))
        return [*found, self._dense(net.denseblock4, net.norm5, x)]

    def _dense(self, block: nn.Module, norm: nn.Module, x: Tensor) -> Tensor:
        """Gather in a list: joined tensors of every length would weigh as much as the square of it."""
        gathered = [x]
        for layer in block.children():
            gathered.append(self.part((layer.get_submodule("layers"),), *gathered))
        return self.part((norm, nn.ReLU()), *gathered)
