"""The attention-guided two-branch network of Guan et al. (2018): the whole image, and where it lights up.

The paper's S1 for X-rays; in 3-D it goes as well. The stage ``evidence`` is the global branch's belief,
``fusion`` that of both branches together. Theirs trains the branches one after the other; here, as every
method here, they train together, the local branch through the fusion.

Shape letters: B batch, C channels, D features of a branch, K states of all variables, d dimensions.
"""

from __future__ import annotations

from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.nn.hybrid import Diagnosis, ImageDiagnoser
from radreason.nn.image_encoder import ImageEncoder
from radreason.schema import Schema


def heat(maps: Float[Tensor, "B C *space"]) -> Float[Tensor, " B *space"]:
    """Give the strongest channel at every place, scaled to [0, 1] in each image."""
    strongest = maps.detach().abs().amax(dim=1)
    flat = strongest.flatten(1)
    low, high = (
        edge.reshape(-1, *[1] * (strongest.ndim - 1)) for edge in (flat.amin(dim=1), flat.amax(dim=1))
    )
    return (strongest - low) / (high - low).clamp_min(torch.finfo(maps.dtype).tiny)


def hot_box(
    warm: Float[Tensor, " B *space"], threshold: float
) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B d"]]:
    """Box around the connected region of the hottest place that is at least so hot: its two corners.

    Corners are shares of the image, 0 to 1. Neighbours also touch over corners.
    """
    space = tuple(warm.shape[1:])
    pool = nn.functional.max_pool2d if len(space) == 2 else nn.functional.max_pool3d
    peak = warm >= warm.flatten(1).amax(dim=1).reshape(-1, *[1] * len(space))
    allowed = ((warm >= threshold) | peak).to(warm)[:, None]
    region = peak.to(warm)[:, None]
    for _ in range(prod(space)):  # as long as the longest way through a map
        region = pool(region, 3, stride=1, padding=1) * allowed
    low, high = [], []
    for axis, size in enumerate(space):
        others = [a + 2 for a in range(len(space)) if a != axis]
        there = region.amax(dim=others)[:, 0] > 0
        place = torch.arange(size, device=warm.device)
        low.append(torch.where(there, place, size).amin(dim=1).to(warm) / size)
        high.append((torch.where(there, place, -1).amax(dim=1).to(warm) + 1) / size)
    return torch.stack(low, dim=1), torch.stack(high, dim=1)


def enlarged(
    images: Float[Tensor, "B C *space"], low: Float[Tensor, "B d"], high: Float[Tensor, "B d"]
) -> Float[Tensor, "B C *space"]:
    """Cut a box out of each image and stretch it to the size of the image."""
    reach, middle = high - low, low + high - 1
    theta = torch.cat([torch.diag_embed(reach.flip(1)), middle.flip(1)[:, :, None]], dim=2)
    grid = nn.functional.affine_grid(theta, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


class TwoBranchDiagnoser(ImageDiagnoser):
    """A branch for the image, one for its hot region, and a classifier for the features of both.

    ``threshold`` of the heat is 0.7 in the original.
    """

    backbone: ImageEncoder
    reasoner: nn.ModuleDict

    def __init__(
        self,
        schema: Schema,
        window: nn.Module,
        whole: ImageEncoder,
        part: ImageEncoder,
        evidence: nn.Module,
        both: nn.Module,
        threshold: float = 0.7,
    ) -> None:
        super().__init__(schema, whole, evidence)
        self.window, self.threshold = window, threshold
        self.reasoner = nn.ModuleDict({"local": part, "both": both})

    def forward(self, images: Float[Tensor, "B ..."]) -> Diagnosis:
        """Diagnose a batch of images."""
        seen = self.window(images)
        maps = self.backbone.maps(seen)
        feature = self.backbone.feature(maps)
        local = enlarged(seen, *hot_box(heat(maps[-1]), self.threshold))
        together = torch.cat([feature, self.reasoner["local"](local)], dim=1)
        fusion = self.reasoner["both"](together)
        return Diagnosis(self.schema, self.evidence(feature), None, None, None, fusion, None)
