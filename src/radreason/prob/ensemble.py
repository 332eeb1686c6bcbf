"""An average over networks learned from resampled cases: steadier than the one best graph.

The networks form a mixture, which is a joint distribution like each of them: under evidence a
network counts as much as it explains the evidence,

    P(x | e) = sum over m of  w_m P_m(e) P_m(x | e) / sum over m of  w_m P_m(e)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError
from radreason.prob.bayesnet import BayesNet
from radreason.prob.bootstrap import resample
from radreason.prob.evidence import Evidence, Reading, State
from radreason.prob.structure import as_labels
from radreason.schema import Schema


class Ensemble(nn.Module):
    """Networks over the same variables and how much each counts before any evidence."""

    weights: Tensor

    def __init__(self, networks: Sequence[BayesNet], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        if not networks or any(n.schema != networks[0].schema for n in networks):
            raise InputError(found=f"{len(networks)} networks", expected="one or more, over one schema")
        self.schema = networks[0].schema
        self.networks = nn.ModuleList(networks)
        shares = torch.ones(len(networks)) if weights is None else torch.as_tensor(weights)
        self.register_buffer("weights", shares.double() / shares.sum())

    @classmethod
    def learn(
        cls,
        labels: Any,
        schema: Schema | None = None,
        *,
        resamples: int = 15,
        seed: int = 0,
        progress: Callable[[int], None] | None = None,
        **options: Any,
    ) -> Ensemble:
        """Learn one network per bootstrap resample of the cases; options are those of `BayesNet.learn`."""
        labels = as_labels(labels, schema)
        networks = []
        for number in range(resamples):
            networks.append(BayesNet.learn(resample(labels, seed, number), **options))
            if progress:
                progress(number + 1)
        return cls(networks)

    def forward(self, evidence: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """Posteriors of all variables under packed likelihoods."""
        return self._mixed([network.answer(evidence) for network in self._networks()])[0]

    def posterior(
        self,
        evidence: Evidence,
        do: Mapping[str, State] | None = None,
        *,
        reading: Reading = "likelihood",
        prior: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Float[Tensor, "B _"]]:
        """Give the posterior of every variable, as `BayesNet.posterior` does."""
        if reading == "posterior" and prior is None:
            prior = self.posterior({})  # of the mixture, not of each network
        beliefs, _ = self._ask(evidence, do, reading, prior)
        return dict(zip(self.schema.names, self.schema.split(beliefs), strict=True))

    def log_evidence(self, evidence: Evidence, do: Mapping[str, State] | None = None) -> Float[Tensor, " B"]:
        """Log-probability of the evidence under the mixture."""
        return self._ask(evidence, do)[1]

    def edge_shares(self) -> dict[tuple[str, str], float]:
        """How much of the mixture draws each edge, as (parent, child)."""
        shares: dict[tuple[str, str], float] = {}
        for weight, network in zip(self.weights.tolist(), self._networks(), strict=True):
            for edge in network.edges:
                shares[edge] = shares.get(edge, 0.0) + weight
        return dict(sorted(shares.items()))

    def _networks(self) -> list[BayesNet]:
        return [network for network in self.networks if isinstance(network, BayesNet)]

    def _ask(self, evidence: Evidence, do: Any = None, *how: Any) -> tuple[Tensor, Tensor]:
        return self._mixed([network.ask(evidence, do, *how) for network in self._networks()])

    def _mixed(self, answers: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        log_weights = self.weights.log()[:, None] + torch.stack([log_z for _, log_z in answers])
        shares = log_weights.softmax(0).to(answers[0][0])
        beliefs = torch.stack([beliefs for beliefs, _ in answers])
        return (shares[:, :, None] * beliefs).sum(0), log_weights.logsumexp(0)
