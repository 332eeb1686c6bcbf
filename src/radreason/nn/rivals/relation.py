"""A relation network behind the graph, in place of both Bayesian networks (the paper's M31 and M41).

Shape letters: B batch, V variables, C channels of a node, D width, K states of all variables together.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.nn import packed
from radreason.nn.gcn import GraphBranch
from radreason.nn.hybrid import Diagnosis, ImageDiagnoser
from radreason.schema import Schema


class RelationNetwork(nn.Module):
    r"""Every ordered pair of nodes through one network, their sum through another (Santoro et al. 2017).

    .. math:: P = \sigma\left(f_\phi\left(\sum_{i, j} g_\theta(h_i, h_j)\right)\right)

    A node brings along which variable it is, as their objects bring their place. Of the paper's sizes
    ``width`` is 256, ``depth`` of g is 4, f has two layers of as many, and half of the second is dropped.
    """

    identity: Tensor

    def __init__(
        self, schema: Schema, channels: int, width: int = 256, depth: int = 4, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.schema = schema
        self.register_buffer("identity", torch.eye(len(schema)), persistent=False)
        widths = [2 * (channels + len(schema)), *[width] * depth]
        self.pair = nn.Sequential(
            *(layer for n, m in pairwise(widths) for layer in (nn.Linear(n, m), nn.ReLU()))
        )
        self.conclude = nn.Sequential(
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, schema.width),
        )

    def forward(self, nodes: Float[Tensor, "B V C"]) -> Float[Tensor, "B K"]:
        """Give a packed distribution per variable, all of them from all pairs."""
        named = torch.cat([nodes, self.identity.to(nodes).expand(nodes.shape[0], -1, -1)], dim=2)
        n = named.shape[1]
        first, second = named[:, :, None].expand(-1, -1, n, -1), named[:, None].expand(-1, n, -1, -1)
        told: Tensor = self.pair(torch.cat([first, second], dim=3))
        return packed.softmax(self.schema, self.conclude(told.sum(dim=(1, 2))))


class RelationDiagnoser(ImageDiagnoser):
    """Backbone, graph and relation network; the graph is given no beliefs to attend by."""

    graph: GraphBranch
    reasoner: RelationNetwork

    def __init__(
        self,
        schema: Schema,
        backbone: nn.Module,
        evidence: nn.Module,
        graph: GraphBranch,
        reasoner: RelationNetwork,
    ) -> None:
        super().__init__(schema, backbone, evidence)
        self.graph, self.reasoner = graph, reasoner

    def reason(self, feature: Float[Tensor, "B D"]) -> Diagnosis:
        """Diagnose from the feature of an image."""
        evidence = self.evidence(feature)
        arriving, leaving = self.graph.nodes(feature, evidence)
        gcn_in, gcn_out = self.graph.classify_input(arriving), self.graph.classify_output(leaving)
        return Diagnosis(self.schema, evidence, None, gcn_in, gcn_out, self.reasoner(leaving), None)
