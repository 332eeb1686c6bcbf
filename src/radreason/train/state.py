"""Where a training stands, as tensors and JSON, and back: nothing else is needed to go on.

Data order, augmentation, draws and the learning rate are functions of seed and epoch, so no state of
a random generator is kept. Networks are kept as they were learned, coefficients included.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from radreason.errors import InputError
from radreason.nn.hybrid import ImageDiagnoser
from radreason.prob import BayesNet
from radreason.run_folder import NETWORKS, read_weights, write_weights


def weights_of(model: ImageDiagnoser) -> dict[str, Tensor]:
    """Give all tensors but those of the networks, whose own form says more."""
    nets = tuple(f"{name}." for name in NETWORKS)
    return {name: t for name, t in model.state_dict().items() if not name.startswith(nets)}


def networks_of(model: ImageDiagnoser) -> dict[str, Any]:
    """Give the networks that are on, as plain data."""
    nets = {name: getattr(model, name) for name in NETWORKS}
    return {name: net.to_dict() for name, net in nets.items() if net is not None}


def write_state(
    path: Path, model: ImageDiagnoser, optimizer: torch.optim.Optimizer | None, state: Mapping[str, Any]
) -> None:
    """Write weights, networks, the optimizer if one is given, and what else is known."""
    tensors = {f"model.{name}": tensor for name, tensor in weights_of(model).items()}
    if optimizer is not None:
        for number, entries in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{key}": value for key, value in entries.items()}
    write_weights(path, tensors, dict(state) | {"networks": networks_of(model)})


def read_state(
    path: Path, model: ImageDiagnoser, optimizer: torch.optim.Optimizer | None = None
) -> dict[str, Any]:
    """Put a model, and an optimizer, where a file says; return what else the file knows."""
    tensors, state = read_weights(path)
    nets = {name: BayesNet.from_dict(data, str(path)) for name, data in state.get("networks", {}).items()}
    own = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
    expected = weights_of(model)
    there = {name for name in NETWORKS if getattr(model, name) is not None}
    wrong = sorted({*own, *nets} ^ {*expected, *there}) or [
        name for name in sorted(own) if own[name].shape != expected[name].shape
    ]
    if wrong:
        raise InputError(
            found=f"{path}: weights of another network: {', '.join(wrong[:3])}",
            expected="those of the network that plan.json describes",
        )
    for name, net in nets.items():
        getattr(model, name).become(net)
    model.load_state_dict(own, strict=False)
    if optimizer is not None:
        entries: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            if kind == "optimizer":
                number, _, key = rest.partition(".")
                entries.setdefault(int(number), {})[key] = tensor
        optimizer.load_state_dict(optimizer.state_dict() | {"state": entries})
    return state
