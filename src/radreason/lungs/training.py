"""Training the network for lungs: folds that say how good it is, then one network on all pairs.

Every epoch ends with its state on disk; what has been done is not done again. What a picture looks like
in an epoch follows from seed, epoch and its row, so an interruption changes nothing.

Shape letters: B batch, P side with room to shift, S side of what the network sees.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from sklearn.model_selection import StratifiedGroupKFold
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from radreason.data.lung_boxes import lungs_of
from radreason.errors import InputError
from radreason.lungs.drawing import BEHIND_HEART, DRAWINGS, PAD
from radreason.lungs.figures import figures
from radreason.lungs.pairs import Pair
from radreason.nn.lung_net import CLASSES, LungNet
from radreason.run_folder import read_weights, write_weights
from radreason.train.augment import Augmentation

LAST, FIGURES = "last.safetensors", "figures.json"
_ROOM = 9
_RISE, _MEMORY = 0.25, 0.99
_AUGMENTATION = Augmentation(flips="left-right", degrees=8.0, shift=_ROOM, scale=0.15)


@dataclass(frozen=True)
class Settings:
    """How a network for lungs is trained."""

    epochs: int = 30
    batch: int = 8
    rate: float = 4e-3
    seed: int = 0
    channels: tuple[int, ...] = (16, 32, 64, 128, 128)

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.seed < 0 or not self.rate > 0:
            raise InputError(
                found=f"{self.epochs} epochs, batches of {self.batch}, seed {self.seed}, rate {self.rate:g}",
                expected="1 or more epochs and pictures in a batch, a seed of 0 or more, a rate above 0",
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"channels": list(self.channels)}


def deal(pairs: list[Pair], folds: int, seed: int) -> list[Int64[np.ndarray, " n"]]:
    """Give the rows of each fold: whole patients, every source in each."""
    patients = [pair.patient for pair in pairs]
    if not 2 <= folds <= len(set(patients)):
        raise InputError(
            found=f"{folds} folds of {len(set(patients))} patients",
            expected="2 or more, and a patient for each",
        )
    dealer = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    sources = [f"{pair.source} {pair.drawing}" for pair in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a source of few pictures is in few folds
        return [tested.astype(np.int64) for _, tested in dealer.split(pairs, sources, patients)]


def train_net(
    pairs: list[Pair],
    folder: Path,
    settings: Settings,
    identity: str,
    progress: Callable[[int, float], None] = lambda epoch, loss: None,
) -> LungNet:
    """Train one network, or go on with it; ``identity`` names the pairs and must be that of before.

    The rate rises for a quarter of the training and falls for the rest (Smith and Topin 2018); what is given
    is the running mean of the weights, which is steadier than where the last steps went.
    """
    torch.manual_seed(settings.seed)
    net, mean = LungNet(settings.channels), LungNet(settings.channels)
    mean.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), settings.rate)
    plan = {"settings": settings.to_dict(), "pairs": identity}
    losses = _resumed(folder / LAST, net, mean, optimizer, plan)
    grey = np.stack([np.pad(pair.grey, _ROOM, mode="edge") for pair in pairs])
    lungs = np.stack([np.pad(pair.small, _ROOM, mode="edge") for pair in pairs])
    drawings = torch.tensor([float(DRAWINGS.index(pair.drawing)) for pair in pairs])
    net.train()
    for epoch in range(len(losses), settings.epochs):
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(pairs))
        batches = np.array_split(order, max(1, round(len(order) / settings.batch)))
        total = 0.0
        for number, rows in enumerate(batches):
            share = (epoch + number / len(batches)) / settings.epochs
            for group in optimizer.param_groups:
                group["lr"] = settings.rate * one_cycle(share)
            seen, truth = _changed(grey[rows], lungs[rows], settings.seed, epoch, rows)
            loss = lung_loss(net(seen, drawings[rows]), truth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            _follow(mean, net, epoch * len(batches) + number)
            total += loss.item() * len(rows)
        losses.append(total / len(pairs))
        _write(folder / LAST, net, mean, optimizer, plan | {"losses": losses})
        progress(epoch, losses[-1])
    return mean.eval()


def one_cycle(share: float) -> float:
    """Say which part of the highest rate is due when such a share of the training is done.

    >>> [round(one_cycle(share), 2) for share in (0, 0.125, 0.25, 0.625, 1)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    if share < _RISE:
        return 0.04 + 0.96 * share / _RISE
    return (1 + math.cos(math.pi * (share - _RISE) / (1 - _RISE))) / 2


@torch.no_grad()
def _follow(mean: LungNet, net: LungNet, step: int) -> None:
    """Move the running mean towards the weights: at first fast, then by a hundredth."""
    memory = min(_MEMORY, (2 + step) / (11 + step))
    for slow, fast in zip(mean.state_dict().values(), net.state_dict().values(), strict=True):
        if slow.is_floating_point():
            slow.lerp_(fast, 1 - memory)
        else:
            slow.copy_(fast)


def examined(net: LungNet, pairs: list[Pair]) -> list[dict[str, Any]]:
    """Compare what a network finds with what was drawn, picture by picture."""
    rows = []
    for pair in pairs:
        grey = torch.from_numpy(pair.grey)[None]
        found = []
        for drawing in (pair.drawing, BEHIND_HEART):
            beliefs = net.beliefs(grey, torch.tensor([float(DRAWINGS.index(drawing))]))[0].numpy()
            found.append(lungs_of(beliefs, pair.lungs.shape))
        row = {"image": pair.name, "source": pair.source, "drawing": pair.drawing, "doubt": pair.doubt}
        rows.append(row | figures(pair.lungs, found[0], found[1], PAD))
    return rows


def lung_loss(logits: Float[Tensor, "B 3 S S"], truth: Int64[Tensor, "B S S"]) -> Float[Tensor, ""]:
    """Cross-entropy of every pixel, and one minus the overlap (Dice) of each lung in the batch."""
    beliefs = logits.softmax(1)[:, 1:]
    drawn = one_hot(truth, len(CLASSES)).movedim(-1, 1)[:, 1:].to(logits)
    overlap = 2 * (beliefs * drawn).sum((0, 2, 3)) / (beliefs + drawn).sum((0, 2, 3)).clamp_min(1)
    return cross_entropy(logits, truth) + 1 - overlap.mean()


def _changed(
    grey: Float32[np.ndarray, "B P P"],
    lungs: Int64[np.ndarray, "B P P"],
    seed: int,
    epoch: int,
    rows: np.ndarray,
) -> tuple[Float32[Tensor, "B S S"], Int64[Tensor, "B S S"]]:
    """Mirror, turn, zoom and shift pictures with their lungs, and expose pictures otherwise."""
    side = grey.shape[1] - 2 * _ROOM
    drawn = _AUGMENTATION.draw(seed, epoch, rows)
    seen = _AUGMENTATION.apply(torch.from_numpy(grey), drawn, (side, side))
    shares = [
        _AUGMENTATION.apply(torch.from_numpy((lungs == number).astype(np.float32)), drawn, (side, side))
        for number in (1, 2)
    ]
    truth = torch.where(shares[0] > 0.5, 1, torch.where(shares[1] > 0.5, 2, 0))
    mirrored = drawn.mirror[:, 2]
    truth[mirrored] = torch.tensor([0, 2, 1])[truth[mirrored]]
    return torch.stack(
        [_exposed(one, seed, epoch, int(row)) for one, row in zip(seen, rows, strict=True)]
    ), truth


def _exposed(grey: Float32[Tensor, "S S"], seed: int, epoch: int, row: int) -> Float32[Tensor, "S S"]:
    """Expose a picture otherwise: gamma, a slope, clipping, an opacity, blinds, noise."""
    chance = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch, row, 1)))
    side = len(grey)
    line = torch.linspace(-1, 1, side)
    grey = grey.clamp(0, 1) ** float(np.exp(chance.uniform(-0.5, 0.5)))
    down, across = chance.normal(0, 0.08, 2).tolist()
    grey = grey + down * line[:, None] + across * line
    if chance.random() < 0.3:
        low, high = chance.uniform(0, 0.2), chance.uniform(0.65, 1)
        grey = ((grey - low) / (high - low)).clamp(0, 1)
    if chance.random() < 0.2:  # an opacity
        row_, column = chance.uniform(-0.8, 0.8, 2)
        width = chance.uniform(0.1, 0.4)
        cloud = torch.exp(-((line[:, None] - row_) ** 2 + (line - column) ** 2) / (2 * width**2))
        grey = grey + float(chance.uniform(0.2, 0.7)) * cloud * (grey.max() - grey)
    for edge in range(4):  # blinds and burnt-in bands
        if chance.random() < 0.1:
            n = int(chance.integers(2, side // 10))
            band = [
                (slice(0, n),),
                (slice(-n, None),),
                (slice(None), slice(0, n)),
                (slice(None), slice(-n, None)),
            ]
            grey = grey.clone()
            grey[band[edge]] = float(chance.integers(0, 2))
    noise = torch.from_numpy(chance.normal(0, chance.uniform(0, 0.04), (side, side))).float()
    return grey + noise


def _write(
    path: Path, net: LungNet, mean: LungNet, optimizer: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in net.state_dict().items()}
    tensors |= {f"mean.{name}": tensor for name, tensor in mean.state_dict().items()}
    for number, entries in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in entries.items()}
    write_weights(path, tensors, state)


def _resumed(
    path: Path, net: LungNet, mean: LungNet, optimizer: torch.optim.Optimizer, plan: dict[str, Any]
) -> list[float]:
    """Put networks and optimizer where they stood; give the losses of the epochs that are done."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        return []
    tensors, state = read_weights(path)
    differing = [key for key in plan if state.get(key) != plan[key]]
    if differing:
        raise InputError(
            found=f"{path}: a training with other {' and '.join(differing)}",
            expected="the same, to go on",
            hint="another name after --out",
        )
    for whose, prefix in ((net, "model."), (mean, "mean.")):
        kept = {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
        if not kept:
            raise InputError(
                found=f"{path}: a training of an older version",
                expected="one of this version, to go on",
                hint="another name after --out",
            )
        whose.load_state_dict(kept)
    entries: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            entries.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict(optimizer.state_dict() | {"state": entries})
    return list(state["losses"])
