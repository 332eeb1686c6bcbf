"""A cross-validation in the terminal: a cell for every model while they train, and what they came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason.errors import InputError
from radreason.report.training_text import COLUMNS, STAGES, kind
from radreason.run_folder import last_record, read_summary

_STYLES = {"waiting": "dim", "running": "cyan", "retried": "yellow", "done": "green", "failed": "red"}


@dataclass
class Board:
    """Where every model stands: its state as it was told, its epoch and AUC as its folder says."""

    title: str
    folder: Path
    epochs: int
    states: dict[str, str]

    def table(self) -> Table:
        """Give a row for each repeat, a column for each fold."""
        folds = list(dict.fromkeys(name.rpartition("/")[2] for name in self.states))
        rows = list(dict.fromkeys(name.rpartition("/")[0] for name in self.states))
        table = Table(box=SIMPLE_HEAD, title=self.title, title_justify="left", title_style="")
        table.add_column("")
        for fold in folds:
            table.add_column(fold.replace("-", " "), no_wrap=True)
        for row in rows:
            names = [f"{row}/{fold}" for fold in folds]
            cells = [self._cell(name) if name in self.states else Text("") for name in names]
            table.add_row(row.replace("-", " ").replace("/", ", "), *cells)
        ended = sum(state in ("done", "failed") for state in self.states.values())
        table.caption = (
            f"{ended} of {len(self.states)} done; AUC of the last stage: in tests, and while training"
        )
        table.caption_justify = "left"
        return table

    def line(self, name: str) -> str:
        """Say where one model stands, for logs."""
        ended = sum(state in ("done", "failed") for state in self.states.values())
        return f"{name}: {self._cell(name).plain} ({ended} of {len(self.states)} ended)"

    def _cell(self, name: str) -> Text:
        state = self.states[name]
        text = state
        if state == "done":
            text = f"done {_auc(_tested(self.folder / name))}".strip()
        elif state in ("running", "retried"):
            record = last_record(self.folder / name)
            if record is not None:
                scores = record.get("validation") or record.get("training") or {}
                text = f"{record.get('epoch', -1) + 1}/{self.epochs} {_auc(scores)}".strip()
        return Text(text, style=_STYLES[state])


def outcome(summary: Mapping[str, Any], folder: str) -> RenderableType:
    """What all models came to, fraction by fraction."""
    parts = summary.get("fractions", {"": summary})
    shown = [_outcome(part, name) for name, part in parts.items()]
    first = next(iter(parts.values()))
    return Group(
        Text(f"{kind(first['data'])}"),
        *shown,
        Text(f"Written to {folder}"),
        Text("Not a medical device: these figures hold for this data and these splits alone."),
    )


def _outcome(summary: Mapping[str, Any], name: str) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, title_justify="left", title_style="")
    of = f"{name.rpartition('-')[2]} % of the training cases, " if name else ""
    table.title = f"{of}{len(summary['models'])} models, each on the fold it tests: mean ± standard deviation"
    table.add_column("stage", no_wrap=True)
    for heading in COLUMNS.values():
        table.add_column(heading, justify="right")
    for stage, figures in summary["stages"].get("testing", {}).items():
        table.add_row(STAGES.get(stage, stage), *(_mean_sd(figures.get(column)) for column in COLUMNS))
    lines = [f"Note: {note}" for note in summary["notes"]]
    for repeat, pool in summary["pooled"].items():
        last, figures = list(pool["stages"].items())[-1]
        auc = "-" if figures["auc"] is None else f"{figures['auc']:.3f}"
        lines.append(
            f"{repeat}, folds {_list(pool['folds'])} pooled: {pool['cases']:,} cases, {last} AUC {auc}"
        )
    return Group(table, Text("\n".join(lines)))


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _tested(folder: Path) -> Mapping[str, Any]:
    try:
        stages: Mapping[str, Any] = read_summary(folder).get("stages", {}).get("testing", {})
    except InputError:
        return {}
    return stages


def _auc(stages: Mapping[str, Mapping[str, Any]]) -> str:
    auc = list(stages.values())[-1].get("auc") if stages else None
    return "" if auc is None else f"{auc:.3f}"


def _mean_sd(figure: Mapping[str, float | None] | None) -> str:
    if figure is None or figure["mean"] is None:
        return "-"
    sd = "" if figure["sd"] is None else f"±{figure['sd']:.3f}".replace("±0.", "±.")
    return f"{figure['mean']:.3f}{sd}"
