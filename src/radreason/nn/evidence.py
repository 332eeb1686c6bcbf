"""From a classifier's belief to the evidence of a Bayesian network, without counting the prior twice.

Shape letters: B batch, K states of all variables together.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError
from radreason.nn import packed
from radreason.schema import Schema

Tempering = Literal["ratio", "prior"]

FLOOR = 1e-6
"""Beliefs and priors below this count as this much: a prior of zero would make evidence infinite."""


class TemperedEvidence(nn.Module):
    r"""A likelihood per state out of a belief that already holds a prior.

    .. math:: e = (p \, / \, \mathrm{prior})^t \qquad \text{or} \qquad e = p \, / \, \mathrm{prior}^t

    (``form``), scaled to sum one per variable, which changes no posterior. The temperature t > 0 is
    learned unless ``learn`` is off. The prior is flat until `set_prior`; with a flat prior and t = 1
    the belief is passed on as it is, which is what the paper does.
    """

    log_prior: Tensor

    def __init__(
        self, schema: Schema, form: Tempering = "ratio", temperature: float = 0.5, learn: bool = True
    ) -> None:
        super().__init__()
        if not 0 < temperature < math.inf:
            raise InputError(found=f"a temperature of {temperature}", expected="a positive number")
        self.schema, self.form = schema, form
        self.register_buffer("log_prior", packed.softmax(schema, torch.zeros(schema.width)).log())
        self.log_temperature = nn.Parameter(torch.tensor(math.log(temperature)), requires_grad=learn)

    @property
    def temperature(self) -> Float[Tensor, ""]:
        """The exponent t, positive."""
        return self.log_temperature.exp()

    def set_prior(self, prior: Float[Tensor, " K"]) -> None:
        """Take over the prior that the beliefs were trained under, for instance the share of each state."""
        sums = torch.stack([piece.sum() for piece in self.schema.split(prior)])
        wrong, found = ~(prior >= 0), ""
        if wrong.any():
            found = f"a prior of {float(prior[wrong][0]):g} for a state"
        elif not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
            found = f"a prior whose sums per variable are {[round(s, 4) for s in sums.tolist()]}"
        if found:
            raise InputError(found, expected="a distribution per variable")
        self.log_prior.copy_(packed.log(prior, FLOOR))

    def forward(self, beliefs: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """Give packed likelihoods for the network that follows."""
        log_belief = packed.log(beliefs, FLOOR)
        match self.form:
            case "ratio":
                logits = self.temperature * (log_belief - self.log_prior)
            case "prior":
                logits = log_belief - self.temperature * self.log_prior
        return packed.softmax(self.schema, logits)
