"""What a run says of a dataset, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from radreason.report.training_text import kind, stage_table

SIX = ("accuracy", "sensitivity", "specificity", "precision", "f_score")


def scores(summary: Mapping[str, Any], folder: str) -> RenderableType:
    """Figures of every stage for cases that were not seen and those that were, and how sure the last is."""
    lines = [f"{kind(summary['data'])}, {summary['data']['excluded']:,} left out when it was prepared."]
    lines.append(f"Asked {summary['asked']} ({len(summary['run']['models'])} in the run).")
    if summary["not_asked"]:
        lines.append(f"{summary['not_asked']:,} cases were asked of no model.")
    lines += [f"Note: {note}" for note in summary["notes"]]
    shown: list[RenderableType] = []
    for part, figures in summary["stages"].items():
        shown.append(stage_table(part, summary))
        last = list(figures.values())[-1]
        for at, words in (
            ("at_half", "at 0.5"),
            ("at_threshold", "at the threshold of the validation cases"),
        ):
            if at in last:
                called = ", ".join(f"{name.replace('_', ' ')} {_number(last[at][name])}" for name in SIX)
                shown.append(Text(f"  {words}: {called}"))
        bounds = ", ".join(
            f"{name} {_number(b['value'])} ({_number(b['low'])} to {_number(b['high'])})"
            for name, b in summary["intervals"][part].items()
        )
        shown.append(Text(f"  last stage, 95 % by resampling patients: {bounds}"))
    return Group(
        Text("\n".join(lines)),
        *shown,
        Text(f"Written to {folder}"),
        Text("Not a medical device: these figures hold for this data alone."),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
