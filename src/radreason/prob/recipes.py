"""How a network is learned: the options of `BayesNet.learn`, followed, written down and read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from radreason.errors import InputError, unknown
from radreason.prob import graph
from radreason.prob.families import Table
from radreason.prob.graph import Parents
from radreason.prob.labels import Labels
from radreason.prob.structure import learn_structure
from radreason.prob.tables import fit_tables
from radreason.prob.tree import naive_bayes, tree_augmented

Shape = Literal["best", "tree", "naive", "empty"]
"""Kinds of graph: the best by score, or one with less freedom to compare it with."""


def follow(
    labels: Labels,
    *,
    pseudocount: float = 1.0,
    forms: Mapping[str, str] | None = None,
    ridge: float = 1.0,
    parents: Parents | None = None,
    **search: Any,
) -> tuple[Parents, Sequence[Table]]:
    """Learn a graph, unless it is given, and then its tables."""
    forms = forms or {}
    if parents is None:
        parents = _search(labels, forms, **search)
    return parents, fit_tables(labels, parents, pseudocount=pseudocount, forms=forms, ridge=ridge)


def _search(
    labels: Labels,
    forms: Mapping[str, str],
    *,
    structure: str = "best",
    required: Sequence[tuple[str, str]] = (),
    **search: Any,
) -> Parents:
    """Learn the graph of the variables with full tables; the others become children."""
    schema = labels.schema
    if structure != "best":
        unused = [name for name, value in {**search, "required": required, "forms": forms}.items() if value]
        if unused:
            raise InputError(
                found=f"{', '.join(unused)} together with structure {structure!r}",
                expected="structure 'best', the only one that is searched for",
            )
        return _simple(labels, structure)
    for name in forms:
        schema.position(name)
    rest = [name for name in schema.names if name not in forms]
    given = [edge for edge in required if edge[1] in forms]
    edges = {(schema.position(a), schema.position(b)) for a, b in given}
    for name in forms:
        if all(child != name for _, child in given):
            edges |= {(schema.position(other), schema.position(name)) for other in rest}
    if rest:
        among = [edge for edge in required if edge[1] not in forms]
        found = learn_structure(Labels.of(labels, schema.subset(rest)), required=among, **search)
        edges |= {(schema.position(a), schema.position(b)) for a, b in found.edges}
    return graph.from_edges(len(schema), edges)


def _simple(labels: Labels, structure: str) -> Parents:
    if structure == "tree":
        return tree_augmented(labels)
    if structure == "naive":
        return naive_bayes(labels.schema)
    if structure == "empty":
        return graph.from_edges(len(labels.schema), [])
    raise unknown("structure", structure, ["best", "tree", "naive", "empty"])


def to_json(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Write a recipe as plain data; priors on edges become triples, since JSON has no pairs as keys."""
    plain = dict(recipe)
    if plain.get("edge_log_prior"):
        plain["edge_log_prior"] = [[*edge, odds] for edge, odds in plain["edge_log_prior"].items()]
    return plain


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "max_parents": lambda value: None if value is None else int(value),
    "required": lambda value: [_names(edge, 2) for edge in value],
    "forbidden": lambda value: [_names(edge, 2) for edge in value],
    "tiers": lambda value: None if value is None else [_names(tier) for tier in value],
    "edge_log_prior": lambda value: {_names(edge, 2): float(odds) for *edge, odds in value or ()},
    "score": str,
    "ess": float,
    "pseudocount": float,
    "structure": str,
    "forms": lambda value: {str(name): str(form) for name, form in value.items()},
    "ridge": float,
}
"""How each option of `BayesNet.learn` is read back from JSON, which has no pairs."""


def from_json(value: object, source: str) -> dict[str, Any]:
    """Read a recipe that `to_json` wrote."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(
            found=f"{source}: recipe {value!r:.60}", expected="options of BayesNet.learn, by name"
        )
    recipe = {}
    for name, option in value.items():
        if name not in _OPTIONS:
            raise unknown(f"option in the recipe of {source}:", name, _OPTIONS)
        try:
            recipe[name] = _OPTIONS[name](option)
        except (TypeError, ValueError, AttributeError, OverflowError):
            raise InputError(
                found=f"{source}: recipe with {name} = {option!r:.60}",
                expected="a value that BayesNet.learn takes",
            ) from None
    return recipe


def _names(value: Any, count: int | None = None) -> tuple[str, ...]:
    if (
        isinstance(value, str)
        or not all(isinstance(name, str) for name in value)
        or len(value) != (count or len(value))
    ):
        raise ValueError
    return tuple(value)
