r"""What each attribute contributes to the log-odds of the disease, so that the contributions add up.

The Shapley value of an attribute is its effect averaged over all orders in which attributes could be
switched on:

.. math:: \phi_a = \sum_{S \not\ni a} \frac{|S|! \, (A - |S| - 1)!}{A!} \, [v(S \cup a) - v(S)]

with v(S) the log-odds when S alone is on. It is exact: all 2^A sets are asked, which nine attributes allow.
Together the contributions are v(all) - v(none).

Shape letters: B cases, A attributes, S sets of them, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.explain.confirm import log_belief
from radreason.explain.importance import Background, switched_off
from radreason.explain.seen import Seen
from radreason.nn.packed import attributes_of, disease_of
from radreason.prob import BayesNet
from radreason.schema import Schema

MOST = 16
"""More attributes are more than 65,536 sets."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """Log-odds with no attribute on, what each attribute adds, and log-odds with all on."""

    names: tuple[str, ...]
    none: Float[Tensor, " B"]
    each: Float[Tensor, "B A"]
    all: Float[Tensor, " B"]


def shapley(
    value: Callable[[Bool[Tensor, " A"]], Float[Tensor, " B"]], names: Sequence[str]
) -> Contributions:
    """Share out a value of sets: ``value`` is asked once for each, as a mask over the names."""
    n = len(names)
    if not 0 < n <= MOST:
        raise InputError(found=f"{n} attributes", expected=f"1 to {MOST}: every set of them is asked")
    masks = sets_of(n)
    values = torch.stack([value(mask) for mask in masks], dim=1).double()
    weights = _weights(masks)
    return Contributions(tuple(names), values[:, 0], values @ weights.T, values[:, -1])


def network_contributions(
    net: BayesNet,
    likelihoods: Float[Tensor, "B K"],
    names: Sequence[str] | None = None,
    state: int = -1,
) -> Contributions:
    """Share out what a network concludes: an attribute that is off has no evidence.

    Evidence on the disease itself stays on throughout; it is part of ``none``.
    """
    schema, chosen = net.schema, _names(net.schema, names)
    at = schema.slices()

    def value(on: Bool[Tensor, " A"]) -> Float[Tensor, " B"]:
        told = likelihoods.clone()
        for name, is_on in zip(chosen, on.tolist(), strict=True):
            if not is_on:
                told[:, at[name]] = 1.0
        with torch.no_grad():
            return log_odds(net(told)[:, at[disease_of(schema)]], state)

    return shapley(value, chosen)


def model_contributions(
    seen: Seen, background: Background, names: Sequence[str] | None = None, state: int = -1
) -> Contributions:
    """Share out what a whole hybrid concludes: an attribute is off as `importance` switches it off."""
    chosen = _names(seen.schema, names)
    at = seen.schema.slices()[disease_of(seen.schema)]

    def value(on: Bool[Tensor, " A"]) -> Float[Tensor, " B"]:
        off = [name for name, is_on in zip(chosen, on.tolist(), strict=True) if not is_on]
        first, nodes = switched_off(seen, background, *off)
        return log_odds(seen.again(first=first, nodes=nodes).final[:, at], state)

    return shapley(value, chosen)


def log_odds(belief: Float[Tensor, "B d"], state: int = -1) -> Float[Tensor, " B"]:
    """Log-odds of one state against all others."""
    one = belief[:, state].double()
    rest = torch.cat([belief[:, :state], belief[:, state:][:, 1:]], dim=1).double().sum(dim=1)
    return log_belief(one[:, None])[:, 0] - log_belief(rest[:, None])[:, 0]


def sets_of(n: int) -> Bool[Tensor, "S A"]:
    """All sets of n things as masks, from the empty one to the whole: bit a of its number is thing a."""
    return (torch.arange(2**n)[:, None] >> torch.arange(n)) % 2 == 1


def _weights(masks: Bool[Tensor, "S A"]) -> Float[Tensor, "A S"]:
    """Weight of the value of each set in the contribution of each attribute."""
    n = masks.shape[1]
    size = masks.sum(dim=1)
    of_size = torch.tensor([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)] + [0.0])
    of_size = of_size.double()
    with_it = torch.cat([torch.zeros(1).double(), of_size[:-1]])[size]  # v(S + a), by the size of S + a
    return torch.where(masks, with_it[:, None], -of_size[size][:, None]).T


def _names(schema: Schema, names: Sequence[str] | None) -> tuple[str, ...]:
    known = attributes_of(schema)
    for name in names or ():
        if name not in known:
            raise unknown("attribute", name, known)
    return known if names is None else tuple(names)
