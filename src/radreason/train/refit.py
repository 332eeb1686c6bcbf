"""Phase 2: Bayesian networks learned anew from what the network before them predicts.

Shape letters: N training cases, K states of all variables together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from radreason import config
from radreason.prob import BayesNet, Labels
from radreason.prob.draws import draw
from radreason.prob.score import family_counts
from radreason.schema import Schema

LARGEST_TABLE = 100_000
"""Cells of a table whose information is still counted out."""


@dataclass(frozen=True)
class Change:
    """What a refit changed, for the log."""

    gained: tuple[tuple[str, str], ...]
    lost: tuple[tuple[str, str], ...]
    edges: int
    disease_degree: int
    information: float
    log_loss_before: float
    log_loss_after: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "gained": [list(edge) for edge in self.gained],
            "lost": [list(edge) for edge in self.lost],
            "edges": self.edges,
            "disease_degree": self.disease_degree,
            "information": round(self.information, 6),
            "log_loss_before": round(self.log_loss_before, 6),
            "log_loss_after": round(self.log_loss_after, 6),
        }


def is_due(settings: config.Refit, epoch: int, done: int, epochs: int) -> bool:
    """Tell whether phase 2 follows an epoch, counted from 0: never the last, which nothing follows."""
    if settings.schedule == "once" or done >= settings.most or epoch + 1 >= epochs:
        return False
    after = epoch + 1 - settings.warm_up
    return after > 0 and after % settings.every == 0


def refit(
    net: BayesNet,
    settings: config.Refit,
    truth: Labels,
    beliefs: Float[Tensor, "N K"],
    likelihoods: Float[Tensor, "N K"],
    seed: int,
) -> Labels:
    """Learn a network anew, in place, from ground truth and beliefs; return what it was learned from.

    ``likelihoods`` are what the network is given for these beliefs: their joint posterior under the
    network as it is now is drawn from, if the settings say so.
    """
    if settings.truth_share == 1:
        labels = truth
    else:
        predicted = (
            as_labels(net.schema, beliefs)
            if settings.predictions == "product"
            else drawn(net, likelihoods, settings.draws, seed)
        )
        labels = mixed(truth, predicted, settings.truth_share)
    net.refit(labels, keep_edges=not settings.structure)
    return labels


def as_labels(schema: Schema, beliefs: Float[Tensor, "N K"]) -> Labels:
    """Take beliefs as soft labels: each case is the product of its distributions."""
    pieces = schema.split(beliefs.detach().cpu().double())
    columns = {n: (p / p.sum(1, keepdim=True)).numpy() for n, p in zip(schema.names, pieces, strict=True)}
    return Labels.of(columns, schema)


def drawn(net: BayesNet, likelihoods: Float[Tensor, "N K"], draws: int, seed: int) -> Labels:
    """Draw joint states of every case from the exact posterior of the network, as rows of weight 1 / draws.

    The exact E-step would count every joint state by its posterior; so many draws stand for it. Variables
    that go together stay together, as they do not in a product of marginals.
    """
    codes = draw(net, likelihoods, draws, seed).numpy()
    return Labels.of(
        dict(zip(net.schema.names, codes.T, strict=True)), net.schema, np.full(len(codes), 1 / draws)
    )


def mixed(truth: Labels, predicted: Labels, truth_share: float) -> Labels:
    """Put ground truth and predictions side by side, so that each case still weighs one."""
    if truth_share == 0:
        return predicted
    columns = {
        name: np.concatenate([a, b])
        for name, a, b in zip(truth.schema.names, truth.columns, predicted.columns, strict=True)
    }
    weights = np.concatenate([truth.weights * truth_share, predicted.weights * (1 - truth_share)])
    return Labels.of(columns, truth.schema, weights)


def describe(
    before: tuple[tuple[str, str], ...], net: BayesNet, labels: Labels, log_losses: tuple[float, float]
) -> Change:
    """Say what became of a network."""
    disease = net.schema.disease
    return Change(
        gained=tuple(sorted(set(net.edges) - set(before))),
        lost=tuple(sorted(set(before) - set(net.edges))),
        edges=len(net.edges),
        disease_degree=sum(disease in edge for edge in net.edges),
        information=information(net, labels),
        log_loss_before=log_losses[0],
        log_loss_after=log_losses[1],
    )


def information(net: BayesNet, labels: Labels) -> float:
    """Sum over variables of their mutual information with their parents, in nats per case of the labels.

    Zero says that the network knows nothing that its variables do not know alone. Families with gaps, or
    with more than 100,000 cells, are passed over.
    """
    total = 0.0
    for child, parents in enumerate(net.parents):
        cells = np.prod([net.schema.sizes[v] for v in (*parents, child)])
        if not parents or cells > LARGEST_TABLE or labels.missing[:, (*parents, child)].any():
            continue
        counts = family_counts(labels, child, parents)
        joint = counts.reshape(-1, counts.shape[-1]) / counts.sum()
        alone = joint.sum(0, keepdim=True) * joint.sum(1, keepdim=True)
        total += float(torch.special.xlogy(joint, joint / alone.clamp_min(1e-300)).sum())
    return total
