"""Files of published weights, as they come: a state dict of torch, or safetensors.

Nothing that a file says is run: `torch.load` is asked for weights only.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from radreason import config
from radreason.errors import InputError, unknown
from radreason.input_files import read_bytes
from radreason.nn.hybrid import ImageDiagnoser
from radreason.nn.image_encoder import ImageEncoder
from radreason.nn.published import TakenOver, take_over

ENDINGS: Final = (".pth", ".pt", ".bin", ".safetensors")
MAX_BYTES: Final = 2 << 30

_WHAT = "published weights: a state dict in .pth or .safetensors"


def read_state_dict(path: Path | str) -> dict[str, Tensor]:
    """Read the tensors of a file by their names.

    A state dict may lie within another under ``state_dict`` or ``model``, and its names may begin with
    ``module.``, as those of models on several devices do.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise unknown(f"ending of {path}:", path.suffix, ENDINGS)
    content = read_bytes(path, MAX_BYTES, _WHAT)
    try:
        found: Any
        if ending == ".safetensors":
            found = safetensors.torch.load(content)
        else:
            found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (safetensors.SafetensorError, pickle.UnpicklingError, RuntimeError, ValueError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(found=f"{path}: {reason[:100]}", expected=_WHAT) from None
    for within in ("state_dict", "model"):
        if isinstance(found, Mapping) and isinstance(found.get(within), Mapping):
            found = found[within]
    if not isinstance(found, Mapping) or not found:
        raise InputError(found=f"{path}: {type(found).__name__}, no tensors by name", expected=_WHAT)
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise InputError(
                found=f"{path}: {str(name)[:40]} is a {type(tensor).__name__}", expected="tensors by name"
            )
    return {name.removeprefix("module."): tensor for name, tensor in found.items()}


def start_from_published(settings: config.Backbone, model: ImageDiagnoser) -> TakenOver | None:
    """Put the weights of a file into the backbone of a new model, if the settings name one."""
    if settings.weights is None:
        return None
    (encoder,) = (module for module in model.backbone.modules() if isinstance(module, ImageEncoder))
    return take_over(encoder.backbone, settings.name, read_state_dict(settings.weights))


def digest(path: Path | str) -> str:
    """Tell one file of weights from another."""
    return f"sha256:{hashlib.sha256(read_bytes(path, MAX_BYTES, _WHAT)).hexdigest()}"
