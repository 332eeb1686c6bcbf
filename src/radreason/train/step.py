"""One step of phase 1 as a module: images and truth in, the loss and every stage's belief out.

It is one module so that wrappers for several devices and for lower precision see one forward pass;
what it gives are plain tensors, which they know how to handle.

Shape letters: B batch, V variables, K states of all variables together.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from radreason import config
from radreason.nn.hybrid import ImageDiagnoser
from radreason.nn.losses import HybridLoss, Targets

PARTS = ("backbone", "evidence", "graph", "fusion", "reasoner")
"""The parts of the network whose gradients are logged."""


class Step(nn.Module):
    """The diagnoser under its loss."""

    def __init__(self, model: ImageDiagnoser, loss: HybridLoss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(
        self, images: Float[Tensor, "B ..."], beliefs: Float[Tensor, "B K"], known: Bool[Tensor, "B V"]
    ) -> dict[str, dict[str, Tensor]]:
        """Give the total loss and its parts, and the beliefs of the stages."""
        diagnosis = self.model.learn(images, beliefs, known)
        losses = self.loss(diagnosis, Targets(beliefs, known))
        return {
            "losses": {"total": losses.total, **losses.parts},
            "stages": {name: belief.detach().float() for name, belief in diagnosis.stages.items()},
        }


def make_optimizer(settings: config.Train, model: nn.Module) -> torch.optim.Optimizer:
    """Build the optimizer of all that is learned by gradients."""
    learned = [p for p in model.parameters() if p.requires_grad]
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return kind(learned, lr=settings.rate, weight_decay=settings.weight_decay)


def rate_at(settings: config.Train, epoch: float) -> float:
    """Give the learning rate at a point of training, counted in epochs; a function, so nothing to resume.

    >>> [rate_at(config.Train(), epoch) for epoch in (0, 29.9, 30, 60)]
    [0.001, 0.001, 0.0001, 1e-05]
    """
    rising = min(1.0, 0.01 + 0.99 * epoch / settings.rising) if settings.rising else 1.0
    if settings.schedule == "step":
        steps = int(epoch // settings.step_every)
        return rising * float(f"{settings.rate * settings.step_factor**steps:.12g}")
    return rising * settings.rate * 0.5 * (1 + math.cos(math.pi * min(1.0, epoch / settings.epochs)))


def gradient_norms(model: ImageDiagnoser, scale: float = 1.0) -> dict[str, float]:
    """Length of the gradient that each part was given: a part at zero learns nothing.

    ``scale`` is what the loss was multiplied by for the sake of half precision.
    """
    norms = {}
    for name in PARTS:
        part = getattr(model, name)
        gradients = [p.grad for p in part.parameters() if p.grad is not None] if part is not None else []
        if gradients:
            norms[name] = float(torch.stack([g.norm() for g in gradients]).norm()) / scale
    return norms
