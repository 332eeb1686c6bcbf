"""The network at work: a radiograph in, both lungs out. The weights come with the package."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32

from radreason.data.lung_boxes import Lungs, lungs_of
from radreason.data.picture_scale import Box, part
from radreason.errors import InputError
from radreason.input_files import read_bytes
from radreason.lungs.drawing import DRAWINGS
from radreason.nn.lung_net import LungNet
from radreason.run_folder import read_weights, write_weights

WEIGHTS = Path(__file__).with_name("lungs.safetensors")
"""The weights that come with the package; lungs.md beside them says what they were trained on."""

FORMAT = "radreason lungs"
VERSION = 2
"""Raised when weights mean another network: 1 had PReLU."""
MAX_BYTES = 64 << 20

_WHAT = "weights that `radreason train-lungs` wrote"


@dataclass(frozen=True)
class LungFinder:
    """Finds lungs with the weights of a file, drawn as the file says or as asked."""

    weights: Path = WEIGHTS
    drawing: str | None = None

    def __call__(self, grey: Float32[np.ndarray, "H W"], frame: Box) -> Lungs:
        """Find the lungs within the frame of a radiograph."""
        net, side, drawing = _net(self.weights)
        seen = torch.from_numpy(part(grey, frame, (side, side))[0].astype(np.float32))[None]
        asked = torch.tensor([float(DRAWINGS.index(self.drawing or drawing))])
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # sums round the same way in every process
        try:
            return lungs_of(net.beliefs(seen, asked)[0].numpy())
        finally:
            torch.set_num_threads(threads)

    def to_dict(self) -> dict[str, Any]:
        """Name the weights by their digest; what holds none is refused here, before any picture is read."""
        content = read_bytes(self.weights, MAX_BYTES, _WHAT)
        drawing = _net(self.weights)[2]
        return {
            "weights_sha256": hashlib.sha256(content).hexdigest(),
            "drawing": self.drawing or drawing,
        }


def write_net(path: Path, net: LungNet, channels: tuple[int, ...], side: int, drawing: str) -> None:
    """Write weights for a finder."""
    described = {"format": FORMAT, "version": VERSION, "channels": list(channels), "side": side}
    write_weights(path, net.state_dict(), described | {"drawing": drawing})


@lru_cache(maxsize=4)
def _net(path: Path) -> tuple[LungNet, int, str]:
    tensors, state = read_weights(path)
    match state:
        case {
            "format": "radreason lungs",
            "version": 2,
            "channels": [*channels],
            "side": int(side),
            "drawing": str(drawing),
        } if all(isinstance(n, int) and 0 < n <= 1024 for n in channels) and drawing in DRAWINGS:
            net = LungNet(channels)
        case _:
            raise InputError(found=f"{path}: weights of something else", expected=_WHAT)
    try:
        net.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(found=f"{path}: {' '.join(str(error).split())[:160]}", expected=_WHAT) from None
    return net.eval(), side, drawing
