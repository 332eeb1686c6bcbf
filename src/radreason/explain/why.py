"""Why: what spoke for and against the disease, in plain words, the strongest first.

Attributes are switched on one after the other, the largest Shapley contribution first, and the probability
is told before and after. Contributions are in log-odds and add up; probabilities along the way depend on
the order. The path of an attribute is the strongest way through the network's edges to the disease, by
mutual information; where a network has loops, evidence takes all ways at once, and a path is an
illustration.

Shape letters: K states of all variables together.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, log

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.explain.shapley import network_contributions
from radreason.nn.packed import disease_of
from radreason.prob import BayesNet

FLOOR = 1e-12


@dataclass(frozen=True)
class Reason:
    """An attribute: what is most believed of it, its contribution, the probability before and after."""

    name: str
    state: str
    contribution: float
    before: float
    after: float
    path: tuple[str, ...]


@dataclass(frozen=True)
class Why:
    """All reasons, from log-odds without any attribute to those with all."""

    disease: str
    state: str
    none: float
    all: float
    reasons: tuple[Reason, ...]
    has_loops: bool

    def sentences(self) -> list[str]:
        """Say it in words."""
        said = []
        for reason in self.reasons:
            verb = "raises" if reason.contribution > 0 else "lowers"
            way = f" ({' - '.join(reason.path)})" if len(reason.path) > 2 else ""
            said.append(
                f"{reason.name} {reason.state} {verb} {self.disease} {self.state} from "
                f"{reason.before:.2f} to {reason.after:.2f}, {reason.contribution:+.2f} in log-odds{way}"
            )
        if self.has_loops:
            said.append(
                "The network has loops: evidence takes all ways at once, and each path is an illustration."
            )
        return said


def why(net: BayesNet, likelihoods: Float[Tensor, " K"], state: int = -1) -> Why:
    """Explain one case under a network."""
    schema, at = net.schema, net.schema.slices()
    disease = disease_of(schema)
    shared = network_contributions(net, likelihoods[None], state=state)
    each = shared.each[0].tolist()
    order = sorted(range(len(each)), key=lambda a: -abs(each[a]))
    told = torch.ones_like(likelihoods)[None].clone()
    told[:, at[disease]] = likelihoods[at[disease]]
    with torch.no_grad():
        whole = net(likelihoods[None])[0]
        before = float(net(told)[0, at[disease]][state])
        reasons = []
        for a in order:
            name = shared.names[a]
            told[:, at[name]] = likelihoods[at[name]]
            after = float(net(told)[0, at[disease]][state])
            likeliest = schema[name].states[int(whole[at[name]].argmax())]
            reasons.append(Reason(name, likeliest, each[a], before, after, strongest_path(net, name)))
            before = after
    loops = len(net.edges) > len(schema) - len(_parts(net))
    return Why(
        disease,
        schema[disease].states[state],
        float(shared.none[0]),
        float(shared.all[0]),
        tuple(reasons),
        loops,
    )


def strongest_path(net: BayesNet, name: str) -> tuple[str, ...]:
    """Find the way along edges to the disease whose product of relative mutual information is largest.

    Empty where no edges lead there. The information of an edge counts relative to the entropy of the less
    uncertain of its ends, so that each step is between zero and one.
    """
    goal, strength = disease_of(net.schema), edge_strengths(net)
    near: dict[str, dict[str, float]] = {n: {} for n in net.schema.names}
    for (a, b), weight in strength.items():
        near[a][b] = near[b][a] = -log(max(weight, FLOOR))
    best = {name: 0.0}
    queue: list[tuple[float, tuple[str, ...]]] = [(0.0, (name,))]
    while queue:
        cost, path = heappop(queue)
        if path[-1] == goal:
            return path
        for other, weight in near[path[-1]].items():
            if cost + weight < best.get(other, inf):
                best[other] = cost + weight
                heappush(queue, (cost + weight, (*path, other)))
    return ()


def edge_strengths(net: BayesNet) -> dict[tuple[str, str], float]:
    """Mutual information of the ends of every edge, over the entropy of the less uncertain one."""
    found = {}
    at = net.schema.slices()
    even = torch.ones(1, net.schema.width, dtype=torch.float64)
    with torch.no_grad():
        marginal = net(even)[0]
        for a, b in net.edges:
            known = even.repeat(net.schema[a].size, 1)
            known[:, at[a]] = torch.eye(net.schema[a].size, dtype=torch.float64)
            possible = marginal[at[a]] > 0
            joint = torch.zeros(net.schema[a].size, net.schema[b].size, dtype=torch.float64)
            joint[possible] = net(known[possible])[:, at[b]] * marginal[at[a]][possible][:, None]
            apart = joint.sum(dim=1, keepdim=True) * joint.sum(dim=0, keepdim=True)
            information = float(torch.special.xlogy(joint, joint / apart.clamp_min(1e-300)).sum())
            least = min(
                float(torch.special.entr(joint.sum(dim=1)).sum()),
                float(torch.special.entr(joint.sum(dim=0)).sum()),
            )
            found[a, b] = min(max(information, 0.0) / max(least, FLOOR), 1.0)
    return found


def _parts(net: BayesNet) -> list[set[str]]:
    """Sets of variables that edges hold together."""
    parts: list[set[str]] = []
    for name in net.schema.names:
        joined = {name}
        for a, b in net.edges:
            if name in (a, b):
                joined |= {a, b}
        touching = [part for part in parts if part & joined]
        parts = [part for part in parts if not part & joined]
        parts.append(joined.union(*touching))
    return parts
