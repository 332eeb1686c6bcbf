"""Arithmetic on packed beliefs: what is done to every variable alone, whatever its number of states.

Shape letters: B batch, V variables, K states of all variables together.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError
from radreason.schema import Schema


def softmax(schema: Schema, logits: Float[Tensor, "*B K"]) -> Float[Tensor, "*B K"]:
    """Make each variable's logits a distribution: the paper's sigma.

    >>> from radreason import Schema, Variable
    >>> two = Schema((Variable("a", ("no", "yes")), Variable("b", ("1", "2", "3", "4"))))
    >>> softmax(two, torch.zeros(6)).tolist()
    [0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    """
    return torch.cat([piece.softmax(dim=-1) for piece in schema.split(logits)], dim=-1)


def log(beliefs: Float[Tensor, "*B K"], floor: float) -> Float[Tensor, "*B K"]:
    """Logarithm of beliefs, of which a network's zero tables can make exact zeros: never below ``floor``."""
    return beliefs.clamp_min(floor).log()


def membership(schema: Schema) -> Float[Tensor, "V K"]:
    """One where a state belongs to a variable, zero elsewhere."""
    belongs: Tensor = torch.block_diag(*(torch.ones(1, size) for size in schema.sizes))
    return belongs


def disease_of(schema: Schema) -> str:
    """Name of the disease; a schema without one cannot be diagnosed."""
    if schema.disease is None:
        raise InputError(
            found=f"a schema without a disease: {', '.join(schema.names)}",
            expected="one of its variables named as the disease",
            hint=f"Schema(variables, disease={schema.names[-1]!r})",
        )
    return schema.disease


def attributes_of(schema: Schema) -> tuple[str, ...]:
    """Names of all variables but the disease."""
    return tuple(name for name in schema.names if name != disease_of(schema))
