"""Fixed forms of a classifier: naive Bayes, and the tree-augmented form of it.

Both draw an arrow from the class to every attribute. The tree also joins the attributes, by the
tree that loses least of their dependence within the classes (Friedman, Geiger and Goldszmidt 1997).
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from radreason.errors import InputError
from radreason.prob.graph import Parents, from_edges
from radreason.prob.score import mutual_information
from radreason.prob.structure import as_labels
from radreason.schema import Schema


def naive_bayes(schema: Schema, target: str | None = None) -> Parents:
    """Give every other variable the target as its only parent.

    >>> from radreason import Variable
    >>> naive_bayes(Schema(tuple(Variable(n, ("0", "1")) for n in "abc"), disease="b"))
    ((1,), (), (1,))
    """
    root = _target(schema, target)
    return from_edges(len(schema), ((root, v) for v in range(len(schema)) if v != root))


def tree_augmented(labels: Any, schema: Schema | None = None, target: str | None = None) -> Parents:
    """Give every other variable the target as a parent, and all but one a second parent of its own.

    The tree among the attributes has the largest sum of mutual information given the target
    (Chow and Liu 1968); it hangs from the first attribute. Equal sums go to lower indices. A
    distribution counts by its shares; a case that lacks one of the three variables is left out of
    their count.
    """
    labels = as_labels(labels, schema)
    root = _target(labels.schema, target)
    attributes = [v for v in range(len(labels.schema)) if v != root]
    edges = [(root, v) for v in attributes]
    shared = {(a, b): mutual_information(labels, a, b, [root]) for a, b in combinations(attributes, 2)}
    hung, waiting = attributes[:1], attributes[1:]
    while waiting:
        parent, child = max(
            ((a, b) for a in hung for b in waiting),
            key=lambda pair: (round(shared[min(pair), max(pair)], DIGITS), -pair[0], -pair[1]),
        )
        edges.append((parent, child))
        waiting.remove(child)
        hung = sorted([*hung, child])
    return from_edges(len(labels.schema), edges)


DIGITS = 9
"""Decimals of mutual information, in nats a case, that count; equal ones tie on every machine."""


def _target(schema: Schema, target: str | None) -> int:
    name = target or schema.disease
    if name is None:
        raise InputError(
            found="a schema without a disease", expected="the variable to predict", hint="say target=..."
        )
    return schema.position(name)
