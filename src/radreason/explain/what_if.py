"""What if an attribute were another: set it to a grade or a distribution, and see everything else move.

A what-if is no confirmation: it takes what is set for certain, whoever said it. An attribute is set

    observed    in BN-1 its evidence is replaced: causes and effects of the attribute move
    do          it is set from outside: its causes hear nothing of it
    node        in the graph, its node becomes the mean node of training cases with that grade

at BN-1, in the graph, or in both, which is the default.

Shape letters: B cases, C channels of a node, K states of all variables together, k states of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.explain.importance import rows_with
from radreason.explain.seen import Seen
from radreason.nn.hybrid import Change, Diagnosis
from radreason.nn.packed import attributes_of, disease_of
from radreason.prob.evidence import State, distribution

Where = Literal["bn1", "graph", "both"]

NodeMeans = Mapping[str, Float[Tensor, "k C"]]


def node_means(seen: Seen, truth: Mapping[str, Int64[np.ndarray, " B"]]) -> dict[str, Float[Tensor, "k C"]]:
    """Mean node of every attribute over training cases of each grade, or of the nearest that one has."""
    nodes, means = seen.nodes, {}
    for name in attributes_of(seen.schema):
        variable, place = seen.schema[name], seen.schema.position(name)
        rows = [rows_with(variable, truth[name], state)[0] for state in range(variable.size)]
        means[name] = torch.stack([nodes[torch.from_numpy(r), place].mean(dim=0) for r in rows])
    return means


def what_if(
    seen: Seen,
    states: Mapping[str, State],
    means: NodeMeans | None = None,
    do: bool = False,
    where: Where = "both",
) -> Diagnosis:
    """Diagnose again with attributes set to states by name, or to distributions; ``means`` for the graph."""
    schema = seen.schema
    if where not in ("bn1", "graph", "both"):
        raise unknown("place of a what-if", where, ["bn1", "graph", "both"])
    for name in states:
        if name not in schema or name == disease_of(schema):
            raise unknown("attribute", name, attributes_of(schema))
    told = {name: distribution(schema[name], state) for name, state in states.items()}
    first = _in_network(seen, told, do) if where != "graph" else None
    nodes = None
    if where == "graph" or (where == "both" and seen.model.graph is not None):
        if means is None:
            raise InputError(
                found="a what-if in the graph without mean nodes",
                expected="those of training cases, from `node_means`",
                hint='where="bn1"',
            )
        nodes = _in_graph(seen, told, means)
    return seen.again(first=first, nodes=nodes)


def _in_network(seen: Seen, told: Mapping[str, Tensor], do: bool) -> Change:
    net, at = seen.net, seen.schema.slices()

    def first(likelihoods: Tensor) -> Tensor:
        if do:
            others = {v.name: likelihoods[:, at[v.name]] for v in seen.schema if v.name not in told}
            return net.ask(others, {name: row.to(likelihoods) for name, row in told.items()})[0]
        likelihoods = likelihoods.clone()
        for name, row in told.items():
            likelihoods[:, at[name]] = row.to(likelihoods)
        posterior: Tensor = net(likelihoods)
        return posterior

    return first


def _in_graph(seen: Seen, told: Mapping[str, Tensor], means: NodeMeans) -> Change:
    def nodes(features: Tensor) -> Tensor:
        features = features.clone()
        for name, row in told.items():
            features[:, seen.schema.position(name)] = row.to(features) @ means[name].to(features)
        return features

    return nodes
