"""A family, a variable and its parents: count it in the labels, and make its table of the counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.prob import compact
from radreason.prob.compact import Compact
from radreason.prob.graph import Parents, topological_order
from radreason.prob.labels import Labels
from radreason.schema import Schema

Table = Tensor | Compact
"""P(variable | parents): in full, or by the few parameters of a compact form."""

LARGEST_TABLE = 2**27
"""Entries of the largest table that is attempted: 1 GB in double precision."""

MOST_PSEUDOCOUNT = 1e12
"""More than any data can say; sums of it over a table stay exact enough, and finite."""

CASES_AT_ONCE = 4096
"""Bounds the memory of the products over half a family's states."""


def expected_counts(labels: Labels, family: Sequence[int]) -> Float64[np.ndarray, "*_"]:
    """Count, in expectation, how often these variables take each combination of states.

    One axis per variable, in the order given. A distribution counts as its product with the
    others of its case, so the sum over cases is one matrix product of two halves of the family.
    """
    sizes = [labels.schema.sizes[v] for v in family]
    columns = [labels.columns[v] for v in family]
    if all(((column == 0) | (column == 1)).all() for column in columns):
        cells = np.ravel_multi_index([column.argmax(axis=1) for column in columns], sizes)
        whole = np.bincount(cells, labels.weights, math.prod(sizes))
        return whole.astype(np.float64).reshape(sizes)  # of no cases, they are integers
    middle = len(columns) // 2
    counts = np.zeros((math.prod(sizes[:middle]), math.prod(sizes[middle:])))
    for start in range(0, labels.n_cases, CASES_AT_ONCE):
        cases = slice(start, start + CASES_AT_ONCE)
        left = _products([column[cases] for column in columns[:middle]], labels.weights[cases])
        right = _products([column[cases] for column in columns[middle:]], np.ones_like(labels.weights[cases]))
        counts += left.T @ right
    return counts.reshape(sizes)


def _products(
    columns: Sequence[Float64[np.ndarray, "N _"]], weights: Float64[np.ndarray, " N"]
) -> Float64[np.ndarray, "N _"]:
    """Multiply the distributions of each case, every state with every state (Khatri-Rao)."""
    rows = weights[:, None]
    for column in columns:
        rows = (rows[:, :, None] * column[:, None, :]).reshape(len(rows), -1)
    return rows


@dataclass(frozen=True)
class TableMaker:
    """Turns the expected counts of the families into the tables that fit them best."""

    pseudocount: float
    forms: tuple[str | None, ...]
    ridge: float

    @classmethod
    def of(
        cls, schema: Schema, parents: Parents, pseudocount: float, forms: Mapping[str, str], ridge: float
    ) -> TableMaker:
        """Check what was asked for."""
        if len(parents) != len(schema):
            raise InputError(
                found=f"the parents of {len(parents)} variables",
                expected=f"one entry for each of {len(schema)}",
            )
        topological_order(parents, schema.names)
        if not 0 <= pseudocount <= MOST_PSEUDOCOUNT:
            raise InputError(
                found=f"pseudocount {pseudocount!r}",
                expected=f"a number from zero to {MOST_PSEUDOCOUNT:g}",
                hint="1 to keep every state possible, 0 for the plain maximum of the likelihood",
            )
        for name, form in forms.items():
            variable = schema[name]
            if form not in compact.FORMS:
                raise unknown(f"form of the table of {name!r}:", form, compact.FORMS)
            if form == "ordinal" and not variable.ordered:
                raise InputError(
                    found=f"an ordinal table for {name!r}, whose states are not ordered",
                    expected="a variable whose states are grades",
                    hint="'logistic'",
                )
        for variable, ps in zip(schema, parents, strict=True):
            entries = math.prod(schema.sizes[p] for p in ps) * variable.size
            if entries > LARGEST_TABLE:
                raise InputError(
                    found=f"a table of {entries:,} entries for {variable.name!r} with {len(ps)} parents",
                    expected=f"at most {LARGEST_TABLE:,}",
                    hint="limit the parents per variable (max_parents)",
                )
        return cls(float(pseudocount), tuple(forms.get(name) for name in schema.names), float(ridge))

    def make(
        self, counts: Sequence[Float64[np.ndarray, "*_"]], start: Sequence[Table] | None = None
    ) -> tuple[Table, ...]:
        """Fit each table to the counts of its family; `start` saves compact forms some steps."""
        tables: list[Table] = []
        for v, (own, form) in enumerate(zip(counts, self.forms, strict=True)):
            before = start[v] if start else None
            if form is None:
                tables.append(_full(own, self.pseudocount))
            else:
                tables.append(
                    compact.fit(form, own, self.ridge, None if isinstance(before, Tensor) else before)
                )
        return tuple(tables)

    def log_prior(self, tables: Sequence[Table]) -> float:
        """What pseudocounts and ridge add to the log likelihood: `make` maximises the sum of both."""
        return sum(
            (self.pseudocount * float(table.log().sum()) if self.pseudocount else 0.0)
            if isinstance(table, Tensor)
            else compact.log_penalty(table, self.ridge)
            for table in tables
        )


def _full(counts: Float64[np.ndarray, "*parents k"], pseudocount: float) -> Float64[Tensor, "*parents k"]:
    """Divide counts by their sums; where that is 0 / 0, take the marginal of the variable."""
    cells = torch.from_numpy(counts) + pseudocount
    totals, marginal = cells.sum(-1, keepdim=True), cells.reshape(-1, cells.shape[-1]).sum(0)
    marginal = marginal / marginal.sum() if marginal.any() else torch.full_like(marginal, 1 / len(marginal))
    return torch.where(totals > 0, cells / torch.where(totals > 0, totals, 1.0), marginal)


def full(tables: Sequence[Table]) -> tuple[Tensor, ...]:
    """Write compact tables out."""
    return tuple(table.detach() if isinstance(table, Tensor) else table.table() for table in tables)
