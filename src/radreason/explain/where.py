r"""Where in the image a belief comes from: gradient-weighted maps (Grad-CAM, Selvaraju et al. 2017).

Asked is the log-odds y of what the model says: of an attribute's likeliest grade, as the image alone has
it (the stage ``evidence``), and of the disease's likeliest state at the end. At every scale s that is pooled
to the feature of the image,

.. math:: M_s(i) = \sum_c \Big( \sum_j \frac{\partial y}{\partial A^s_c(j)} \Big) A^s_c(i)

so that the maps of all scales are in one unit, laid over the image by straight lines between their voxels.
Their sum, where it is above zero, speaks for what the model says. Of one scale that is Grad-CAM, up to a
factor.

Shape letters: B cases, V variables, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError
from radreason.explain.shapley import log_odds
from radreason.nn.hybrid import HybridDiagnoser, ImageDiagnoser
from radreason.nn.image_encoder import ImageEncoder
from radreason.nn.packed import disease_of


def where(model: ImageDiagnoser, images: Float[Tensor, "B 1 *space"]) -> Float[Tensor, "B V *space"]:
    """Map what speaks for each variable's likeliest state, in the order of the schema; zero elsewhere.

    Maps are not scaled: 0 everywhere says that no place speaks for it.
    """
    if model.training:
        raise InputError(
            found="a model in training", expected="one that has been trained", hint="model.eval()"
        )
    disease, names = disease_of(model.schema), model.schema.names
    with torch.enable_grad(), _gradients_through_networks(model), _pooled_maps(model) as maps:
        diagnosis = model(images)
        stages = [diagnosis.final if name == disease else diagnosis.evidence for name in names]
        found = []
        for name, stage in zip(names, stages, strict=True):
            belief = stage[:, model.schema.slices()[name]]
            asked = _log_odds_of_likeliest(belief).sum()  # cases do not mix: each gets its own gradient
            gradients = torch.autograd.grad(asked, maps, retain_graph=True, allow_unused=True)
            found.append(_laid_over(images, maps, gradients))
    return torch.stack(found, dim=1)


def _log_odds_of_likeliest(belief: Float[Tensor, "B k"]) -> Float[Tensor, " B"]:
    likeliest = belief.detach().argmax(dim=1)
    return torch.stack(
        [log_odds(row[None], state)[0] for row, state in zip(belief, likeliest.tolist(), strict=True)]
    )


def _laid_over(
    images: Tensor, maps: list[Tensor], gradients: tuple[Tensor | None, ...]
) -> Float[Tensor, B * space]:
    space = images.shape[2:]
    total = torch.zeros(len(images), *space, dtype=images.dtype, device=images.device)
    for activation, gradient in zip(maps, gradients, strict=True):
        if gradient is None:
            continue
        weight = gradient.flatten(2).sum(dim=2)
        here = torch.einsum("bc,bc...->b...", weight, activation.detach())
        lines = "bilinear" if len(space) == 2 else "trilinear"
        laid = nn.functional.interpolate(here[:, None], size=space, mode=lines, align_corners=False)
        total = total + laid[:, 0]
    return total.clamp_min(0.0).detach()


@contextmanager
def _pooled_maps(model: ImageDiagnoser) -> Iterator[list[Tensor]]:
    """Catch the maps that the backbone stage pools, with gradients from there on."""
    encoder = next((part for part in model.modules() if isinstance(part, ImageEncoder)), None)
    if encoder is None:
        raise InputError(
            found=f"{type(model).__name__} without a backbone that pools maps",
            expected="one: what is mapped are its maps",
        )
    caught: list[Tensor] = []

    def catch(_: nn.Module, given: tuple[list[Tensor]]) -> tuple[list[Tensor]]:
        caught[:] = [x.detach().requires_grad_() for x in given[0]]
        return (list(caught),)

    handle = encoder.pooling.register_forward_pre_hook(catch)
    try:
        yield caught
    finally:
        handle.remove()


@contextmanager
def _gradients_through_networks(model: ImageDiagnoser) -> Iterator[None]:
    """Let gradients pass the networks also where training stops them: the diagnosis depends on them."""
    if not isinstance(model, HybridDiagnoser):
        yield
        return
    before, model.through_nets = model.through_nets, True
    try:
        yield
    finally:
        model.through_nets = before
