"""What both concept models share: attributes and disease apart, and attributes that somebody corrects.

Shape letters: B batch, V variables, K states of all variables together, A states of all attributes.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError
from radreason.nn import packed
from radreason.schema import Schema


def attribute_schema(schema: Schema) -> Schema:
    """Give the attributes alone; a disease that is read off attributes needs one or more."""
    names = packed.attributes_of(schema)
    if not names:
        raise InputError(
            found="no attribute",
            expected="one or more: the disease is read off the attributes",
            hint='data.attributes="all"',
        )
    return schema.subset(names)


def take_attributes(schema: Schema, beliefs: Float[Tensor, "B K"]) -> Float[Tensor, "B A"]:
    """Leave the disease out of packed beliefs."""
    disease = schema.position(packed.disease_of(schema))
    pieces = schema.split(beliefs)
    return torch.cat([*pieces[:disease], *pieces[disease + 1 :]], dim=1)


def put_together(
    schema: Schema, attributes: Float[Tensor, "B A"], disease: Float[Tensor, "B k"]
) -> Float[Tensor, "B K"]:
    """Lay attributes and disease out in the order of the schema."""
    pieces = list(attribute_schema(schema).split(attributes))
    pieces.insert(schema.position(packed.disease_of(schema)), disease)
    return torch.cat(pieces, dim=1)


def corrected(beliefs: Float[Tensor, "B K"], given: Float[Tensor, "B K"] | None) -> Float[Tensor, "B K"]:
    """Let what is given stand in for beliefs; it is NaN where nothing is.

    >>> nothing = torch.nan
    >>> corrected(torch.tensor([[0.5, 0.5, 0.25, 0.75]]), torch.tensor([[0.0, 1.0, nothing, nothing]]))
    tensor([[0.0000, 1.0000, 0.2500, 0.7500]])
    """
    return beliefs if given is None else given.to(beliefs).where(~given.isnan(), beliefs)


def undecided(schema: Schema, attributes: Float[Tensor, "B A"]) -> Float[Tensor, "B K"]:
    """Say nothing of the disease: before it is read off the attributes, nothing is known of it."""
    size = schema[packed.disease_of(schema)].size
    return put_together(schema, attributes, attributes.new_full((attributes.shape[0], size), 1 / size))
