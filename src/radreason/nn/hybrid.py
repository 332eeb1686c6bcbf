"""The hybrid network: the paper's overview figure as one forward pass, every stage by name.

Shape letters: B batch, V variables, K states of all variables together, k of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from jaxtyping import Bool, Float
from torch import Tensor, nn

from radreason.errors import unknown
from radreason.nn import packed
from radreason.schema import Schema

Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Diagnosis:
    """What each stage believed, as packed distributions; None for a stage that is off.

    ``evidence`` is P0_B, ``bn1`` P_B, ``gcn_in`` P0_G, ``gcn_out`` P_G, ``fusion`` what the branches
    hold together (one branch alone: its belief), ``bn2`` the posterior of the second network.
    """

    schema: Schema
    evidence: Float[Tensor, "B K"]
    bn1: Float[Tensor, "B K"] | None
    gcn_in: Float[Tensor, "B K"] | None
    gcn_out: Float[Tensor, "B K"] | None
    fusion: Float[Tensor, "B K"]
    bn2: Float[Tensor, "B K"] | None

    @property
    def stages(self) -> dict[str, Float[Tensor, "B K"]]:
        """The packed belief of every stage that is on, in the order of the figure."""
        beliefs = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "schema"}
        return {stage: belief for stage, belief in beliefs.items() if belief is not None}

    @property
    def final(self) -> Float[Tensor, "B K"]:
        """The last belief: of the second network, or of the fusion where there is none."""
        return self.fusion if self.bn2 is None else self.bn2

    @property
    def disease(self) -> Float[Tensor, "B k"]:
        """The final belief in the disease: P^d_final."""
        return self.belief(packed.disease_of(self.schema))

    def belief(self, name: str, stage: str = "final") -> Float[Tensor, "B k"]:
        """Give the belief in one variable, of one stage."""
        beliefs = self.stages | {"final": self.final}
        if stage not in beliefs:
            raise unknown("stage, or one that is off:", stage, beliefs)
        return self.schema.split(beliefs[stage])[self.schema.position(name)]


class ImageDiagnoser(nn.Module):
    """What training, run folders and answers ask of every method: images in, a `Diagnosis` out.

    A part that a method does not have is None; ``reasoner`` is what another method has in the place of
    graph, networks and fusion. Its last belief is the stage ``fusion``.
    """

    def __init__(self, schema: Schema, backbone: nn.Module, evidence: nn.Module) -> None:
        super().__init__()
        self.schema, self.backbone, self.evidence = schema, backbone, evidence
        self.graph: nn.Module | None = None
        self.fusion: nn.Module | None = None
        self.reasoner: nn.Module | None = None
        self.first_net: nn.Module | None = None
        self.second_net: nn.Module | None = None
        self.first_evidence: nn.Module | None = None
        self.second_evidence: nn.Module | None = None

    @property
    def stage_names(self) -> tuple[str, ...]:
        """Names of the stages that are on, in the order of the figure."""
        parts = {
            "evidence": True,
            "bn1": self.first_net is not None,
            "gcn_in": self.graph is not None,
            "gcn_out": self.graph is not None,
            "fusion": True,
            "bn2": self.second_net is not None,
        }
        return tuple(stage for stage, is_on in parts.items() if is_on)

    def forward(self, images: Float[Tensor, "B ..."]) -> Diagnosis:
        """Diagnose a batch of images."""
        return self.reason(self.backbone(images))

    def reason(self, feature: Float[Tensor, "B D"]) -> Diagnosis:
        """Diagnose from the feature of an image: all that follows the backbone."""
        raise NotImplementedError

    def learn(
        self,
        images: Float[Tensor, "B ..."],
        beliefs: Float[Tensor, "B K"],
        known: Bool[Tensor, "B V"],
    ) -> Diagnosis:
        """Diagnose in training, where a method may look at what is true; most do not."""
        diagnosis: Diagnosis = self(images)
        return diagnosis


class HybridDiagnoser(ImageDiagnoser):
    """Both branches, their coupling and their fusion; a part that is None is left out and the rest runs.

    ``first_net`` and ``second_net`` are any modules from packed likelihoods to packed posteriors.
    Without the first, P0_B stands in for P_B, in the attention and in the fusion; with ``stand_in=False``
    nothing does, and the fused belief is the graph's alone. Without fusion the branches are averaged;
    without a graph there is nothing to fuse, and what was given for it is left out. ``first_evidence`` and
    ``second_evidence`` turn beliefs into likelihoods; None hands them over as they are, as the paper does.
    ``through_nets=False`` stops gradients at both networks.
    """

    def __init__(
        self,
        schema: Schema,
        backbone: nn.Module,
        evidence: nn.Module,
        graph: nn.Module | None = None,
        fusion: nn.Module | None = None,
        first_net: nn.Module | None = None,
        second_net: nn.Module | None = None,
        first_evidence: nn.Module | None = None,
        second_evidence: nn.Module | None = None,
        through_nets: bool = True,
        stand_in: bool = True,
    ) -> None:
        super().__init__(schema, backbone, evidence)
        self.through_nets, self.stand_in, self.graph = through_nets, stand_in, graph
        self.fusion = fusion if graph is not None else None
        self.first_net, self.second_net = first_net, second_net
        self.first_evidence = first_evidence if first_net is not None else None
        self.second_evidence = second_evidence if second_net is not None else None

    def reason(
        self,
        feature: Float[Tensor, "B D"],
        first: Change | None = None,
        second: Change | None = None,
        nodes: Change | None = None,
    ) -> Diagnosis:
        """Diagnose from the feature of an image: all that follows the backbone.

        Whoever questions a diagnosis changes something on the way: ``first`` and ``second`` take the place of
        the two networks, from packed likelihoods to packed posteriors; ``nodes`` turns the nodes
        that the graph begins with (B V C) into others.
        """
        evidence = self.evidence(feature)

        bn1 = self._reason(first or self.first_net, self.first_evidence, evidence)
        bayes = evidence if bn1 is None else bn1

        gcn_in, gcn_out, fused = None, None, bayes
        if self.graph is not None:
            gcn_in, gcn_out = self.graph(feature, bayes, nodes)
            if bn1 is None and not self.stand_in:
                fused = gcn_out
            else:
                fused = (gcn_out + bayes) / 2 if self.fusion is None else self.fusion(gcn_out, bayes)

        bn2 = self._reason(second or self.second_net, self.second_evidence, fused)
        return Diagnosis(self.schema, evidence, bn1, gcn_in, gcn_out, fused, bn2)

    def _reason(
        self, net: Change | None, evidence: nn.Module | None, beliefs: Float[Tensor, "B K"]
    ) -> Float[Tensor, "B K"] | None:
        if net is None:
            return None
        likelihoods = beliefs if evidence is None else evidence(beliefs)
        posterior: Tensor = net(likelihoods if self.through_nets else likelihoods.detach())
        return posterior
