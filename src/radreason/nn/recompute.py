"""Activation checkpointing: what a backbone's parts made of their inputs is computed twice, not kept.

A backbone goes through its parts one after another (`FeatureMaps.part`). Of a part that is recomputed,
training keeps the inputs alone; the backward pass runs it once more and then knows what lies inside
(Chen et al., 2016). Losses, gradients and running statistics are those of the plain network.

Shape letters: none, any shape goes.
"""

from __future__ import annotations

from torch import nn

from radreason.errors import InputError
from radreason.nn.feature_maps import FeatureMaps


def recompute(model: nn.Module, on: bool = True) -> nn.Module:
    """Have every backbone in a model recompute its parts in training, or no longer; in place.

    Names in its state_dict stay, and so does all that happens in evaluation and under torch.export.

    >>> from radreason.nn.image_encoder import image_encoder
    >>> recompute(image_encoder("compact", 2, width=2)).backbone.recomputes
    True
    """
    backbones = [module for module in model.modules() if isinstance(module, FeatureMaps)]
    if not backbones:
        raise InputError(
            found=f"{type(model).__name__}: nothing in it is a backbone whose parts are known",
            expected="a backbone of radreason.nn.backbone, or a model around one",
            hint="derive your own from FeatureMaps and let its maps go through self.part(...)",
        )
    for backbone in backbones:
        backbone.recomputes = on
    return model
