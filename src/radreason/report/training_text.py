"""A training in the terminal: a line per epoch while it runs, and what came of it at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason import config

STAGES = {
    "evidence": "evidence (P0_B)",
    "bn1": "BN-1 (P_B)",
    "gcn_in": "GCN in (P0_G)",
    "gcn_out": "GCN out (P_G)",
    "fusion": "fusion",
    "bn2": "BN-2 (final)",
}
"""The stages as the paper calls them."""

COLUMNS = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "log_loss": "log loss",
    "brier": "Brier",
    "ece": "ECE",
    "attributes_accuracy": "attributes",
    "attributes_within_one": "within one",
}


def began(plan: Mapping[str, Any]) -> str:
    """Say what is trained on what, as far as a line goes."""
    settings, cases = plan["settings"], plan["cases"]
    fold = "all cases" if plan["fold"] is None else f"repeat {plan['repeat']}, fold {plan['fold']}"
    return (
        f"{settings['preset']} on {kind(plan['data'])}, {fold}: {len(cases['training']):,} cases train, "
        f"{len(cases['validation']):,} validate, {len(cases['testing']):,} test; "
        f"{_how(settings)}"
    )


def _how(settings: Mapping[str, Any]) -> str:
    method = settings["model"]["method"]
    if method in config.WITHOUT_WEIGHTS:
        return f"method {method}, no neural network"
    what = "" if method == "hybrid" else f"method {method}, "
    return f"{what}{settings['model']['backbone']['name']}, {settings['train']['epochs']} epochs"


def kind(data: Mapping[str, Any]) -> str:
    """Name the data, and phantoms as phantoms."""
    what = "PHANTOMS, no images of patients" if "phantom" in data["kind"] else data["kind"].upper()
    return f"{what} ({data['source']})"


def epoch_line(record: Mapping[str, Any], epochs: int, seconds: float) -> str:
    """One epoch: its loss with all parts, and accuracy / AUC of every stage."""
    losses = dict(record["losses"])
    parts = "  ".join(f"{name} {value:.3f}" for name, value in losses.items() if name != "total")
    scored = "validation" if record["validation"] else "training"
    stages = "  ".join(
        f"{stage} {_share(scores['accuracy'])}/{_share(scores['auc'])}"
        for stage, scores in record[scored].items()
    )
    lines = [
        f"epoch {record['epoch'] + 1}/{epochs}  loss {losses['total']:.4f} = {parts}"
        f"  ({seconds:.1f} s{', best so far' if record['best'] else ''})",
        f"    {scored}, accuracy/AUC: {stages}",
        *(f"    {line}" for line in refit_lines(record.get("refit"))),
    ]
    return "\n".join(lines)


def refit_lines(refit: Mapping[str, Mapping[str, Any]] | None) -> list[str]:
    """Say what phase 2 made of each network."""
    lines = []
    for name, change in (refit or {}).items():
        moved = [f"+{parent}->{child}" for parent, child in change["gained"]]
        moved += [f"-{parent}->{child}" for parent, child in change["lost"]]
        lines.append(
            f"{name} learned anew: {change['edges']} edges ({' '.join(moved) or 'the same'}), "
            f"{change['disease_degree']} at the disease; its log loss {change['log_loss_before']:.3f} -> "
            f"{change['log_loss_after']:.3f}"
        )
    return lines


def outcome(summary: Mapping[str, Any], folder: str, pictures: Sequence[str]) -> RenderableType:
    """What a training came to: figures of every stage, the networks, where all of it is."""
    shown = [part for part in ("testing", "validation") if part in summary["stages"]]
    chosen = summary["chosen_epoch"]
    lines = [f"{kind(summary['data'])}, {summary['data']['excluded']:,} left out when it was prepared."]
    if chosen is not None:
        lines.append(f"Epoch {chosen + 1} of {summary['epochs']} was chosen; {summary['refits']} refit(s).")
    for name, net in summary["networks"].items():
        near = ", ".join(net["neighbours_of_disease"]) or "nothing"
        lines.append(f"{name}: {net['edges']} edges; {summary['disease']} depends on {near}.")
    return Group(
        Text("\n".join(lines)),
        *(stage_table(part, summary) for part in shown),
        *([] if shown else [Text("No case was kept from training: there is nothing to score.")]),
        Text(f"Written to {folder}" + (f"; pictures: {', '.join(pictures)}" if pictures else "")),
        Text("Not a medical device: these figures hold for this data and this split alone."),
    )


REMARKS = {"validation": " (they chose the epoch: too good)", "seen": " (it was trained on them: too good)"}


def stage_table(part: str, summary: Mapping[str, Any]) -> Table:
    """Lay out the figures of every stage in one part of the cases."""
    n_cases = summary["cases"][part]
    table = Table(
        box=SIMPLE_HEAD,
        title=f"{part}: {n_cases:,} cases, {summary['disease']}{REMARKS.get(part, '')}",
        title_justify="left",
        title_style="",
    )
    table.add_column("stage")
    for heading in COLUMNS.values():
        table.add_column(heading, justify="right")
    for stage, scores in summary["stages"][part].items():
        table.add_row(STAGES.get(stage, stage), *(_figure(scores.get(name)) for name in COLUMNS))
    return table


def _share(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.3f}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
