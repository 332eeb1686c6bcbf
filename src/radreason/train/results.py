"""What a training leaves behind once its epochs are done: networks, predictions, figures of every stage."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int64

from radreason.artefacts import write_network
from radreason.evaluate.calibration import fit_temperature
from radreason.evaluate.metrics import best_threshold
from radreason.evaluate.predictions import Predictions, predictions_csv
from radreason.evaluate.stages import attribute_table, stage_figures
from radreason.explain.seen import Seen
from radreason.explain.taught import Taught, teach, write_taught
from radreason.input_files import write_text
from radreason.prob import BayesNet
from radreason.run_folder import BEST, NETWORKS, PREDICTIONS, SUMMARY, write_json
from radreason.train.loop import Loop, Progress, rounded
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
    write_taught(loop.folder, _taught(loop))
    write_outcome(loop.folder, task, plan, beliefs, networks_in(loop.model), loop.progress)


def _taught(loop: Loop) -> Taught:
    """Collect what later questions need of the training cases, from the model as it is asked: on the CPU."""
    rows, model = loop.task.rows, deepcopy(loop.model).cpu().float().eval()
    width = loop.features(rows.training[:1]).shape[1]
    training, validation = (
        (Seen(model, loop.features(chosen) if len(chosen) else torch.zeros(0, width)), chosen)
        for chosen in (rows.training, rows.validation)
    )
    return teach(training, validation, loop.task.dataset, loop.folder / BEST)


def write_outcome(
    folder: Path,
    task: Task,
    plan: Mapping[str, Any],
    beliefs: Mapping[str, Beliefs],
    nets: Mapping[str, BayesNet],
    progress: Progress,
) -> None:
    """Write networks, predictions and, last of all, figures; ``beliefs`` are of validation and test cases."""
    parts = {"validation": task.rows.validation, "testing": task.rows.testing}
    for name, net in nets.items():
        write_net(folder / NETWORKS[name], net)
    write_text(folder / PREDICTIONS, predictions_csv(predictions_of(task, parts, beliefs)))
    calibration = calibrate(task, task.rows.validation, beliefs.get("validation", {}))
    summary = {
        "data": {key: plan["data"][key] for key in ("kind", "source", "fingerprint", "excluded")},
        "repeat": plan["repeat"],
        "fold": plan["fold"],
        "cases": {part: len(ids) for part, ids in plan["cases"].items()},
        "disease": task.disease,
        "epochs": progress.epochs,
        "chosen_epoch": progress.best_epoch,
        "refits": progress.refits,
        "calibration": calibration,
        "stages": {
            part: stage_figures(task.schema, found, task.codes(parts[part]), thresholds(calibration))
            for part, found in beliefs.items()
        },
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
    write_json(folder / SUMMARY, rounded(summary))


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


def thresholds(calibration: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Give the threshold of each stage that has one."""
    return {stage: chosen["threshold"] for stage, chosen in calibration.items() if "threshold" in chosen}


def predictions_of(
    task: Task, parts: Mapping[str, Int64[np.ndarray, " _"]], beliefs: Mapping[str, Beliefs]
) -> Predictions:
    """Lay out the cases of all parts with what is true, and what each stage believed of each state."""
    rows = {part: parts[part] for part in beliefs}
    codes = {part: task.codes(chosen) for part, chosen in rows.items()}
    return Predictions(
        task.schema,
        tuple(task.dataset.cases[row].id for chosen in rows.values() for row in chosen),
        tuple(part for part, chosen in rows.items() for _ in chosen),
        {
            n: np.concatenate([[], *(c[n] for c in codes.values())]).astype(np.int64)
            for n in task.schema.names
        },
        {
            stage: np.concatenate([found[stage] for found in beliefs.values()]).astype(np.float64)
            for stage in next(iter(beliefs.values()), {})
        },
    )
