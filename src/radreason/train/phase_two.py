"""Phase 2 on a model: which networks are learned anew, from which beliefs, and what that changed.

Shape letters: N training cases, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from radreason import config
from radreason.evaluate.metrics import log_loss
from radreason.nn.hybrid import ImageDiagnoser
from radreason.nn.packed import disease_of
from radreason.prob import BayesNet, Labels
from radreason.run_folder import NETWORKS
from radreason.train.refit import describe, refit
from radreason.train.task import Task

SOURCES = {"first_net": "evidence", "second_net": "fusion"}
"""The stage whose beliefs each network is learned from: the latest P0_B, and what the branches fused."""


def networks_in(model: ImageDiagnoser) -> dict[str, BayesNet]:
    """Give the Bayesian networks that are on, by the name of their place."""
    nets = {name: getattr(model, name) for name in NETWORKS}
    return {name: net for name, net in nets.items() if isinstance(net, BayesNet)}


@torch.no_grad()
def learn_anew(
    model: ImageDiagnoser,
    settings: config.Refit,
    task: Task,
    truth: Labels,
    beliefs: Mapping[str, Float[Tensor, "N K"]],
    seed: int,
) -> dict[str, dict[str, Any]]:
    """Learn every network of a model anew, in place; say what became of each."""
    codes = task.codes(task.rows.training)[task.disease]
    changes = {}
    for number, (name, net) in enumerate(networks_in(model).items()):
        given = beliefs[SOURCES[name]]
        tempered = getattr(model, "first_evidence" if name == "first_net" else "second_evidence")
        likelihoods = given if tempered is None else tempered(given)
        before, loss_before = net.edges, _loss(net, likelihoods, codes)
        labels = refit(net, settings, truth, given, likelihoods, seed + number)
        changes[NETWORKS[name]] = describe(
            before, net, labels, (loss_before, _loss(net, likelihoods, codes))
        ).to_dict()
    return changes


def _loss(net: BayesNet, likelihoods: Tensor, codes: Int64[np.ndarray, " N"]) -> float:
    """Log loss of the disease under the network: how much worse or better the new tables explain."""
    posterior = net(likelihoods)[:, net.schema.slices()[disease_of(net.schema)]]
    return log_loss(posterior.double().cpu().numpy(), codes)
