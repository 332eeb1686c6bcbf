"""Does a case hang together: how surprising its evidence is, and where image and network disagree.

The log-probability of the evidence under a network says how well its attributes go together; what is usual is
what training cases have. An attribute disagrees where what the image says of it and what the network expects
from all *other* evidence are far apart: half the sum of absolute differences, from 0 to 1.

Shape letters: B cases, N training cases, A attributes, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError
from radreason.nn.packed import attributes_of
from radreason.prob import BayesNet


@dataclass(frozen=True, eq=False)
class Usual:
    """What is usual among training cases: their log evidence and disagreements, sorted."""

    net: BayesNet
    names: tuple[str, ...]
    log_evidence: Float[Tensor, " N"]
    disagreement: Float[Tensor, "N A"]


@dataclass(frozen=True, eq=False)
class Consistency:
    """``surprise`` is the share of training cases whose evidence is likelier than this one's: near 1 is odd.

    ``disagreement`` is that of each attribute, and ``odd`` the share of training cases that disagree less.
    """

    names: tuple[str, ...]
    log_evidence: Float[Tensor, " B"]
    surprise: Float[Tensor, " B"]
    disagreement: Float[Tensor, "B A"]
    odd: Float[Tensor, "B A"]


def usual(net: BayesNet, likelihoods: Float[Tensor, "N K"]) -> Usual:
    """Look at training cases."""
    if len(likelihoods) < 2:
        raise InputError(found=f"{len(likelihoods)} training cases", expected="two or more to compare with")
    names = attributes_of(net.schema)
    apart = disagreement(net, likelihoods, names)
    return Usual(net, names, log_evidence(net, likelihoods).sort().values, apart.sort(dim=0).values)


def consistency(usual: Usual, likelihoods: Float[Tensor, "B K"]) -> Consistency:
    """Compare cases with what is usual."""
    log_z = log_evidence(usual.net, likelihoods)
    apart = disagreement(usual.net, likelihoods, usual.names)
    n = len(usual.log_evidence)
    above = n - torch.searchsorted(usual.log_evidence, log_z, right=True)
    below = torch.searchsorted(usual.disagreement.T.contiguous(), apart.T.contiguous()).T
    return Consistency(usual.names, log_z, above / n, apart, below / n)


def log_evidence(net: BayesNet, likelihoods: Float[Tensor, "B K"]) -> Float[Tensor, " B"]:
    """Log-probability of the evidence, relative to attributes that have nothing to do with each other.

    A likelihood has no scale of its own, so that of each variable is divided by what the network's marginals
    expect. What is left is how much better (above zero) or worse all of it goes together than by chance.
    """
    with torch.no_grad():
        even = torch.ones(1, net.schema.width, dtype=likelihoods.dtype, device=likelihoods.device)
        prior = net(even)
        alone = torch.stack([(e * p).sum(dim=1) for e, p in _pieces(net, likelihoods, prior)], dim=1)
        return net.answer(likelihoods)[1] - alone.log().sum(dim=1)


def disagreement(
    net: BayesNet, likelihoods: Float[Tensor, "B K"], names: Sequence[str]
) -> Float[Tensor, "B A"]:
    """Distance between what an attribute's own evidence says and what is expected from all the rest."""
    at = net.schema.slices()
    columns = []
    with torch.no_grad():
        prior = net(torch.ones(1, net.schema.width, dtype=likelihoods.dtype, device=likelihoods.device))
        for name in names:
            rest = likelihoods.clone()
            rest[:, at[name]] = 1.0
            expected = net(rest)[:, at[name]]
            own = likelihoods[:, at[name]] * prior[:, at[name]]
            own = own / own.sum(dim=1, keepdim=True)
            columns.append((own - expected).abs().sum(dim=1) / 2)
    return torch.stack(columns, dim=1)


def _pieces(net: BayesNet, likelihoods: Tensor, prior: Tensor) -> list[tuple[Tensor, Tensor]]:
    return list(zip(net.schema.split(likelihoods), net.schema.split(prior), strict=True))
