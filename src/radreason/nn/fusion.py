"""Residual fusion: what BN-1 concludes, corrected by what the graph sees.

Shape letters: B batch, K states of all variables together, k states of one group of variables.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.nn import packed
from radreason.schema import Schema

Form = Literal["probability", "log"]
Mixing = Literal["each", "together"]

FLOOR = 1e-6
"""The smallest belief that enters a logarithm: a network's zero must not veto the graph."""


class ResidualFusion(nn.Module):
    r"""Fuse the two branches for the disease and for the attributes (paper Eqs. (fusedis), (fuseattr)).

    .. math:: P_{fusion} = w_B P_B + (1 - w_B) \, \sigma(W_0 [P_G, P_B])

    with a trade-off of its own for the disease and one for the attributes, learned within (0, 1).
    ``form="log"`` does the same on logarithms and takes one softmax at the end,

    .. math:: P_{fusion} = \sigma(w_B \log P_B + (1 - w_B) \, W_0 [\log P_G, \log P_B])

    because a softmax of probabilities can hardly leave the flat distribution. W_0 starts as the mean
    of both branches, so that a rise of either raises the result. ``attributes="together"`` has one
    matrix over the states of all attributes instead of one per attribute.
    """

    by_group: Tensor
    by_schema: Tensor
    of_disease: Tensor

    def __init__(self, schema: Schema, form: Form = "probability", attributes: Mixing = "each") -> None:
        super().__init__()
        self.schema, self.form = schema, form
        disease, others = packed.disease_of(schema), packed.attributes_of(schema)
        groups = [
            (disease,),
            *([(name,) for name in others] if attributes == "each" or not others else [others]),
        ]

        slices, states = schema.slices(), torch.arange(schema.width)
        columns = [torch.cat([states[slices[name]] for name in group]) for group in groups]
        of_disease = torch.zeros(schema.width, dtype=torch.bool)
        of_disease[slices[disease]] = True
        self.register_buffer("by_group", torch.cat(columns), persistent=False)
        self.register_buffer("by_schema", torch.cat(columns).argsort(), persistent=False)
        self.register_buffer("of_disease", of_disease, persistent=False)

        self.raw_disease = nn.Parameter(torch.zeros(()))
        self.raw_attributes = nn.Parameter(torch.zeros(())) if others else None
        self.sizes = [len(c) for c in columns]
        self.mix = nn.ModuleList(nn.Linear(2 * size, size, bias=False) for size in self.sizes)
        for size, linear in zip(self.sizes, self.mix, strict=True):
            linear.load_state_dict({"weight": torch.eye(size).repeat(1, 2) / 2})

    @property
    def trade_offs(self) -> Float[Tensor, " K"]:
        """w_B of the disease and w'_B of the attributes, laid out over the states they apply to."""
        attributes = self.raw_disease if self.raw_attributes is None else self.raw_attributes
        return torch.where(self.of_disease, self.raw_disease, attributes).sigmoid()

    def forward(self, graph: Float[Tensor, "B K"], bayes: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """Give the fused belief from P_G and P_B."""
        keep = self.trade_offs
        if self.form == "probability":
            return keep * bayes + (1 - keep) * packed.softmax(self.schema, self._mixed(graph, bayes))
        graph, bayes = packed.log(graph, FLOOR), packed.log(bayes, FLOOR)
        return packed.softmax(self.schema, keep * bayes + (1 - keep) * self._mixed(graph, bayes))

    def _mixed(self, graph: Float[Tensor, "B K"], bayes: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """Apply each group's matrix to both branches side by side."""
        pairs = zip(
            self.mix,
            graph[:, self.by_group].split(self.sizes, dim=1),
            bayes[:, self.by_group].split(self.sizes, dim=1),
            strict=True,
        )
        mixed = [linear(torch.cat([of_graph, of_bayes], dim=1)) for linear, of_graph, of_bayes in pairs]
        return torch.cat(mixed, dim=1)[:, self.by_schema]
