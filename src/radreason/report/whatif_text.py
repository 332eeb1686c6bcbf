"""Answers to questions about one image, in the terminal: one block for each question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason.report.network_text import moved_table, percent, posterior_table
from radreason.report.training_text import STAGES
from radreason.schema import Schema, Variable

ODD = 0.95
"""A case that is more surprising than this share of the training cases is worth a word."""


def blocks(schema: Schema, answers: Mapping[str, Any], ascii_only: bool) -> RenderableType:
    """Show whatever was answered, in the order in which a reader would ask."""
    shown: list[RenderableType] = []
    lay_out: dict[str, Callable[[Mapping[str, Any]], Sequence[RenderableType]]] = {
        "sets": lambda told: _sets(schema, told),
        "confirm": lambda told: _confirmed(schema, told, ascii_only),
        "what_if": lambda told: _supposed(schema, told, ascii_only),
        "counterfactual": lambda told: _turning(schema, told),
        "importance": lambda told: _matters(schema, told),
        "why": lambda told: _why(schema, told),
        "consistency": _consistency,
        "ask_next": _ask_next,
    }
    for question, lines in lay_out.items():
        if question in answers:
            shown += [*lines(answers[question]), Text()]
    return Group(*shown[:-1])


def set_in_words(states: Sequence[str], variable: Variable) -> str:
    """Say a set: "benign or malignant", "2 to 4", "any".

    >>> set_in_words(["2", "3", "4"], Variable("margin", ("1", "2", "3", "4", "5")))
    '2 to 4'
    """
    if len(states) == variable.size and variable.size > 2:
        return "any of " + ", ".join(variable.states)
    if variable.ordered and len(states) > 2:
        return f"{states[0]} to {states[-1]}"
    return " or ".join(states)


def _sets(schema: Schema, told: Mapping[str, Any]) -> list[RenderableType]:
    table = _table("variable", f"holds the truth in {told['coverage']:.0%} of cases", "cases behind")
    for variable in sorted(schema, key=lambda v: v.name != schema.disease):
        one = told["of"][variable.name]
        words = set_in_words(one["states"], variable)
        odd = " (even this looks stranger than usual)" if one["odd"] else ""
        table.add_row(variable.name, words + odd, f"{one['cases_behind']:,}")
    words = f"Sets of stated coverage, on average over cases as in the run; from {told['rests_on']}:"
    return [Text(words), table]


def _confirmed(schema: Schema, told: Mapping[str, Any], ascii_only: bool) -> list[RenderableType]:
    disease = schema[str(schema.disease)]
    said = ", ".join(f"{name} {state}" for name, state in told["grades"].items())
    sure = "" if told["sure"] == 1 else f", {told['sure']:.0%} sure"
    lines: list[RenderableType] = [
        Text(f"A reader confirms {said}{sure}. This is evidence, worth what the run's readers are:")
    ]
    for name, worth in told["worth"].items():
        likely = ", ".join(f"{state}: {p:.0%}" for state, p in worth["probability_if_true_is"].items())
        lines.append(
            Text(
                f"  {name}: readers say {worth['said']} where the true grade is {likely}; they agree with "
                f"the others in {worth['readers_agree_with_the_others']:.0%} of "
                f"{worth['gradings_behind']:,} gradings"
            )
        )
    lines.append(_disease(disease, told, ascii_only, "calibrated, before and after"))
    if not told["factor_fitted"]:
        lines.append(
            Text("No validation case could be judged by other readers: how far answers count is theory.")
        )
    return lines


def _supposed(schema: Schema, told: Mapping[str, Any], ascii_only: bool) -> list[RenderableType]:
    disease = schema[str(schema.disease)]
    what = "; ".join(f"{name} = {_weights(states)}" for name, states in told["set"].items())
    where = {"bn1": "in BN-1", "graph": "in the graph", "both": "in BN-1 and in the graph"}[told["where"]]
    how = "set from outside, so that its causes hear nothing of it" if told["do"] else "as if seen"
    lines: list[RenderableType] = [
        Text(f"What if {what}, for certain, {how}, {where} (nobody's word is that certain: --confirm):"),
        _disease(disease, {key: told[key][disease.name] for key in ("before", "after")}, ascii_only),
    ]
    stages = ", ".join(
        f"{STAGES.get(stage, stage)} {_likely(disease, move['before'])} -> {_likely(disease, move['after'])}"
        for stage, move in told["stages"].items()
    )
    lines.append(Text(f"{disease.name} {disease.states[-1]}, stage by stage: {stages}"))
    names = [name for name in schema.names if name != disease.name]
    before, after = ({n: list(told[key][n].values()) for n in names} for key in ("before", "after"))
    lines.append(moved_table(schema, names, before, after))
    return lines


def _turning(schema: Schema, told: Mapping[str, Any]) -> list[RenderableType]:
    names = ", ".join(told["tried"])
    if not told["found"]:
        return [
            Text(
                f"No change of up to {told['most']} of {names} turns the diagnosis from {told['from']}: "
                "it does not hang on these grades."
            )
        ]
    changes = " and ".join(f"{name} {move['from']} -> {move['to']}" for name, move in told["changes"].items())
    return [
        Text(
            f"The smallest change that turns the diagnosis from {told['from']} "
            f"({percent(told['belief'][told['from']])}) to {told['to']} "
            f"({percent(told['belief_after'][told['to']])}): {changes}. "
            f"Tried: all changes of up to {told['most']} of {names}."
        )
    ]


def _matters(schema: Schema, told: Mapping[str, Any]) -> list[RenderableType]:
    table = _table(
        "attribute", f"importance for {told['state']}", "speaks", "off is", "where absent", "log-odds"
    )
    for one in told["attributes"]:
        low, absent = one["lowest"], one["absent"]
        differs = low["state"] != absent["state"]
        table.add_row(
            one["attribute"],
            f"{low['importance']:.3f}",
            {1: "for", -1: "against", 0: "neither"}[low["direction"]],
            low["state"],
            f"{absent['change']:+.3f} ({absent['state']})" if differs else "",
            f"{one['log_odds']:+.2f}",
        )
    return [
        Text(
            "Importance: what the final probability changes by with the attribute off, in BN-1 and the graph:"
        ),
        table,
        Text(
            f"Log-odds of {told['state']}: {told['log_odds_without']:+.2f} with all attributes off, "
            f"{told['log_odds_with']:+.2f} with all on; the contributions (Shapley) are the difference."
        ),
    ]


def _why(schema: Schema, told: Mapping[str, Any]) -> list[RenderableType]:
    total = (
        f"In log-odds: {told['log_odds_without']:+.2f} without any attribute, "
        f"{told['log_odds_with']:+.2f} with all."
    )
    return [
        Text("Why, by the first network (BN-1), the strongest first:"),
        *(Text(f"  {sentence}") for sentence in told["sentences"]),
        Text(f"  {total}"),
    ]


def _consistency(told: Mapping[str, Any]) -> list[RenderableType]:
    share = told["surprise"]
    word = "odd" if share > ODD else "not unusual"
    lines: list[RenderableType] = [
        Text(
            f"Does it hang together: more surprising than {share:.0%} of the training cases, which is {word}."
        )
    ]
    table = _table("attribute", "image against network", "training cases that disagree less")
    for one in told["attributes"]:
        table.add_row(one["attribute"], f"{one['disagreement']:.2f}", f"{one['odd']:.0%}")
    return [*lines, table]


def _ask_next(told: Mapping[str, Any]) -> list[RenderableType]:
    if not told["attributes"]:
        return [Text("Nothing is left to ask.")]
    after = f" after {', '.join(told['after'])}" if told["after"] else ""
    table = _table("attribute", "expected information, nats")
    for one in told["attributes"]:
        table.add_row(one["attribute"], f"{one['information_nats']:.4f}")
    return [Text(f"Ask a reader next{after}:"), table]


def _disease(variable: Variable, told: Mapping[str, Any], ascii_only: bool, note: str = "") -> RenderableType:
    before, after = (list(told[key].values()) for key in ("before", "after"))
    return posterior_table(variable, before, after, ascii_only=ascii_only, note=note)


def _likely(variable: Variable, belief: Mapping[str, float]) -> str:
    return percent(belief[variable.states[-1]])


def _weights(states: Mapping[str, float]) -> str:
    if len(states) == 1:
        return next(iter(states))
    return ", ".join(f"{state} ({weight:.0%})" for state, weight in states.items())


def _table(*headers: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, title in enumerate(headers):
        table.add_column(title, justify="right" if number and "holds" not in title else "left")
    return table
