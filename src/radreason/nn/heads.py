"""From the feature of an image to evidence for a Bayesian network, and to the nodes of a graph.

Shape letters: B batch, D features of the image, V variables, C channels of a node, K states in all.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError
from radreason.nn import packed
from radreason.schema import Schema


class EvidenceHead(nn.Module):
    r"""Grade every variable from the feature of the image (paper, Integration between BN and Backbone).

    .. math:: P^0_B = \sigma(W_B F_0)

    with one softmax per variable, which may have its own number of states. ``bias=False`` is the
    equation to the letter.
    """

    def __init__(self, schema: Schema, in_features: int, bias: bool = True) -> None:
        super().__init__()
        self.schema = schema
        self.linear = nn.Linear(in_features, schema.width, bias)

    def forward(self, feature: Float[Tensor, "B D"]) -> Float[Tensor, "B K"]:
        """Give P0_B, a packed distribution per variable."""
        return packed.softmax(self.schema, self.linear(feature))


class NodeHead(nn.Module):
    r"""Give every variable a feature of its own, the input of the graph (paper, GCN Module).

    .. math:: H_{G_0} = W_G F_0
    """

    def __init__(self, schema: Schema, in_features: int, channels: int, bias: bool = True) -> None:
        super().__init__()
        self.nodes = len(schema)
        self.linear = nn.Linear(in_features, self.nodes * channels, bias)

    def forward(self, feature: Float[Tensor, "B D"]) -> Float[Tensor, "B V C"]:
        """Give H_G0, one feature vector per variable."""
        features: Tensor = self.linear(feature).unflatten(1, (self.nodes, -1))
        return features


class NodeClassifier(nn.Module):
    r"""Grade every variable from the feature of its own node (paper Eq. (pgupdate)).

    .. math:: P_G = \sigma(W_P H_{G_L}), \qquad P^0_G = \sigma(W_T H_{G_0})

    Each node has its own matrix, of as many rows as it has states. ``shared`` has one matrix for all
    of them, which takes variables with the same number of states.
    """

    def __init__(self, schema: Schema, channels: int, bias: bool = True, shared: bool = False) -> None:
        super().__init__()
        if shared and len(set(schema.sizes)) > 1:
            raise InputError(
                found=f"one classifier for variables with {', '.join(map(str, schema.sizes))} states",
                expected="the same number of states for all",
                hint="shared=False gives each its own",
            )
        self.schema, self.shared = schema, shared
        sizes = schema.sizes[:1] if shared else schema.sizes
        self.linears = nn.ModuleList(nn.Linear(channels, size, bias) for size in sizes)

    def forward(self, nodes: Float[Tensor, "B V C"]) -> Float[Tensor, "B K"]:
        """Give a packed distribution per variable, each from its own node."""
        linears = [self.linears[0]] * len(self.schema) if self.shared else self.linears
        grades = [linear(node) for linear, node in zip(linears, nodes.unbind(dim=1), strict=True)]
        return packed.softmax(self.schema, torch.cat(grades, dim=1))
