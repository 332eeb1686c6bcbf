"""How a network is learned: the options of `BayesNet.learn`, followed, written down and read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from radreason.errors import InputError, unknown
from radreason.prob import graph
from radreason.prob.constraints import Constraints
from radreason.prob.counting import mask_of, members
from radreason.prob.families import Table
from radreason.prob.graph import Edge, Parents
from radreason.prob.labels import Labels
from radreason.prob.structure import learn_structure
from radreason.prob.tables import fit_tables
from radreason.prob.tree import naive_bayes, tree_augmented
from radreason.schema import Schema

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
    **search: Any,
) -> Parents:
    """Learn the graph of the variables with full tables; the others become children."""
    schema = labels.schema
    if structure != "best":
        unused = [name for name, value in {**search, "forms": forms}.items() if value]
        if unused:
            raise InputError(
                found=f"{', '.join(unused)} together with structure {structure!r}",
                expected="structure 'best', the only one that is searched for",
            )
        return _simple(labels, structure)
    if not forms:
        return learn_structure(labels, **search).parents
    edges = _into_forms(schema, forms, **search)
    rest = [name for name in schema.names if name not in forms]
    if rest:
        found = learn_structure(Labels.of(labels, schema.subset(rest)), **_among(rest, **search))
        edges |= {(schema.position(a), schema.position(b)) for a, b in found.edges}
    return graph.from_edges(len(schema), edges)


def _into_forms(
    schema: Schema,
    forms: Mapping[str, str],
    *,
    max_parents: int | None = None,
    edge_log_prior: Mapping[tuple[str, str], float] | None = None,
    **search: Any,
) -> set[Edge]:
    """Join each variable with a form to the parents required of it, or else to all that the rules allow."""
    bound = {schema.position(name) for name in forms}
    rules = {name: search[name] for name in ("required", "forbidden", "tiers") if name in search}
    constraints = Constraints.of(schema, **rules, edge_log_prior=edge_log_prior)
    for child, required in enumerate(constraints.required):
        for parent in sorted(bound & set(members(required)) if child not in bound else ()):
            raise InputError(
                found=f"required edge {schema.names[parent]} -> {schema.names[child]} "
                f"from a variable with a {forms[schema.names[parent]]} table",
                expected="such variables as children only: they are left out of the search",
            )
    for edge in edge_log_prior or ():
        if name := next((name for name in edge if name in forms), None):
            raise InputError(
                found=f"a prior of edge {' -> '.join(edge)} and a {forms[name]} table for {name!r}",
                expected="priors of edges that are searched for",
                hint="say required or forbidden",
            )
    edges: set[Edge] = set()
    for child in sorted(bound):
        all_of_them = members(constraints.allowed[child] & ~mask_of(bound))
        parents = members(constraints.required[child]) or all_of_them
        if max_parents is not None and len(parents) > max_parents:
            raise InputError(
                found=f"{len(parents)} parents of {schema.names[child]!r}, "
                f"which has a {forms[schema.names[child]]} table",
                expected=f"at most max_parents = {max_parents}",
                hint="say which by required, or leave others out by forbidden",
            )
        edges |= {(parent, child) for parent in parents}
    return edges


def _among(
    names: Sequence[str],
    *,
    required: Sequence[tuple[str, str]] = (),
    forbidden: Sequence[tuple[str, str]] = (),
    tiers: Sequence[Sequence[str]] | None = None,
    **search: Any,
) -> dict[str, Any]:
    """Keep of the rules of a search what is about these variables."""
    return search | {
        "required": [edge for edge in required if set(edge) <= set(names)],
        "forbidden": [edge for edge in forbidden if set(edge) <= set(names)],
        "tiers": tiers and [[name for name in tier if name in names] for tier in tiers],
    }


def _simple(labels: Labels, structure: str) -> Parents:
    if structure == "tree":
        return tree_augmented(labels)
    if structure == "naive":
        return naive_bayes(labels.schema)
    if structure == "empty":
        return graph.from_edges(len(labels.schema), [])
    raise unknown("structure", structure, get_args(Shape))


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
