"""What a training leaves behind once its epochs are done: networks, predictions, figures of every stage."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64

from radreason.artefacts import write_network
from radreason.evaluate.calibration import fit_temperature
from radreason.evaluate.metrics import best_threshold, binary_metrics
from radreason.evaluate.stages import attribute_table, score_stages
from radreason.input_files import write_text
from radreason.prob import BayesNet
from radreason.run_folder import NETWORKS, PREDICTIONS, SUMMARY, write_json
from radreason.train.loop import Loop, rounded
from radreason.train.phase_two import networks_in
from radreason.train.task import Task

MOST_CELLS = 200_000
"""Cells of a table that is still written as BIF, which lists each of them in words."""

Beliefs = Mapping[str, Float32[np.ndarray, "n K"]]


def write_results(loop: Loop, plan: Mapping[str, Any]) -> None:
    """Go back to the chosen epoch and write down what it says of cases that did not train."""
    loop.go_to_best()
    task = loop.task
    parts = {"validation": task.rows.validation, "testing": task.rows.testing}
    beliefs = {part: loop.predict(rows) for part, rows in parts.items() if len(rows)}
    if not loop.leads:
        return
    nets = networks_in(loop.model)
    for name, net in nets.items():
        write_net(loop.folder / NETWORKS[name], net)
    write_text(loop.folder / PREDICTIONS, predictions_csv(task, parts, beliefs))
    calibration = calibrate(task, task.rows.validation, beliefs.get("validation", {}))
    summary = {
        "data": {key: plan["data"][key] for key in ("kind", "source", "fingerprint", "excluded")},
        "repeat": plan["repeat"],
        "fold": plan["fold"],
        "cases": {part: len(ids) for part, ids in plan["cases"].items()},
        "disease": task.disease,
        "epochs": loop.progress.epochs,
        "chosen_epoch": loop.progress.best_epoch,
        "refits": loop.progress.refits,
        "calibration": calibration,
        "stages": {part: _figures(task, parts[part], found, calibration) for part, found in beliefs.items()},
        "attributes": {
            part: attribute_table(task.schema, list(found.values())[-1], task.codes(parts[part]))
            for part, found in beliefs.items()
        },
        "networks": {
            NETWORKS[name]: {
                "edges": len(net.edges),
                "neighbours_of_disease": list(net.markov_blanket(task.disease)),
            }
            for name, net in nets.items()
        },
    }
    write_json(loop.folder / SUMMARY, rounded(summary))


def write_net(folder: Path, net: BayesNet) -> None:
    """Write a network as `radreason network` reads it, and as BIF if its tables can be listed."""
    write_network(folder, net.to_dict())
    if max(table.numel() for table in net.tables.values()) <= MOST_CELLS:
        net.write(folder / "network.bif")


def calibrate(task: Task, rows: Int64[np.ndarray, " n"], beliefs: Beliefs) -> dict[str, dict[str, float]]:
    """Choose for each stage, on validation cases, a temperature and, of two states, a threshold."""
    if not beliefs:
        return {}
    at, truth = task.schema.slices()[task.disease], task.codes(rows)[task.disease]
    is_binary = task.schema[task.disease].size == 2
    return {
        stage: {
            "temperature": fit_temperature(belief[:, at], truth),
            **({"threshold": best_threshold(belief[:, at], truth)} if is_binary else {}),
        }
        for stage, belief in beliefs.items()
    }


def _figures(
    task: Task,
    rows: Int64[np.ndarray, " n"],
    beliefs: Beliefs,
    calibration: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, Any]]:
    """Score the stages; what a threshold decides is called by the one from the validation cases."""
    codes = task.codes(rows)
    at = task.schema.slices()[task.disease]
    figures: dict[str, dict[str, Any]] = {
        stage: dict(scores) for stage, scores in score_stages(task.schema, beliefs, codes).items()
    }
    for stage, chosen in calibration.items():
        if "threshold" in chosen:
            called = binary_metrics(beliefs[stage][:, at], codes[task.disease], chosen["threshold"])
            figures[stage]["at_threshold"] = called
    return figures


def predictions_csv(
    task: Task, parts: Mapping[str, Int64[np.ndarray, " n"]], beliefs: Mapping[str, Beliefs]
) -> str:
    """One row per case: what is true, and what each stage believed of each state."""
    stages = list(next(iter(beliefs.values()), {}))
    states = [(v.name, state) for v in task.schema for state in v.states]
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    columns = [f"{stage} {name}={state}" for stage in stages for name, state in states]
    write(["case", "part", *task.schema.names, *columns])
    for part, found in beliefs.items():
        codes = task.codes(parts[part])
        for place, row in enumerate(parts[part]):
            truth = [v.states[c] if (c := int(codes[v.name][place])) >= 0 else "" for v in task.schema]
            believed = [f"{p:.6g}" for stage in stages for p in found[stage][place].tolist()]
            write([task.dataset.cases[row].id, part, *truth, *believed])
    return text.getvalue()
