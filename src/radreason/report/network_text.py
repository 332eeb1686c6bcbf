"""A network in the terminal: its edges, its tables, and what a question changed.

Everything here takes plain names and numbers and gives something that rich can print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason.schema import Schema, Variable

ROWS = 12
"""A table longer than this is shown by its likeliest rows."""

BAR = 24

MOVED = 0.001
"""A distribution that moved less than this is named, not listed."""

NEARLY = 0.25
"""An edge in this share of the resamples is worth a word even if the best graph lacks it."""


@dataclass(frozen=True)
class ShownEdge:
    """An edge with what the bootstrap said of it; None where it was not asked."""

    parent: str
    child: str
    compelled: bool
    strength: float | None = None
    interval: tuple[float, float] | None = None
    direction: float | None = None


def edges_table(edges: Sequence[ShownEdge]) -> RenderableType:
    """All edges; the strength is the share of resamples that join the two, in either direction."""
    if not edges:
        return Text("No edges: as far as these cases tell, the variables are independent.\n")
    table = _table(
        "edge", "direction decided", *(["strength", "95 %", "so directed"] if _resampled(edges) else [])
    )
    for edge in sorted(edges, key=lambda e: (-(e.strength or 0.0), e.parent, e.child)):
        arrow = "->" if edge.compelled else "--"
        cells = [
            f"{edge.parent} {arrow} {edge.child}",
            "yes" if edge.compelled else "no: both score the same",
        ]
        if edge.strength is not None and edge.interval is not None and edge.direction is not None:
            low, high = edge.interval
            cells += [percent(edge.strength), f"{percent(low)} to {percent(high)}", percent(edge.direction)]
        table.add_row(*cells)
    return table


def _resampled(edges: Sequence[ShownEdge]) -> bool:
    return any(edge.strength is not None for edge in edges)


def variable_table(
    schema: Schema,
    name: str,
    parents: Sequence[str],
    table: Float[np.ndarray, "*parents k"],
    parents_joint: Float[np.ndarray, "*parents"],
) -> RenderableType:
    """P(variable | parents), one row per configuration of the parents.

    Of a long table the rows with the likeliest parents under the network itself are shown
    (``parents_joint``: the probability of each configuration), and the caption says how many.
    """
    variable = schema[name]
    flat = table.reshape(-1, variable.size)
    likely = parents_joint.reshape(-1)
    shown = np.argsort(-likely, kind="stable")[:ROWS] if len(flat) > ROWS else np.arange(len(flat))
    title = f"P({name} | {', '.join(parents)})" if parents else f"P({name})"
    drawn = _table(*parents, *variable.states, title=title)
    for column in drawn.columns[len(parents) :]:
        column.justify = "right"
    for row in shown:
        codes = np.unravel_index(row, table.shape[:-1]) if parents else ()
        states = [schema[p].states[code] for p, code in zip(parents, codes, strict=True)]
        drawn.add_row(*states, *(percent(p) for p in flat[row]))
    notes = [_meanings(variable)]
    if len(shown) < len(flat):
        notes.append(
            f"The {len(shown)} likeliest of {len(flat):,} rows: "
            f"{percent(float(likely[shown].sum()))} of all cases have these parents."
        )
    return Group(drawn, *(Text(f"  {note}", style="dim") for note in notes if note), Text())


def posterior_table(
    variable: Variable,
    before: Sequence[float],
    after: Sequence[float],
    *,
    ascii_only: bool = False,
    note: str = "",
) -> RenderableType:
    """What is believed of one variable before and after: a bar per state, a mark where it stood before."""
    title = variable.name + (f" ({note})" if note else "")
    table = _table("state", *(["meaning"] if variable.meanings else []), "before", "after", "", title=title)
    for column in table.columns[-3:-1]:
        column.justify = "right"
    for i, state in enumerate(variable.states):
        words = [variable.meanings[i]] if variable.meanings else []
        table.add_row(
            state, *words, percent(before[i]), percent(after[i]), bar(before[i], after[i], ascii_only)
        )
    return table


def moved_table(
    schema: Schema,
    names: Sequence[str],
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
) -> RenderableType:
    """One line per variable: its likeliest state before and after, and how far its distribution moved."""
    table = _table("variable", "likeliest before", "likeliest after", "moved")
    table.columns[-1].justify = "right"
    for name in names:
        states = [
            f"{schema[name].states[i]}  {percent(beliefs[name][i])}"
            for beliefs in (before, after)
            for i in [int(np.argmax(beliefs[name]))]
        ]
        table.add_row(name, *states, percent(distance(before[name], after[name])))
    return table


def summary(found: Mapping[str, Any]) -> RenderableType:
    """What learning found: cases, edges, the disease's surroundings, how nearly it was another graph."""
    edges = found["edges"]
    compelled = sum(edge["compelled"] for edge in edges)
    joined = [edge for edge in edges if edge["strength"] is not None]
    lines = {
        "cases": f"{found['cases']:,} of {found['source']}, entries missing: {found['missing']:,}",
        "score": f"{found['score']:,.1f} nats ({found['criterion'].upper()}), the best of all graphs",
        "edges": f"{len(edges)}, of which {compelled} with a direction that the score decides",
    }
    if joined:
        weakest = min(joined, key=lambda edge: edge["strength"])
        lines["strength"] = (
            f"{found['resamples']} resamples; weakest edge {weakest['parent']} - {weakest['child']}, "
            f"in {percent(weakest['strength'])} of them"
        )
    if found["disease"]:
        around = ", ".join(found["markov_blanket"]) or "nothing: no edge reaches it"
        lines[found["disease"]] = f"depends directly on {around}"
    close = sorted((other["gap"], name) for name, other in found["second_best"].items() if other)
    if close:
        gap, name = close[0]
        instead = ", ".join(found["second_best"][name]["parents"]) or "none"
        lines["closest call"] = f"{name} with parents {instead} instead would cost {gap:.1f} nats"
    lines["written"] = f"{found['folder']}: network.json, network.svg, network.png ({found['seconds']:.1f} s)"
    table = Table.grid(padding=(0, 2))
    for key, words in lines.items():
        table.add_row(Text(key, style="bold"), words)
    return Group(table, *(Text(f"note: {note}", style="dim") for note in found["notes"]))


