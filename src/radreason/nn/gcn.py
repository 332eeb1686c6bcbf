"""The graph branch: variables as nodes that compare themselves with each other, led by BN-1's beliefs.

Shape letters: B batch, D features of the image, V variables, C channels of a node, K states in all.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError
from radreason.nn.heads import NodeClassifier, NodeHead
from radreason.schema import Schema

Aggregate = Literal["max", "mean", "sum"]
Edges = Literal["unit", "free", "uniform"]
Attention = Literal["sigmoid", "softmax"]
Shortcut = Literal["modulated", "plain"]


class EdgeWeights(nn.Module):
    """One learnable weight per edge of a complete undirected graph.

    ``"unit"`` keeps them in (0, 1), so that they are strengths that can be compared; ``"free"`` lets
    them take any value, starting from one; ``"uniform"`` learns nothing.
    """

    pair: Tensor

    def __init__(self, nodes: int, kind: Edges = "unit") -> None:
        super().__init__()
        if nodes < 2:
            raise InputError(
                found=f"a graph of {nodes} node(s)",
                expected="two or more, that can be compared",
                hint="switch the graph off (graph=None), or keep more attributes",
            )
        self.kind = kind
        pair = torch.zeros(nodes, nodes, dtype=torch.long)
        for number, (i, j) in enumerate(combinations(range(nodes), 2)):
            pair[i, j] = pair[j, i] = number
        self.register_buffer("pair", pair, persistent=False)
        if kind != "uniform":
            n_edges = nodes * (nodes - 1) // 2
            self.raw = nn.Parameter(torch.full((n_edges,), 0.0 if kind == "unit" else 1.0))

    def forward(self) -> Float[Tensor, "V V"]:
        """Give the weights as a symmetric matrix, whose diagonal means nothing."""
        match self.kind:
            case "unit":
                return self.raw.sigmoid()[self.pair]
            case "free":
                return self.raw[self.pair]
            case "uniform":
                return torch.ones_like(self.pair, dtype=torch.get_default_dtype())


class EdgeMaxAggregator(nn.Module):
    r"""What sets a node apart from its neighbours, per channel the most (paper Eq. (BaseGraph), Aggregate).

    .. math:: a_i = \max_{j \ne i} \; e_{ij} \, (h_j - h_i)

    ``aggregate`` takes their mean or sum instead.
    """

    others: Tensor

    def __init__(self, nodes: int, edges: Edges = "unit", aggregate: Aggregate = "max") -> None:
        super().__init__()
        self.edge_weights = EdgeWeights(nodes, edges)
        self.aggregate = aggregate
        others = [[j for j in range(nodes) if j != i] for i in range(nodes)]
        self.register_buffer("others", torch.tensor(others), persistent=False)

    def forward(self, nodes: Float[Tensor, "B V C"]) -> Float[Tensor, "B V C"]:
        """Give every node its pooled differences."""
        weights: Tensor = self.edge_weights().gather(1, self.others)
        differences: Tensor = weights[..., None] * (nodes[:, self.others] - nodes[:, :, None])
        match self.aggregate:
            case "max":
                return differences.amax(dim=2)
            case "mean":
                return differences.mean(dim=2)
            case "sum":
                return differences.sum(dim=2)


class GraphConvolution(nn.Module):
    r"""Update every node from itself and from what it heard (paper Eq. (BaseGraph)).

    .. math:: F(G_l) = \mathrm{MLP}([h_i, a_i])

    with ``depth`` times linear, batch norm and ReLU, the same for all nodes.
    """

    def __init__(
        self,
        nodes: int,
        channels: int,
        edges: Edges = "unit",
        aggregate: Aggregate = "max",
        depth: int = 1,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise InputError(found=f"a graph convolution of depth {depth}", expected="one or more")
        self.aggregate = EdgeMaxAggregator(nodes, edges, aggregate)
        layers: list[nn.Module] = []
        for width in [2 * channels] + [channels] * (depth - 1):
            layers += [nn.Linear(width, channels, bias=False), nn.BatchNorm1d(channels), nn.ReLU()]
        self.update = nn.Sequential(*layers)

    def forward(self, nodes: Float[Tensor, "B V C"]) -> Float[Tensor, "B V C"]:
        """Give what the residual layer adds to the nodes."""
        told = torch.cat([nodes, self.aggregate(nodes)], dim=2)
        updated: Tensor = self.update(told.flatten(0, 1)).unflatten(0, nodes.shape[:2])
        return updated


class ChannelAttention(nn.Module):
    r"""Squeeze and excitation over the nodes (paper Eq. (cattn)).

    .. math:: C_{attn} = \mathrm{sigmoid}(W_{ex} \, \mathrm{ReLU}(W_{sq} \, \mathrm{GAP}(H)))
    """

    def __init__(self, channels: int, reduction: int = 4) -> None:
        super().__init__()
        narrow = max(1, channels // reduction)
        self.squeeze = nn.Linear(channels, narrow, bias=False)
        self.excite = nn.Linear(narrow, channels, bias=False)

    def forward(self, nodes: Float[Tensor, "B V C"]) -> Float[Tensor, "B C"]:
        """Give a value per channel, in (0, 1)."""
        scores: Tensor = self.excite(self.squeeze(nodes.mean(dim=1)).relu())
        return scores.sigmoid()


class NodeAttention(nn.Module):
    r"""How much each node counts, read off the beliefs of BN-1 (paper Eq. (sattn)).

    .. math:: M_{attn} = \sigma(W_1 \, \mathrm{ReLU}(W_0 \, P_B(V)))

    The paper writes sigma for softmax and for the gate of squeeze and excitation alike: ``kind``.
    """

    def __init__(self, schema: Schema, hidden: int = 16, kind: Attention = "sigmoid") -> None:
        super().__init__()
        self.kind = kind
        self.first = nn.Linear(schema.width, hidden, bias=False)
        self.second = nn.Linear(hidden, len(schema), bias=False)

    def forward(self, beliefs: Float[Tensor, "B K"]) -> Float[Tensor, "B V"]:
        """Give a value per node, in (0, 1)."""
        scores: Tensor = self.second(self.first(beliefs).relu())
        return scores.sigmoid() if self.kind == "sigmoid" else scores.softmax(dim=1)


class GraphLayer(nn.Module):
    r"""Channel attention, node attention, then a residual graph convolution (paper Eq. (ResGraph)).

    .. math:: \tilde H = M_{attn} \cdot (C_{attn} \cdot H_l), \qquad H_{l+1} = F(\tilde H) + \tilde H

    ``shortcut="plain"`` adds :math:`H_l` itself, past both attentions.
    """

    def __init__(
        self,
        schema: Schema,
        channels: int,
        edges: Edges = "unit",
        aggregate: Aggregate = "max",
        depth: int = 1,
        squeeze_excite: bool = True,
        attention: Attention | None = "sigmoid",
        shortcut: Shortcut = "modulated",
    ) -> None:
        super().__init__()
        self.channel_attention = ChannelAttention(channels) if squeeze_excite else None
        self.node_attention = NodeAttention(schema, kind=attention) if attention else None
        self.convolution = GraphConvolution(len(schema), channels, edges, aggregate, depth)
        self.shortcut = shortcut

    def forward(self, nodes: Float[Tensor, "B V C"], beliefs: Float[Tensor, "B K"]) -> Float[Tensor, "B V C"]:
        """Give the nodes of the next layer."""
        modulated = nodes
        if self.channel_attention is not None:
            modulated = modulated * self.channel_attention(modulated)[:, None, :]
        if self.node_attention is not None:
            modulated = modulated * self.node_attention(beliefs)[:, :, None]
        change: Tensor = self.convolution(modulated)
        return change + (modulated if self.shortcut == "modulated" else nodes)


class GraphBranch(nn.Module):
    """From the feature of the image to P0_G and P_G: nodes, ``layers`` graph layers, two classifiers.

    >>> from radreason.schema import LIDC
    >>> branch = GraphBranch(LIDC, in_features=32, channels=8, layers=2).eval()
    >>> [tuple(beliefs.shape) for beliefs in branch(torch.ones(1, 32), torch.ones(1, LIDC.width))]
    [(1, 45), (1, 45)]
    """

    def __init__(
        self,
        schema: Schema,
        in_features: int,
        channels: int = 64,
        layers: int = 3,
        edges: Edges = "unit",
        aggregate: Aggregate = "max",
        depth: int = 1,
        squeeze_excite: bool = True,
        attention: Attention | None = "sigmoid",
        shortcut: Shortcut = "modulated",
        bias: bool = True,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.head = NodeHead(schema, in_features, channels, bias)
        self.classify_input = NodeClassifier(schema, channels, bias, shared)
        self.layers = nn.ModuleList(
            GraphLayer(schema, channels, edges, aggregate, depth, squeeze_excite, attention, shortcut)
            for _ in range(layers)
        )
        self.classify_output = NodeClassifier(schema, channels, bias, shared)

    def forward(
        self,
        feature: Float[Tensor, "B D"],
        beliefs: Float[Tensor, "B K"],
        change: Callable[[Tensor], Tensor] | None = None,
    ) -> tuple[Float[Tensor, "B K"], Float[Tensor, "B K"]]:
        """Give P0_G, read off the nodes as they come in, and P_G, read off the last layer.

        ``change`` turns the nodes into others before anything is read off them.
        """
        arriving, leaving = self.nodes(feature, beliefs, change)
        return self.classify_input(arriving), self.classify_output(leaving)

    def nodes(
        self,
        feature: Float[Tensor, "B D"],
        beliefs: Float[Tensor, "B K"],
        change: Callable[[Tensor], Tensor] | None = None,
    ) -> tuple[Float[Tensor, "B V C"], Float[Tensor, "B V C"]]:
        """Give the nodes as they come in, and as the last layer leaves them."""
        if self.training and len(feature) == 1:
            raise InputError(
                found="a batch of one case in training",
                expected="two or more: batch norm takes its statistics from them",
                hint="drop the last batch where it is incomplete, or call .eval() to diagnose one case",
            )
        arriving = self.head(feature)
        if change is not None:
            arriving = change(arriving)
        nodes = arriving
        for layer in self.layers:
            nodes = layer(nodes, beliefs)
        return arriving, nodes
