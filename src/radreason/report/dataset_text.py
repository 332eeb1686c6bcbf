"""A dataset in the terminal: what is in it, and what was left out and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason.data.dataset import Dataset

EXAMPLES = 3
REASONS = 20
NOTES = 10


def outcome(found: Mapping[str, Any]) -> RenderableType:
    """What a run of `prepare` did: how many of what, and why not more."""
    counts = found["counts"]
    if counts is None:
        head = f"Checked, nothing written: {_many(found['cases'], 'case')} would be prepared."
    else:
        head = f"Wrote {found['folder']}: {_counted(counts, found['kind'])}."
    return Group(
        Text(head),
        *(Text(f"  {line}") for line in found["folds"]),
        *padded(**found.get("padded", {"cases": 0, "by_half": 0})),
        *left_out([(entry["case"], entry["reason"]) for entry in found["excluded"]]),
        *noted(found["notes"]),
    )


def summary(dataset: Dataset, *, verified: bool) -> RenderableType:
    """What a dataset says of itself, with the cases of every state."""
    counts = dataset.counts
    edge = " x ".join(map(str, dataset.core))
    lines = [
        f"{dataset.kind}: {dataset.source}",
        f"{_counted(counts, dataset.kind)}, patches of {edge} and a margin of {dataset.margin}"
        + (", with masks" if dataset.masks is not None else ""),
        f"{dataset.fingerprint}" + (", every byte as written" if verified else ""),
    ]
    return Group(
        *(Text(line) for line in lines),
        _states(dataset),
        *padded(**padding(dataset)),
        *left_out([(entry["case"], entry["reason"]) for entry in dataset.excluded]),
        *noted(dataset.notes),
    )


def padding(dataset: Dataset | None) -> dict[str, int]:
    """How many cases reach beyond what was scanned, and how many of them by more than half of the patch."""
    shares = [case.padding_share for case in dataset.cases] if dataset else []
    return {"cases": sum(share > 0 for share in shares), "by_half": sum(share > 0.5 for share in shares)}


def padded(cases: int, by_half: int) -> list[Text]:
    """Say what was filled up with air, for a patch that is mostly air teaches little."""
    if not cases:
        return []
    mostly = f", {by_half:,} of them by more than half" if by_half else ""
    return [Text(f"Padded with air where nothing was scanned: {_many(cases, 'case')}{mostly}.")]


def left_out(excluded: Sequence[tuple[str, str]]) -> list[Text]:
    """Count what was left out by reason, with some names."""
    if not excluded:
        return [Text("Nothing was left out.")]
    by_reason: dict[str, list[str]] = defaultdict(list)
    for case, reason in excluded:
        by_reason[reason].append(case)
    ranked = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [f"Left out: {len(excluded):,}"]
    for reason, cases in ranked[:REASONS]:
        some = ", ".join(cases[:EXAMPLES]) + " ..." * (len(cases) > EXAMPLES)
        lines.append(f"  {len(cases):>6,}  {reason}: {some}")
    if len(ranked) > REASONS:
        lines.append(f"          and {_many(len(ranked) - REASONS, 'other reason')}; --json lists all")
    return list(map(Text, lines))


def noted(notes: Sequence[str]) -> list[Text]:
    """What a person should know; notes that differ only in the scan are counted together."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for note in notes:
        scan, separator, text = note.partition(": ")
        by_text[text if separator else note].append(scan if separator else "")
    lines = []
    for text, scans in list(by_text.items())[:NOTES]:
        said = f"{scans[0]}: {text}" if len(scans) == 1 and scans[0] else text
        lines.append(f"Note: {said}" + (f" ({len(scans):,} scans)" if len(scans) > 1 else ""))
    if len(by_text) > NOTES:
        lines.append(f"      and {_many(len(by_text) - NOTES, 'other note')}; --json lists all")
    return list(map(Text, lines))


def _states(dataset: Dataset) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("variable")
    table.add_column("cases of each state, shared where readers are")
    table.add_column("missing", justify="right")
    for variable in dataset.schema:
        states = dataset.counts["states"][variable.name]
        cells = "  ".join(f"{state}: {_number(n)}" for state, n in states.items())
        name = f"{variable.name} *" if variable.name == dataset.schema.disease else variable.name
        table.add_row(name, cells, f"{dataset.counts['missing'][variable.name]:,}")
    return table


def _counted(counts: Mapping[str, Any], kind: str) -> str:
    patients, scans = _many(counts["patients"], "patient"), _many(counts["scans"], "scan")
    if "phantom" in kind:
        modelled = f" after nodules of {patients} in {scans}" if kind == "phantom-ct" else ""
        return f"{_many(counts['cases'], 'phantom')}{modelled}"
    return f"{_many(counts['cases'], 'case')} of {patients} in {scans}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"
