"""A plan as a tape of three instructions over numbered rows, for the compiled loops of `kernel`.

The first K rows are the evidence; every other row is written once, by a product or a sum of earlier ones:

    JOIN   z[i] = x[i] * y[i]
    SUM1   z[s] = sum over k of  w[s, k] * x[s, k]
    SUM2   z[s] = sum over k of  w[s, k] * x[s, k] * y[s, k]
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from radreason.prob.plan import Plan

JOIN, SUM1, SUM2 = 0, 1, 2


class Tape(NamedTuple):
    """All that compiled code needs to know of a plan, as flat arrays.

    A step has a row in ``steps``: instruction, rows written, terms per row, first row written, and
    where its weights, its x and its y begin in ``weights`` and ``rows``. ``roots`` are the rows
    whose product is the probability of the evidence; ``first`` is where each variable's evidence begins.
    """

    steps: Int[np.ndarray, "steps 7"]
    rows: Int[np.ndarray, " operands"]
    weights: Float[np.ndarray, " weights"]
    roots: Int[np.ndarray, " roots"]
    first: Int[np.ndarray, " borders"]
    n_rows: int


@lru_cache(maxsize=256)
def tape(plan: Plan) -> Tape:
    """Lay out the steps of a plan whose buckets sum one variable each; the weights are still ones."""
    first = [0, *accumulate(plan.sizes)]
    steps: list[tuple[int, ...]] = []
    operands: list[np.ndarray] = []
    message_row: list[int] = []
    roots: list[int] = []
    n_rows, n_operands, n_weights = first[-1], 0, 0

    def operand(rows: np.ndarray) -> int:
        nonlocal n_operands
        operands.append(rows.ravel())
        n_operands += rows.size
        return n_operands - rows.size

    def join(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        nonlocal n_rows
        steps.append((JOIN, x.size, 1, n_rows, 0, operand(x), operand(y)))
        n_rows += x.size
        return np.arange(n_rows - x.size, n_rows).reshape(x.shape)

    for bucket in plan.buckets:
        (variable,) = bucket.summed
        shape = tuple(plan.sizes[v] for v in bucket.axes)
        own = np.arange(first[variable], first[variable + 1])
        wide = None
        for source in bucket.sources:
            scope = plan.buckets[source].scope
            rows = message_row[source] + np.arange(prod(plan.sizes[v] for v in scope))
            if scope == bucket.summed:
                own = join(own, rows)
                continue
            message = torch.from_numpy(rows).reshape([plan.sizes[v] for v in scope])
            rows = np.broadcast_to(lift(message, scope, bucket.axes).numpy(), shape)
            wide = rows if wide is None else join(wide, rows)
        x = operand(np.broadcast_to(own, shape))
        kind, y = (SUM1, 0) if wide is None else (SUM2, operand(wide))
        n_out = prod(shape[:-1])
        steps.append((kind, n_out, shape[-1], n_rows, n_weights, x, y))
        message_row.append(n_rows)
        if bucket.target is None:
            roots.append(n_rows)
        n_rows += n_out
        n_weights += n_out * shape[-1]

    return Tape(
        np.array(steps, np.int64),
        np.concatenate(operands).astype(np.int64),
        np.ones(n_weights),
        np.array(roots, np.int64),
        np.array(first, np.int64),
        n_rows,
    )


def lift(factor: Tensor, scope: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
    """Put the leading axes of a factor where ``axes`` has them, of length one where it has none.

    Axes after the scope, such as the batch, stay at the end.
    """
    rest = list(range(len(scope), factor.ndim))
    order = sorted(range(len(scope)), key=lambda i: axes.index(scope[i]))
    factor = factor.permute(*order, *rest)
    where = iter(factor.shape)
    return factor.reshape([next(where) if v in scope else 1 for v in axes] + [factor.shape[i] for i in rest])