def absent(edges: Sequence[ShownEdge], strengths: Sequence[tuple[str, str, float]]) -> RenderableType:
    """Pairs that the best graph leaves apart and yet many resamples join."""
    drawn = {frozenset((edge.parent, edge.child)) for edge in edges}
    nearly = [pair for pair in strengths if pair[2] >= NEARLY and frozenset(pair[:2]) not in drawn]
    if not nearly:
        return Text()
    pairs = ", ".join(f"{one} - {other} ({percent(strength)})" for one, other, strength in nearly)
    return Text(f"Not in the graph, but in a quarter of the resamples or more: {pairs}\n", style="dim")


def answer(
    schema: Schema, asked: Sequence[str], told: Mapping[str, Any], *, ascii_only: bool
) -> RenderableType:
    """What a question changed: in full for the variables asked for, in one line each for the others.

    ``told`` holds ``evidence``, ``do``, ``before`` and ``after``, beliefs by name and state.
    """
    given = {name: f"seen: {_states(states)}" for name, states in told["evidence"].items()}
    given |= {name: f"set to {_states(states)}" for name, states in told["do"].items()}
    before, after = ({n: list(b.values()) for n, b in told[key].items()} for key in ("before", "after"))
    parts: list[RenderableType] = (
        [Text("; ".join(f"{name} {what}" for name, what in given.items()))] if given else []
    )
    in_full = list(asked) or ([schema.disease] if schema.disease else [])
    for name in in_full:
        note = given.get(name, "")
        parts += [
            Text(),
            posterior_table(schema[name], before[name], after[name], note=note, ascii_only=ascii_only),
        ]
    rest = [name for name in schema.names if name not in in_full and name not in given]
    if rest and not asked:
        far = {name: distance(before[name], after[name]) for name in rest}
        listed = sorted((n for n in rest if far[n] >= MOVED), key=lambda n: -far[n]) if given else rest
        if listed:
            parts += [Text(), moved_table(schema, listed, before, after)]
        if len(listed) < len(rest):
            still = ", ".join(name for name in rest if name not in listed)
            parts.append(Text(f"\nMoved by less than {percent(MOVED)}: {still}", style="dim"))
    if (likely := told["probability_of_evidence"]) is not None:
        parts.append(Text(f"\nCases like this are {percent(likely)} of all.", style="dim"))
    if not in_full:
        parts.append(Text("\n--of NAME shows a variable in full.", style="dim"))
    return Group(*parts)


def _states(states: Mapping[str, float]) -> str:
    return next(iter(states)) if len(states) == 1 else ", ".join(f"{s} ({w:g})" for s, w in states.items())


def distance(before: Sequence[float], after: Sequence[float]) -> float:
    """Total variation: the probability that has changed its place."""
    return 0.5 * float(np.abs(np.asarray(after) - np.asarray(before)).sum())


def percent(share: float) -> str:
    """A share for reading; what is not quite none or all never reads as such."""
    if 0 < share < 0.0005:
        return "<0.1 %"
    if 0.9995 <= share < 1:
        return ">99.9 %"
    return f"{100 * share:.1f} %"


def bar(before: float, after: float, ascii_only: bool = False) -> Text:
    """A bar as long as ``after``, with a mark where ``before`` was."""
    full, mark = ("#", "|") if ascii_only else ("█", "┃")
    length, old = round(BAR * after), round(BAR * before)
    cells = [full] * length + [" "] * (BAR + 1 - length)
    text = Text("".join(cells), style="blue")
    if old != length:
        text = Text("".join([*cells[:old], mark, *cells[old + 1 :]]), style="blue")
        text.stylize("bold yellow", old, old + 1)
    return text


def _meanings(variable: Variable) -> str:
    return ", ".join(f"{s}: {m}" for s, m in zip(variable.states, variable.meanings, strict=False))


def _table(*headers: str, title: str = "") -> Table:
    return Table(
        *headers,
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
