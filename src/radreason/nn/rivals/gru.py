"""Messages between variables, taken in by a gated unit (the paper's M32 and M42).

Meng et al. (2018) pass messages between images, to tell which of two shows more of an attribute;
here, as the paper uses them, the nodes are the variables of one image.

Shape letters: B batch, V variables, C channels of a node, D features of the image, K states in all.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError
from radreason.nn.heads import NodeClassifier, NodeHead
from radreason.nn.hybrid import Diagnosis, ImageDiagnoser
from radreason.schema import Schema


class GatedMessages(nn.Module):
    r"""The same message and the same gates for all nodes, ``steps`` times.

    .. math:: m_i = \frac{1}{V - 1} \sum_{j \ne i} e_{ij} W h_j, \qquad h_i \leftarrow \mathrm{GRU}(m_i, h_i)

    with a weight :math:`e_{ij}` for every ordered pair that starts at one.
    """

    elsewhere: Tensor

    def __init__(self, nodes: int, channels: int, steps: int) -> None:
        super().__init__()
        if nodes < 2:
            raise InputError(
                found=f"messages between {nodes} node(s)",
                expected="two or more",
                hint="keep more attributes: data.attributes",
            )
        self.steps = steps
        self.strengths = nn.Parameter(torch.ones(nodes, nodes))
        self.message = nn.Linear(channels, channels)
        self.gates = nn.GRUCell(channels, channels)
        self.register_buffer("elsewhere", (1 - torch.eye(nodes)) / (nodes - 1), persistent=False)

    def forward(self, nodes: Float[Tensor, "B V C"]) -> Float[Tensor, "B V C"]:
        """Give the nodes after the last step."""
        for _ in range(self.steps):
            told = (self.strengths * self.elsewhere).to(nodes) @ self.message(nodes)
            updated: Tensor = self.gates(told.flatten(0, 1), nodes.flatten(0, 1))
            nodes = updated.unflatten(0, nodes.shape[:2])
        return nodes


class GruReasoner(nn.Module):
    """From the feature of the image to the beliefs of all variables: nodes, messages, classifiers."""

    def __init__(
        self, schema: Schema, in_features: int, channels: int = 64, steps: int = 3, bias: bool = True
    ) -> None:
        super().__init__()
        self.head = NodeHead(schema, in_features, channels, bias)
        self.messages = GatedMessages(len(schema), channels, steps)
        self.classify = NodeClassifier(schema, channels, bias)

    def forward(self, feature: Float[Tensor, "B D"]) -> Float[Tensor, "B K"]:
        """Give a packed distribution per variable, each from its own node."""
        beliefs: Tensor = self.classify(self.messages(self.head(feature)))
        return beliefs


class GruDiagnoser(ImageDiagnoser):
    """Backbone and gated messages between variables."""

    reasoner: GruReasoner

    def __init__(
        self, schema: Schema, backbone: nn.Module, evidence: nn.Module, reasoner: GruReasoner
    ) -> None:
        super().__init__(schema, backbone, evidence)
        self.reasoner = reasoner

    def reason(self, feature: Float[Tensor, "B D"]) -> Diagnosis:
        """Diagnose from the feature of an image."""
        return Diagnosis(self.schema, self.evidence(feature), None, None, None, self.reasoner(feature), None)
