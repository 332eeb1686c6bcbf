"""How much each attribute bears on a diagnosis: what happens to the disease when it is switched off.

As the paper defines it: one attribute at a time, both in the input of BN-1, which is told the lowest grade
(of a binary attribute: that it is not there), and in the input of the graph, whose node gets the mean
feature of that node over the training cases that have this grade. What the disease's final probability
changes by is the importance. Beside it stands what the definition hides, the direction; and the state in
which a finding is clinically absent, in the place of the lowest grade, which may be another thing.

Shape letters: B cases, A attributes, V variables, C channels of a node, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.explain.seen import Seen
from radreason.nn.hybrid import Change
from radreason.nn.packed import attributes_of, disease_of
from radreason.schema import LIDC, Variable

Off = Literal["lowest", "absent"]


@dataclass(frozen=True, eq=False)
class Background:
    """The mean node feature of every attribute when it is off; ``cases`` it was averaged over.

    Where no training case has the state, ``cases`` is 0 and the mean is that of the nearest grade some
    case has (of states without order: of all cases), named in ``taken``.
    """

    off: Off
    states: Mapping[str, str]
    nodes: Mapping[str, Float[Tensor, " C"]]
    cases: Mapping[str, int]
    taken: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Importance:
    """Change of the final belief in each state of the disease, with all attributes on minus one off."""

    names: tuple[str, ...]
    off: Off
    change: Float[Tensor, "B A d"]

    def of(self, state: int = -1) -> Float[Tensor, "B A"]:
        """How much each attribute matters for a state of the disease: the paper's number."""
        return self.change[:, :, state].abs()

    def direction(self, state: int = -1) -> Float[Tensor, "B A"]:
        """+1 where the attribute, as it is, speaks for the state; -1 against; 0 neither."""
        return self.change[:, :, state].sign()

    def order(self, state: int = -1) -> tuple[str, ...]:
        """Attributes from the most important to the least, on average over the cases."""
        mean = self.of(state).mean(dim=0)
        return tuple(self.names[a] for a in mean.argsort(descending=True, stable=True).tolist())


def off_state(variable: Variable, off: Off = "lowest") -> str:
    """The state that switches an attribute off.

    ``absent`` is what the schema declares (or LIDC's, for a variable of LIDC without a declaration), and
    the lowest state where a scale has no absence, as the sphericity of a nodule.

    >>> off_state(LIDC["calcification"]), off_state(LIDC["calcification"], "absent")
    ('1', '6')
    """
    if off not in ("lowest", "absent"):
        raise unknown("way to switch an attribute off", off, ["lowest", "absent"])
    if off == "lowest":
        return variable.states[0]
    if variable.absent is not None:
        return variable.absent
    known = next((v for v in LIDC if v == variable), None)
    return known.absent if known is not None and known.absent is not None else variable.states[0]


def background(seen: Seen, truth: Mapping[str, Int64[np.ndarray, " B"]], off: Off = "lowest") -> Background:
    """Average the nodes of training cases, by their true grades (-1 where unknown)."""
    nodes = seen.nodes
    states, means, cases, taken = {}, {}, {}, {}
    for name in attributes_of(seen.schema):
        variable = seen.schema[name]
        states[name] = off_state(variable, off)
        rows, found = rows_with(variable, truth[name], variable.index(states[name]))
        cases[name] = int((truth[name] == variable.index(states[name])).sum())
        taken[name] = found
        means[name] = nodes[torch.from_numpy(rows), seen.schema.position(name)].mean(dim=0)
    return Background(off, states, means, cases, taken)


def importance(seen: Seen, background: Background, names: Sequence[str] | None = None) -> Importance:
    """Switch attributes off one at a time, in BN-1 and in the graph, and see what the diagnosis loses."""
    chosen = attributes_of(seen.schema) if names is None else tuple(names)
    disease = seen.schema.slices()[disease_of(seen.schema)]
    whole = seen.diagnosis.final[:, disease]
    changes = []
    for name in chosen:
        if name not in background.states:
            raise unknown("attribute", name, background.states)
        first, nodes = switched_off(seen, background, name)
        changes.append(whole - seen.again(first=first, nodes=nodes).final[:, disease])
    return Importance(chosen, background.off, torch.stack(changes, dim=1))


def switched_off(seen: Seen, background: Background, *names: str) -> tuple[Change | None, Change | None]:
    """Give what replaces BN-1, and what changes the nodes, while attributes are off."""
    schema, net = seen.schema, seen.model.first_net
    at = schema.slices()
    if net is None and seen.model.graph is None:
        raise InputError(
            found="a model without BN-1 and without a graph",
            expected="one of them: an attribute is switched off in their inputs",
        )

    def first(likelihoods: Tensor) -> Tensor:
        likelihoods = likelihoods.clone()
        for name in names:
            likelihoods[:, at[name]] = 0.0
            likelihoods[:, at[name].start + schema[name].index(background.states[name])] = 1.0
        posterior: Tensor = net(likelihoods)  # type: ignore[misc]
        return posterior

    def nodes(features: Tensor) -> Tensor:
        features = features.clone()
        for name in names:
            features[:, schema.position(name)] = background.nodes[name].to(features)
        return features

    return (None if net is None else first), (None if seen.model.graph is None else nodes)


def rows_with(
    variable: Variable, codes: Int64[np.ndarray, " B"], state: int
) -> tuple[Int64[np.ndarray, " n"], str]:
    """Find the cases that have a state, or what is nearest to it."""
    there = np.unique(codes[codes >= 0])
    if not len(there):
        raise InputError(found=f"no training case with a grade of {variable.name!r}", expected="one or more")
    if state not in there and not variable.ordered:
        return np.flatnonzero(codes >= 0), "all"
    nearest = int(there[np.abs(there - state).argmin()])
    return np.flatnonzero(codes == nearest), variable.states[nearest]
