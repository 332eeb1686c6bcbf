"""A training without epochs: a classic method or an oracle learns at once, and leaves the same folder.

    plan.json -> what is seen of each case -> predictions.csv, summary.json

Shape letters: n cases, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64

from radreason import build, config
from radreason.nn.window import Window
from radreason.prob import BayesNet
from radreason.run_folder import write_plan
from radreason.train.images import Images
from radreason.train.loop import Progress, image_shape
from radreason.train.results import write_outcome
from radreason.train.task import Task
from radreason.train.watch import Watcher

Rows = Int64[np.ndarray, " n"]
Stages = dict[str, Float64[np.ndarray, "n K"]]


def run_classic(
    settings: config.Experiment, task: Task, plan: Mapping[str, Any], folder: Path, watcher: Watcher
) -> None:
    """Learn from the training cases, and write down what that says of the others."""
    shape = image_shape(settings, task)
    write_plan(folder, plan)
    watcher.began(plan, 0)
    parts = {"validation": task.rows.validation, "testing": task.rows.testing}
    asked = {part: rows for part, rows in parts.items() if len(rows)}
    nets: dict[str, BayesNet] = {}
    match settings.model.method:
        case "oracle-forest":
            beliefs = _forest(settings, task, asked)
        case "oracle-network":
            beliefs, nets["first_net"] = _network(settings, task, asked)
        case _:
            beliefs = _of_images(settings, task, asked, shape, watcher)
    told = {
        part: {stage: belief.astype(np.float32) for stage, belief in stages.items()}
        for part, stages in beliefs.items()
    }
    write_outcome(folder, task, plan, told, nets, Progress())


def _of_images(
    settings: config.Experiment,
    task: Task,
    asked: Mapping[str, Rows],
    shape: tuple[int, ...],
    watcher: Watcher,
) -> dict[str, Stages]:
    method = build.classic(settings.model, task.schema, settings.train.seed)
    images, window = Images(task.dataset, shape), Window(*settings.data.window)
    total, done = sum(map(len, (task.rows.training, *asked.values()))), 0

    def seen(rows: Rows) -> list[np.ndarray]:
        nonlocal done
        found = []
        for row in rows:
            image = window(images.plain([int(row)]))[0, 0].numpy()
            found.append(method.describe(image))
            done += 1
            watcher.batch(0, done, total, float("nan"))
        return found

    training = task.rows.training
    patients = [task.dataset.cases[row].patient for row in training]
    method.fit(seen(training), task.codes(training), patients)
    return {part: method.beliefs(seen(rows)) for part, rows in asked.items()}


def _forest(settings: config.Experiment, task: Task, asked: Mapping[str, Rows]) -> dict[str, Stages]:
    training = task.rows.training
    oracle = build.forest(settings.model, task.schema, settings.train.seed)
    oracle.fit(_grades(task, training), task.codes(training)[task.disease])
    return {part: _stages(task, rows, oracle.beliefs(_grades(task, rows))) for part, rows in asked.items()}


def _network(
    settings: config.Experiment, task: Task, asked: Mapping[str, Rows]
) -> tuple[dict[str, Stages], BayesNet]:
    assert settings.model.first_net is not False  # settings without it were refused
    net = build.network(settings.model.first_net, task.records())
    at = task.schema.slices()[task.disease]
    beliefs = {}
    for part, rows in asked.items():
        told = torch.from_numpy(_stages(task, rows, None)["evidence"])
        beliefs[part] = _stages(task, rows, net(told)[:, at].numpy())
    return beliefs, net


def _grades(task: Task, rows: Rows) -> dict[str, Float64[np.ndarray, "n _"]]:
    """Give what readers say of the attributes of some cases."""
    return {name: task.labels[name][rows] for name in task.schema.names if name != task.disease}


def _stages(task: Task, rows: Rows, disease: Float64[np.ndarray, "n k"] | None) -> Stages:
    """Lay out the grades, flat where nobody gave one, with a disease that is unknown or concluded."""
    flat = {v.name: np.full((len(rows), v.size), 1 / v.size) for v in task.schema}
    known = {n: np.where(np.isnan(g), flat[n], g) for n, g in _grades(task, rows).items()}
    stages = {"evidence": flat | known}
    if disease is not None:
        stages["fusion"] = flat | known | {task.disease: disease}
    return {
        stage: np.concatenate([columns[name] for name in task.schema.names], axis=1)
        for stage, columns in stages.items()
    }
