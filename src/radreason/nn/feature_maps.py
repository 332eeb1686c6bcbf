"""What every backbone is: images in, maps of features out, from fine to coarse.

Shape letters: B batch, C channels of the images; a map has as many axes after its channels as the images.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from radreason.errors import InputError

AXES = {2: "height, width", 3: "depth, height, width"}


class FeatureMaps(nn.Module, ABC):
    """A backbone: `channels` and `strides` tell the maps before there is one.

    Each halving of n voxels leaves the ceiling of n / 2, in every backbone, so that images of any size work.
    """

    channels: tuple[int, ...]
    strides: tuple[int, ...]
    recomputes = False

    def __init__(self, dims: int, in_channels: int) -> None:
        super().__init__()
        check_dims(type(self).__name__, dims)
        self.dims, self.in_channels = dims, in_channels

    @abstractmethod
    def maps(self, images: Tensor) -> list[Tensor]:
        """Give the maps of images that were checked."""

    def forward(self, images: Float[Tensor, "B C *space"]) -> list[Tensor]:
        """Give one map per stride, each of shape (B, channels, *space)."""
        check_map(type(self).__name__, images, self.dims, self.in_channels)
        coarsest = [-(-n // self.strides[-1]) for n in images.shape[2:]]
        if self.training and len(images) == 1 and set(coarsest) == {1}:
            raise InputError(
                found=f"{type(self).__name__} was given one image of {_by(images.shape[2:])} in training",
                expected="two or more: the coarsest map of each is one voxel, "
                "and batch normalisation needs more than one to scale by",
                hint="a larger batch, leaving out a last batch of one, or larger images",
            )
        return self.maps(images)

    def part(
        self, modules: Sequence[nn.Module], *inputs: Float[Tensor, "B _ *space"]
    ) -> Float[Tensor, "B _ *smaller"]:
        """Join the inputs along their channels and apply modules one after another.

        `maps` goes from part to part. Where the backbone `recomputes` them in training, only the
        inputs are kept for the backward pass, which runs the part once more (Chen et al., 2016).
        """

        def run(*inputs: Tensor) -> Tensor:
            x = torch.cat(inputs, dim=1) if len(inputs) > 1 else inputs[0]
            for module in modules:
                x = module(x)
            return x

        def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
            return nullcontext(), _buffers_as_they_are(modules)

        if not (self.recomputes and self.training and torch.is_grad_enabled()) or _is_traced():
            return run(*inputs)
        again: Tensor = checkpoint(run, *inputs, use_reentrant=False, context_fn=contexts)
        return again


@contextmanager
def _buffers_as_they_are(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Let changes go to copies: batch norm has followed the statistics of this batch once already."""
    owners = [owner for module in modules for owner in module.modules() if owner._buffers]
    before = [dict(owner._buffers) for owner in owners]
    try:
        for owner, buffers in zip(owners, before, strict=True):
            owner._buffers.update({n: None if b is None else b.clone() for n, b in buffers.items()})
        yield
    finally:
        for owner, buffers in zip(owners, before, strict=True):
            owner._buffers.update(buffers)


def _is_traced() -> bool:
    return torch.compiler.is_compiling() or torch.compiler.is_exporting()


def check_dims(layer: str, dims: int) -> None:
    """Refuse a layer of other than two or three dimensions."""
    if dims not in AXES:
        raise InputError(found=f"{layer} of {dims} dimensions", expected="2 (radiographs) or 3 (volumes)")


def check_map(layer: str, found: Tensor, dims: int, channels: int) -> None:
    """Refuse what is no batch of maps with so many channels, by the name of the layer it was given to."""
    shape = tuple(found.shape)
    if len(shape) == dims + 2 and shape[1] == channels and min(shape) > 0:
        return
    hint = ""
    if len(shape) == dims + 1 and shape[0] == channels:
        hint = "x[None], which makes a batch of one image"
    elif channels == 1 and len(shape) == dims + 1:
        hint = "x[:, None], which gives each image its one channel"
    raise InputError(
        found=f"{layer} was given a tensor of shape {shape}",
        expected=f"(batch, {channels}, {AXES[dims]})",
        hint=hint,
    )


def _by(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))
