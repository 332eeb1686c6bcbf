r"""Which attribute to ask a reader of next: the one whose answer is expected to settle the disease most.

With what is known so far (the image's evidence and earlier answers), the network gives P(t, d), the
disease together with the true grade of an attribute; the reader's table makes of it what the answer g
is going to be, P(g | d). The expected information of the answer is

.. math:: I(d; g) = \sum_{d, g} P(d) \, P(g \mid d) \, \log \frac{P(g \mid d)}{\sum_{d'} P(d') P(g \mid d')}

in nats: what the uncertainty on the disease is expected to fall by. All of it is exact. P(d) may be a better
belief than the network's own, as the final one of a hybrid: P(g | d) does not depend on it.

Shape letters: B cases, K states of all variables together, A attributes, k states of one variable, d of the
disease.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.explain.reliability import Reliability
from radreason.nn.packed import disease_of
from radreason.prob import BayesNet


def given_disease(
    net: BayesNet, likelihoods: Float[Tensor, "B K"]
) -> tuple[Float[Tensor, "B d K"], Float[Tensor, "B d"]]:
    """Posteriors of all variables if the disease were known, for each of its states, and P(disease).

    What the evidence says of the disease itself bears on the second alone.
    """
    at = net.schema.slices()[disease_of(net.schema)]
    states = at.stop - at.start
    known = likelihoods.unsqueeze(1).repeat(1, states, 1)
    known[:, :, at] = torch.eye(states).to(known)
    posteriors, log_z = net.answer(known.flatten(0, 1))
    own = likelihoods[:, at].clamp_min(torch.finfo(likelihoods.dtype).tiny).log()
    disease = (log_z.unflatten(0, (-1, states)) + own).softmax(dim=1)
    return posteriors.unflatten(0, (-1, states)), disease


def answers(
    net: BayesNet, posteriors: Float[Tensor, "B d K"], reliability: Reliability, name: str, sure: float = 1.0
) -> Float[Tensor, "B d k"]:
    """P(answer | disease): what a reader is going to say of an attribute."""
    table = torch.from_numpy(reliability.likelihoods(name, sure)).to(posteriors)
    return posteriors[:, :, net.schema.slices()[name]] @ table


def information(disease: Float[Tensor, "B d"], said: Float[Tensor, "B d k"]) -> Float[Tensor, " B"]:
    """Expected information about the disease from an answer with these probabilities, in nats.

    >>> round(float(information(torch.tensor([[0.5, 0.5]]), torch.eye(2)[None])), 4)
    0.6931
    """
    joint = disease.unsqueeze(2) * said
    apart = disease.unsqueeze(2) * joint.sum(dim=1, keepdim=True)
    tiny = torch.finfo(joint.dtype).tiny
    gained = torch.special.xlogy(joint, joint.clamp_min(tiny) / apart.clamp_min(tiny))
    total: Tensor = gained.sum(dim=(1, 2)).clamp_min(0.0)
    return total


def ask_next(
    net: BayesNet,
    likelihoods: Float[Tensor, "B K"],
    reliability: Reliability,
    names: Sequence[str] | None = None,
    disease: Float[Tensor, "B d"] | None = None,
    sure: float = 1.0,
) -> Float[Tensor, "B A"]:
    """Expected information from asking each of the attributes, given all that ``likelihoods`` hold.

    ``names`` are those of the table of reliability unless given. Earlier answers are part of
    ``likelihoods``; asking an attribute a second time is asking another reader. ``disease`` is what is
    believed of it so far, the network's own belief unless given.
    """
    posteriors, own = given_disease(net, likelihoods)
    believed = own if disease is None else disease.to(own)
    chosen = tuple(reliability.tables) if names is None else tuple(names)
    columns = [information(believed, answers(net, posteriors, reliability, name, sure)) for name in chosen]
    return torch.stack(columns, dim=1)
