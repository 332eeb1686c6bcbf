"""Fit the tables of a given graph to labels: states, distributions, gaps, or all three mixed.

A distribution over states means that the case is spread over them, so a family is counted by the
product of its members' distributions, times the case's weight. Gaps are filled by
expectation-maximisation (`em`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from radreason.errors import InputError
from radreason.prob import em
from radreason.prob.families import Table, TableMaker, expected_counts
from radreason.prob.graph import Parents
from radreason.prob.labels import Labels
from radreason.schema import Schema


def fit_tables(
    labels: Any,
    parents: Parents,
    schema: Schema | None = None,
    *,
    weights: Any = None,
    pseudocount: float = 1.0,
    forms: Mapping[str, str] | None = None,
    ridge: float = 1.0,
) -> tuple[Table, ...]:
    """Fit one table per variable: axes are its parents, ascending, then its own states.

    ``pseudocount`` is added to every cell of a full table. With 0 the table is the plain maximum
    of the likelihood, and a configuration of parents that no case shows gets the variable's
    marginal. ``forms`` names the variables whose table takes a compact form ("logistic" or
    "ordinal"), which ``ridge`` smooths instead.

    >>> from radreason import Schema, Variable
    >>> schema = Schema((Variable("cough", ("no", "yes")), Variable("flu", ("no", "yes"))))
    >>> labels = {"cough": ["yes", "no", "yes"], "flu": ["yes", "no", [0.5, 0.5]]}
    >>> fit_tables(labels, ((1,), ()), schema, pseudocount=0)[1].tolist()
    [0.5, 0.5]
    """
    if schema is None and not isinstance(labels, Labels):
        raise InputError(
            found=f"labels of type {type(labels).__name__} without a schema",
            expected="a schema beside them, or Labels, which have one",
        )
    labels = Labels.of(labels, labels.schema if schema is None else schema, weights)
    with np.errstate(over="ignore"):
        if not np.isfinite(labels.weights.sum()):
            raise InputError(
                found="weights whose sum is no finite number",
                expected="weights that add up to the number of cases they stand for",
            )
    maker = TableMaker.of(labels.schema, parents, pseudocount, forms or {}, ridge)
    if labels.missing.any():
        found = em.fit(labels, parents, maker)
        em.warn(found.rough)
        return found.tables
    return maker.make([expected_counts(labels, (*ps, v)) for v, ps in enumerate(parents)])
