"""The backbone stage as a whole: images in, F0 out.

Shape letters: B batch, C channels of the images, F features of F0.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError
from radreason.nn.backbone import features as backbone_by_name
from radreason.nn.feature_maps import FeatureMaps
from radreason.nn.pooling import PyramidPooling
from radreason.nn.pyramid import Pyramid


class ImageEncoder(nn.Module):
    """Backbone, feature pyramid (None: without) and pooling to F0 (paper, "The Backbone Stage").

    `image_encoder` builds one by name. The pooling takes the coarsest maps, as many as it was made for.
    """

    def __init__(self, backbone: FeatureMaps, pyramid: Pyramid | None, pooling: PyramidPooling) -> None:
        super().__init__()
        self.backbone, self.pyramid, self.pooling = backbone, pyramid, pooling
        self.scales = len(pooling.channels)

    @property
    def features(self) -> int:
        """Length of F0."""
        return self.pooling.features

    def forward(self, images: Float[Tensor, "B C *space"]) -> Float[Tensor, "B F"]:
        """Give F0, one vector per image."""
        return self.feature(self.maps(images))

    def maps(self, images: Float[Tensor, "B C *space"]) -> list[Tensor]:
        """Give the maps of the backbone that are in use, from fine to coarse."""
        return list(self.backbone(images)[-self.scales :])

    def feature(self, maps: list[Tensor]) -> Float[Tensor, "B F"]:
        """Pool maps, through the pyramid if there is one, to F0."""
        f0: Tensor = self.pooling(self.pyramid(maps) if self.pyramid is not None else maps)
        return f0


def image_encoder(
    name: str,
    dims: int,
    *,
    in_channels: int = 1,
    conv1_stride: int | None = None,
    width: int | None = None,
    pyramid_channels: int | None = 256,
    scales: int | None = None,
    pooled_width: int | None = None,
    features: int = 512,
    rectify: bool = True,
) -> ImageEncoder:
    """Build the backbone stage around a backbone of `radreason.nn.backbone.features`.

    ``pyramid_channels=None`` leaves the feature pyramid out. ``scales`` counts the maps in use, from the
    coarsest: by default all of a pyramid's, and without a pyramid the one that the published networks
    classify by. ``pooled_width`` is the common width of all pooled maps: by default eight neighbours of a
    pyramid's channels, as in the paper's example, and without a pyramid the coarsest map's channels, which
    is plain average pooling.

    >>> image_encoder("compact", 2, width=4, pyramid_channels=None, features=32).pooling.channels
    (32,)
    """
    backbone = backbone_by_name(name, dims, in_channels=in_channels, conv1_stride=conv1_stride, width=width)
    most = len(backbone.channels)
    if scales is None:
        scales = 1 if pyramid_channels is None else most
    if not 1 <= scales <= most:
        raise InputError(found=f"{scales} scales of {name}", expected=f"1 to {most}")
    channels = backbone.channels[-scales:]
    pyramid = None if pyramid_channels is None else Pyramid(dims, channels, channels=pyramid_channels)
    if pooled_width is None:
        pooled_width = channels[-1] if pyramid_channels is None else 8 * pyramid_channels
    pooling = PyramidPooling(
        dims,
        channels if pyramid is None else pyramid.channels,
        width=pooled_width,
        features=features,
        rectify=rectify,
    )
    return ImageEncoder(backbone, pyramid, pooling)
