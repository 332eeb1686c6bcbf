"""Cases as one model has seen them: the backbone's feature, kept, so that questions need no image again.

Shape letters: B cases, D features of the image, V variables, C channels of a node, K states of all
variables together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError
from radreason.nn.gcn import GraphBranch
from radreason.nn.hybrid import Change, Diagnosis, HybridDiagnoser, ImageDiagnoser
from radreason.prob import BayesNet
from radreason.schema import Schema

AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class Seen:
    """Features of some cases, and the model that they were made by; make it with `look`."""

    model: ImageDiagnoser
    feature: Float[Tensor, "B D"]

    @property
    def schema(self) -> Schema:
        """The variables that are reasoned about."""
        return self.model.schema

    def __len__(self) -> int:
        return len(self.feature)

    def at(self, rows: object) -> Seen:
        """Give some of the cases."""
        return Seen(self.model, self.feature[torch.as_tensor(rows)])

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What the model says of the images, without anyone's help."""
        with torch.no_grad():
            return self.model.reason(self.feature)

    @cached_property
    def first(self) -> Float[Tensor, "B K"]:
        """The likelihoods that the images put to BN-1."""
        beliefs, evidence = self.diagnosis.evidence, self.model.first_evidence
        with torch.no_grad():
            return beliefs if evidence is None else evidence(beliefs)

    @cached_property
    def second(self) -> Float[Tensor, "B K"]:
        """The likelihoods that the fused beliefs put to BN-2."""
        beliefs, evidence = self.diagnosis.fusion, self.model.second_evidence
        with torch.no_grad():
            return beliefs if evidence is None else evidence(beliefs)

    @cached_property
    def nodes(self) -> Float[Tensor, "B V C"]:
        """The nodes that the graph begins with."""
        graph = self.model.graph
        if not isinstance(graph, GraphBranch):
            raise InputError(
                found="a model without a graph", expected="one with it", hint="model.graph in the experiment"
            )
        with torch.no_grad():
            nodes: Tensor = graph.head(self.feature)
            return nodes

    @property
    def net(self) -> BayesNet:
        """BN-1; a model without it has nothing to reason with."""
        return network(self.model, "first_net")

    def again(
        self, first: Change | None = None, second: Change | None = None, nodes: Change | None = None
    ) -> Diagnosis:
        """Reason again with something changed on the way; see `HybridDiagnoser.reason`."""
        if not isinstance(self.model, HybridDiagnoser):
            raise InputError(
                found=f"a model of another method ({type(self.model).__name__})",
                expected="the hybrid, whose parts can be asked one by one",
            )
        with torch.no_grad():
            return self.model.reason(self.feature, first, second, nodes)


def look(model: ImageDiagnoser, images: Float[Tensor, "B 1 ..."]) -> Seen:
    """Let a model see images, as its `forward` takes them, once."""
    if model.training:
        raise InputError(
            found="a model in training", expected="one that has been trained", hint="model.eval()"
        )
    with torch.no_grad():
        return Seen(model, torch.cat([model.backbone(part) for part in images.split(AT_ONCE)]))


def network(model: ImageDiagnoser, place: str) -> BayesNet:
    """Give the Bayesian network in a place, ``first_net`` or ``second_net``."""
    net = getattr(model, place)
    if not isinstance(net, BayesNet):
        raise InputError(
            found=f"a model without a Bayesian network (model.{place} is off)",
            expected="one that reasons: what readers say enters there",
            hint="train with the preset `recommended`, or `paper`",
        )
    return net
