"""Weights that others trained on ImageNet, put into the backbones by the names of their tensors.

Two libraries publish such weights, and both name tensors after modules. What each calls a tensor of ours is
written here as rules; docs/training.md says which published files these are. Nothing is taken over unless
all of it fits: a backbone that is ImageNet's in part would pass for one that is ImageNet's.

Shape letters: O channels after a convolution, C channels of the images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError
from radreason.nn.feature_maps import FeatureMaps

Rule = Callable[[str], str]

COUNTERS: Final = "num_batches_tracked"
"""What batch norms count and nothing uses; files from before 2018 do not have it."""

HEADS: Final = {
    "resnet50": ("fc.",),
    "densenet121": ("classifier.",),
    "efficientnet-b4": ("classifier.", "conv_head.", "bn2.", "features.8."),
}
"""Where the tensors begin that stand behind the last map, and have no place here."""

FIRST: Final = {
    "resnet50": "net.conv1.weight",
    "densenet121": "net.conv0.weight",
    "efficientnet-b4": "net._conv_stem.weight",
}

_SHOWN = 3


@dataclass(frozen=True)
class TakenOver:
    """Whose names the tensors had, which were taken over and which left, and whether colours were summed."""

    layout: str
    matched: tuple[str, ...]
    left: tuple[str, ...]
    summed: bool

    def __str__(self) -> str:
        """Say it in a line."""
        grey = "; the first convolution summed over its three colours" if self.summed else ""
        return (
            f"{len(self.matched)} tensors taken over by the names of {self.layout}, "
            f"{len(self.left)} of the classifier left{grey}"
        )


def take_over(features: FeatureMaps, name: str, published: Mapping[str, Tensor]) -> TakenOver:
    """Put published tensors into a backbone in two dimensions, in place; refuse what does not fit.

    ``name`` is that of `radreason.nn.backbone.features`. Images of one channel get the first convolution
    summed over its three: what it makes of three equal colours.
    """
    if name not in HEADS or features.dims != 2:
        raise InputError(
            found=f"published weights for {name} in {features.dims} dimensions",
            expected=f"{', '.join(HEADS)}, in two dimensions: ImageNet is photographs",
        )
    ours = features.state_dict()
    layout, names = max(
        _layouts(name, ours).items(), key=lambda entry: len({*entry[1].values()} & {*published})
    )
    missing = [n for n in names.values() if n not in published and not n.endswith(COUNTERS)]
    _refuse(name, layout, "missing", missing, len(names))
    left = [n for n in published if n not in {*names.values()}]
    _refuse(name, layout, "unknown", [n for n in left if not n.startswith(HEADS[name])], len(published))
    found, summed = {}, False
    for own, theirs in names.items():
        if theirs not in published:
            found[own] = ours[own]
            continue
        tensor = published[theirs]
        if own == FIRST[name]:
            tensor, summed = _in_channels(tensor, ours[own].shape[1])
        if tensor.shape != ours[own].shape:
            raise InputError(
                found=f"{theirs} of shape {tuple(published[theirs].shape)}",
                expected=f"{tuple(ours[own].shape)}, as in {name}",
            )
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(found=f"{theirs} with values that are no numbers", expected="finite weights")
        found[own] = tensor.to(ours[own].dtype)
    features.load_state_dict(found)
    return TakenOver(layout, tuple(n for n in names.values() if n in published), tuple(left), summed)


def _layouts(name: str, ours: Mapping[str, Tensor]) -> dict[str, dict[str, str]]:
    """Give each library's names of all our tensors."""
    rules: dict[str, Rule]
    match name:
        case "resnet50":
            rules = {"torchvision and timm": lambda own: own}
        case "densenet121":
            rules = {
                "torchvision and timm": _dense,
                "torchvision before 0.3": lambda own: _apart(_dense(own)),
            }
        case _:
            first: dict[str, int] = {}
            for own in ours:
                if block := _BLOCK.match(own.removeprefix("net.")):
                    first.setdefault(block[1], int(block[2]))
            rules = {
                "timm": lambda own: _efficient(own, first, _TIMM_STEM, _timm),
                "torchvision": lambda own: _efficient(own, first, _TORCHVISION_STEM, _torchvision),
            }
    return {layout: {own: rule(own.removeprefix("net.")) for own in ours} for layout, rule in rules.items()}


def _dense(own: str) -> str:
    return "features." + own.replace(".layers.", ".")


def _apart(theirs: str) -> str:
    """Write norm1 as norm.1, as the files of 2017 do that are still the published ones."""
    return re.sub(r"(denselayer\d+\.(?:norm|conv))([12])", r"\1.\2", theirs)


_BLOCK = re.compile(r"_blocks\.(\d+)\.(\d+)\.([a-z0-9_]+)\.(.+)")
_TIMM_STEM = {"_conv_stem": "conv_stem", "_bn0": "bn1"}
_TORCHVISION_STEM = {"_conv_stem": "features.0.0", "_bn0": "features.0.1"}


def _efficient(
    own: str, first: Mapping[str, int], stem: Mapping[str, str], block_of: Callable[[int, int, str], str]
) -> str:
    """Count blocks anew in each stage, as both do, and name their parts."""
    block = _BLOCK.match(own)
    if block is None:
        part, _, rest = own.partition(".")
        return f"{stem[part]}.{rest}"
    stage, number, part, rest = block.groups()
    return f"{block_of(int(stage), int(number) - first[stage], part)}.{rest}"


def _timm(stage: int, number: int, part: str) -> str:
    """Name a part of a block; those of the first stage, which do not expand, are of another kind."""
    squeeze = {"_se_reduce": "se.conv_reduce", "_se_expand": "se.conv_expand"}
    separable = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
    inverted = {
        "_expand_conv": "conv_pw",
        "_bn0": "bn1",
        "_depthwise_conv": "conv_dw",
        "_bn1": "bn2",
        "_project_conv": "conv_pwl",
        "_bn2": "bn3",
    }
    return f"blocks.{stage}.{number}.{(squeeze | (inverted if stage else separable))[part]}"


def _torchvision(stage: int, number: int, part: str) -> str:
    """Name a part of a block: steps are counted, and in the first stage there is none that expands."""
    step, place = {
        "_expand_conv": (0, "0"),
        "_bn0": (0, "1"),
        "_depthwise_conv": (1, "0"),
        "_bn1": (1, "1"),
        "_se_reduce": (2, "fc1"),
        "_se_expand": (2, "fc2"),
        "_project_conv": (3, "0"),
        "_bn2": (3, "1"),
    }[part]
    return f"features.{stage + 1}.{number}.block.{step if stage else step - 1}.{place}"


def _in_channels(weight: Float[Tensor, "O _ *kernel"], channels: int) -> tuple[Tensor, bool]:
    """Sum a convolution of three colours for images of one."""
    if weight.ndim == 4 and weight.shape[1] == 3 and channels == 1:
        return weight.sum(dim=1, keepdim=True), True
    return weight, False


def _refuse(name: str, layout: str, what: str, names: list[str], of: int) -> None:
    if names:
        raise InputError(
            found=f"weights with {len(names)} of {of} tensors {what}: "
            f"{', '.join(names[:_SHOWN])}{' ...' if len(names) > _SHOWN else ''}",
            expected=f"the state of a {name} by the names of {layout}",
            hint="docs/training.md says which published files fit",
        )
