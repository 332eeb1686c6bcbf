"""One training from order to summary: plan, model, processes, loop, results.

    order -> plan.json -> loop (log.jsonl, last, best) -> bn1, bn2, predictions.csv, summary.json

An order travels to other processes as settings and names of folders. A run folder that is there already
is gone on with only if that was asked for, and only if its plan is the same.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from torch import multiprocessing
from torch.multiprocessing.spawn import ProcessRaisedException
from torch.nn.parallel import DistributedDataParallel

from radreason import build, config
from radreason.data.dataset import Dataset
from radreason.data.splits import Splits
from radreason.errors import InputError
from radreason.nn.evidence import TemperedEvidence
from radreason.nn.hybrid import ImageDiagnoser
from radreason.nn.losses import Targets, class_balance
from radreason.nn.published import TakenOver
from radreason.nn.recompute import recompute
from radreason.nn.sync_norm import synchronise
from radreason.run_folder import (
    SUMMARY,
    patient_key,
    read_summary,
    write_plan,
)
from radreason.train import begun
from radreason.train.classic_run import run_classic
from radreason.train.folder_lock import locked
from radreason.train.intensities import intensities
from radreason.train.loop import Loop
from radreason.train.results import write_results
from radreason.train.step import Step
from radreason.train.task import Task, make_task
from radreason.train.watch import Watcher
from radreason.train.weights_file import digest, start_from_published

Accelerator = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True)
class Order:
    """What to train, on what, into which folder. Without a fold all cases train, and none tests."""

    settings: config.Experiment
    dataset: Path
    folder: Path
    repeat: int = 0
    fold: int | None = None
    resume: bool = False
    devices: int = 1
    accelerator: Accelerator = "auto"
    patience: float = 0.0
    """Seconds to wait for another process that is at work in the folder."""


def train(order: Order, watcher: Watcher | None = None) -> dict[str, Any]:
    """Train one model; give the summary that its folder then holds."""
    watcher = watcher or Watcher()
    fabric = _fabric(order)
    if isinstance(fabric.strategy, DDPStrategy):
        refused = multiprocessing.get_context("spawn").SimpleQueue()
        try:
            fabric.launch(partial(_report, order=order, watcher=watcher, refused=refused))
        except ProcessRaisedException:
            if refused.empty():
                raise
            raise refused.get() from None
    else:
        _take_part(fabric, order, watcher)
    return read_summary(order.folder)


def leads() -> bool:
    """Whether this process is the one of a training that writes and speaks; torchrun starts several."""
    return os.environ.get("RANK", "0") == "0"


def _fabric(order: Order) -> Fabric:
    if order.devices < 1:
        raise InputError(found=f"{order.devices} devices", expected="one or more")
    has_gpu = torch.cuda.is_available()
    accelerator = order.accelerator if order.accelerator != "auto" else "cuda" if has_gpu else "cpu"
    if accelerator == "cuda" and order.devices > torch.cuda.device_count():
        raise InputError(
            found=f"{order.devices} GPU(s) asked for, {torch.cuda.device_count()} there",
            expected="no more than there are",
            hint="--devices and --accelerator cpu choose others",
        )
    by_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    strategy: str | DDPStrategy = "auto"
    if order.devices > 1 or by_torchrun:
        # A part may be without gradient; buffers are networks and statistics, which are kept equal here.
        known = signature(DistributedDataParallel).parameters
        buffers = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        fixed: dict[str, Any] = {"find_unused_parameters": True, buffers: False}
        strategy = DDPStrategy(
            start_method="popen" if by_torchrun else "spawn",
            **fixed,
        )
    precision = order.settings.train.precision
    return Fabric(accelerator=accelerator, devices=order.devices, strategy=strategy, precision=precision)


def _report(fabric: Fabric, order: Order, watcher: Watcher, refused: Any) -> None:
    """Take part in one of several processes; an error in the input goes to the one that started them."""
    try:
        _take_part(fabric, order, watcher)
    except InputError as error:
        refused.put(error)
        raise


def _take_part(fabric: Fabric, order: Order, watcher: Watcher) -> None:
    """Do what each process does."""
    try:
        _train(fabric, order, watcher)
    finally:
        watcher.ended()


def _train(fabric: Fabric, order: Order, watcher: Watcher) -> None:
    settings, dataset = order.settings, Dataset.open(order.dataset)
    splits = Splits.read(dataset) if order.fold is not None else None
    task = make_task(settings, dataset, splits, order.repeat, order.fold)
    plan = _plan(order, task, fabric.world_size)
    if fabric.global_rank != 0:
        _train_in_folder(fabric, order, task, plan, watcher)
        return
    begun.make(order.folder)
    with locked(order.folder, order.patience):
        _train_in_folder(fabric, order, task, plan, watcher)


def _train_in_folder(
    fabric: Fabric, order: Order, task: Task, plan: Mapping[str, Any], watcher: Watcher
) -> None:
    settings = order.settings
    leads = fabric.global_rank == 0
    goes_on = leads and begun.goes_on(order.folder, order.resume, plan, watcher)
    goes_on = fabric.broadcast(goes_on)
    if goes_on and (order.folder / SUMMARY).is_file():
        if fabric.global_rank == 0:
            watcher.note(f"{order.folder} has ended before; nothing is left to do")
        return
    if settings.model.method in config.WITHOUT_WEIGHTS:
        if fabric.world_size > 1:
            raise InputError(
                found=f"{fabric.world_size} processes for the method {settings.model.method!r}",
                expected="one: it has no gradients to share",
            )
        run_classic(settings, task, plan, order.folder, watcher)
        return
    with _deterministic():
        step, started = _step(settings, task, fabric.world_size)
        loop = Loop(settings, task, step, fabric, order.folder, watcher)
        if loop.leads and not goes_on:  # now that all that could be refused was not
            write_plan(order.folder, plan)
        fabric.barrier()
        loop.resume()
        if loop.leads:
            watcher.began(plan, loop.progress.epochs)
            if started and not goes_on:
                watcher.note(f"{settings.model.backbone.weights}: {started}")
            if goes_on and loop.progress.epochs:
                watcher.note(f"going on after {loop.progress.epochs} of {settings.train.epochs} epochs")
            if settings.data.validation and not len(task.rows.validation):
                watcher.note("too few patients to keep some for validation: the last epoch counts")
        loop.run()
        write_results(loop, plan)
        fabric.barrier()


def new_model(settings: config.Experiment, task: Task) -> ImageDiagnoser:
    """Build the network of a task, with Bayesian networks learned from ground truth, weights by the seed."""
    dims = len(task.dataset.core)
    truth = task.records()
    nets = {
        place: None if chosen is False else build.network(chosen, truth)
        for place, chosen in (
            ("first_net", settings.model.first_net),
            ("second_net", settings.model.second_net),
        )
    }
    state = np.random.SeedSequence(settings.train.seed).generate_state(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(state[0]))
        model = build.model(settings.model, task.schema, dims, settings.data.window, **nets)
    shares = _shares(task, settings.loss.balance)
    for evidence in (model.first_evidence, model.second_evidence):
        if isinstance(evidence, TemperedEvidence):
            evidence.set_prior(shares)
    return model


def _step(settings: config.Experiment, task: Task, world_size: int) -> tuple[Step, TakenOver | None]:
    model = new_model(settings, task)
    started = start_from_published(settings.model.backbone, model)
    if world_size > 1:
        synchronise(model)
    if settings.train.recompute:
        recompute(model.backbone)
    loss = build.loss(settings.loss, task.schema, class_balance(task.schema, _training(task)))
    return Step(model, loss), started


def _training(task: Task) -> Targets:
    chosen = torch.from_numpy(task.rows.training)
    return Targets(task.targets.beliefs[chosen], task.targets.known[chosen])


def _shares(task: Task, balanced: bool) -> torch.Tensor:
    """Share of each state among the training targets that are known: the prior that beliefs come to hold.

    A loss that is balanced makes them hold another one, in which each case weighs what it does there.
    """
    targets, shares = _training(task), []
    weights = task.schema.split(class_balance(task.schema, targets))
    for v, beliefs in enumerate(task.schema.split(targets.beliefs)):
        known = beliefs[targets.known[:, v]].double()
        counts = ((known @ weights[v].double())[:, None] * known if balanced else known).sum(dim=0)
        total = counts.sum()
        shares.append(counts / total if total > 0 else torch.full_like(counts, 1 / len(counts)))
    return torch.cat(shares).float()


def _plan(order: Order, task: Task, world_size: int) -> dict[str, Any]:
    """All that decides what comes out, with every default resolved; and, apart from it, what it ran on."""
    cases, dataset = task.dataset.cases, task.dataset
    rows = {"training": task.rows.training, "validation": task.rows.validation, "testing": task.rows.testing}
    weights = order.settings.model.backbone.weights
    return {
        "settings": order.settings.model_dump(mode="json"),
        **({} if weights is None else {"weights": digest(weights)}),
        "schema": task.schema.to_dict(),
        "data": {
            "kind": dataset.kind,
            "source": dataset.source,
            "fingerprint": dataset.fingerprint,
            "settings": dict(dataset.settings),
            "patch": list(dataset.core),
            "margin": dataset.margin,
            "excluded": len(dataset.excluded),
            "notes": list(dataset.notes),
        },
        "intensities": intensities(dataset, rows["training"]),
        "repeat": order.repeat,
        "fold": order.fold,
        "processes": world_size,
        "cases": {part: [cases[row].id for row in chosen] for part, chosen in rows.items()},
        "patients": sorted({patient_key(cases[r].patient) for r in (*rows["training"], *rows["validation"])}),
        "made_with": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "monai", "numpy", "numba", "lightning-fabric")},
            "threads": torch.get_num_threads(),
        },
    }


@contextmanager
def _deterministic() -> Iterator[None]:
    """Choose kernels that give the same bits each time, where there are any; leave torch as it was."""
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    was_benchmark = torch.backends.cudnn.benchmark
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation.*")
            yield
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])
        torch.backends.cudnn.benchmark = was_benchmark
