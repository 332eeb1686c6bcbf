"""Why: what spoke for and against the disease, in plain words, the strongest first.

Of several models contributions and probabilities are means, and a path is the one that most networks have.

Attributes are switched on one after the other, the largest Shapley contribution first, and the probability
is told before and after. Contributions are in log-odds and add up; probabilities along the way depend on
the order. The path of an attribute is the strongest way through the network's edges to the disease, by
mutual information; where a network has loops, evidence takes all ways at once, and a path is an
illustration.

Shape letters: K states of all variables together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
    """An attribute: what is most believed of it, its contribution, the probability before and after.

    ``agree`` is the share of the networks that have this path.
    """

    name: str
    state: str
    contribution: float
    before: float
    after: float
    path: tuple[str, ...]
    agree: float = 1.0


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
            share = f", in {reason.agree:.0%} of the networks" if reason.agree < 1 else ""
            way = f" ({' - '.join(reason.path)}{share})" if len(reason.path) > 2 else ""
            said.append(
                f"{reason.name}, likeliest {reason.state}, {verb} {self.disease} {self.state} from "
                f"{reason.before:.2f} to {reason.after:.2f}, {reason.contribution:+.2f} in log-odds{way}"
            )
        if self.has_loops:
            said.append(
                "The network has loops: evidence takes all ways at once, and each path is an illustration."
            )
        return said


def why(net: BayesNet, likelihoods: Float[Tensor, " K"], state: int = -1) -> Why:
    """Explain one case under a network."""
    return why_together([(net, likelihoods)], state)


def why_together(told: Sequence[tuple[BayesNet, Float[Tensor, " K"]]], state: int = -1) -> Why:
    """Explain one case under the networks of several models, each with the evidence that it was given."""
    schema = told[0][0].schema
    at, disease = schema.slices(), disease_of(schema)
    shared = [network_contributions(net, likelihoods[None], state=state) for net, likelihoods in told]
    each = torch.stack([found.each[0] for found in shared]).mean(dim=0).tolist()
    order = sorted(range(len(each)), key=lambda a: -abs(each[a]))
    known = []
    for _, likelihoods in told:
        known.append(torch.ones_like(likelihoods)[None].clone())
        known[-1][:, at[disease]] = likelihoods[at[disease]]
    with torch.no_grad():
        whole = torch.stack([net(likelihoods[None])[0] for net, likelihoods in told]).mean(dim=0)

        def believed() -> float:
            beliefs = [net(so_far)[0, at[disease]] for (net, _), so_far in zip(told, known, strict=True)]
            return float(torch.stack(beliefs).mean(dim=0)[state])

        before, reasons = believed(), []
        for a in order:
            name = shared[0].names[a]
            for (_, likelihoods), so_far in zip(told, known, strict=True):
                so_far[:, at[name]] = likelihoods[at[name]]
            after = believed()
            likeliest = schema[name].states[int(whole[at[name]].argmax())]
            path, times = Counter(strongest_path(net, name) for net, _ in told).most_common(1)[0]
            reasons.append(Reason(name, likeliest, each[a], before, after, path, times / len(told)))
            before = after
    return Why(
        disease,
        schema[disease].states[state],
        sum(float(found.none[0]) for found in shared) / len(told),
        sum(float(found.all[0]) for found in shared) / len(told),
        tuple(reasons),
        any(len(net.edges) > len(schema) - len(_parts(net)) for net, _ in told),
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
