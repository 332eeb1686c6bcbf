"""The loop: phase 1 over all training cases, the figures of every stage, phase 2, and all of it on disk.

Everything random is a function of the seed and the epoch, so a state on disk is weights, networks,
optimizer and counts; a training that goes on from there ends in the same bytes.

Shape letters: n cases, K states of all variables together.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from lightning_fabric import Fabric
from torch import Tensor, distributed

from radreason import config
from radreason.errors import InputError
from radreason.evaluate.metrics import accuracy, auc
from radreason.evaluate.stages import score_stages
from radreason.nn.hybrid import ImageDiagnoser
from radreason.prob import BayesNet
from radreason.run_folder import BEST, LAST, LOG, TENSORBOARD, TIMES, without_nan
from radreason.train.augment import Augmentation, Flips
from radreason.train.curves import Curves
from radreason.train.images import Images, epoch_batches
from radreason.train.phase_two import learn_anew, networks_in
from radreason.train.refit import is_due
from radreason.train.state import read_state, weights_of, write_state
from radreason.train.step import Step, gradient_norms, make_optimizer, rate_at
from radreason.train.task import Task
from radreason.train.watch import Watcher

DIGITS = 6
"""Of the numbers in the log."""


@dataclass
class Progress:
    """How far a training has come, and what its log weighs by then."""

    epochs: int = 0
    refits: int = 0
    best: float | None = None
    best_epoch: int | None = None
    log_bytes: int = 0


class Loop:
    """One training, in one of the processes that share it; only the first of them writes and speaks."""

    def __init__(
        self,
        settings: config.Experiment,
        task: Task,
        step: Step,
        fabric: Fabric,
        folder: Path,
        watcher: Watcher,
    ) -> None:
        self.settings, self.task, self.fabric = settings, task, fabric
        self.folder, self.watcher = folder, watcher
        self.model: ImageDiagnoser = step.model
        self.optimizer = make_optimizer(settings.train, step.model)
        self.step, self.wrapped_optimizer = fabric.setup(step, self.optimizer)
        core = image_shape(settings, task)
        self.augmentation = augmentation(settings.train)
        self.augmentation.check(task.dataset.patches.shape[1:], core)
        self.images = Images(task.dataset, core, fabric.device, keep=settings.train.keep_images)
        self.truth = task.records()
        self.progress = Progress()
        self._check_batches()

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.fabric.global_rank == 0

    def resume(self) -> bool:
        """Go back to where the last state on disk stands; tell whether there is one."""
        path = self.folder / LAST
        if not path.is_file():
            self._cut_log(0)
            return False
        state = read_state(path, self.model, self.optimizer)
        self.fabric.strategy.precision.load_state_dict(state["precision"])
        self.progress = Progress(**state["progress"])
        self._cut_log(self.progress.log_bytes)
        return True

    def run(self) -> None:
        """Train until all epochs are done."""
        curves = Curves(self.folder / TENSORBOARD, self.progress.epochs) if self.leads else None
        try:
            for epoch in range(self.progress.epochs, self.settings.train.epochs):
                self._epoch(epoch, curves)
        finally:
            if curves is not None:
                curves.close()

    def _epoch(self, epoch: int, curves: Curves | None) -> None:
        """Do one epoch, and write down what came of it."""
        start = time.perf_counter()
        record: dict[str, Any] = {"epoch": epoch, "rate": rate_at(self.settings.train, epoch)}
        beliefs, losses, gradients = self._phase_one(epoch)
        self._check_weights(epoch)
        record |= {"losses": losses, "training": self._quick_scores(beliefs)}
        record["validation"] = self._validation_scores()
        record["gradients"] = gradients
        record["temperatures"] = self._temperatures()
        record["best"] = self._keep_if_best(epoch, record["validation"])
        record["refit"] = self._phase_two(epoch, beliefs)
        self.progress.epochs = epoch + 1
        seconds = time.perf_counter() - start
        if self.leads:
            self._write(rounded(record), seconds)
            self.watcher.epoch(rounded(record), seconds)
        if curves is not None:
            curves.add(epoch, dict(flattened(record)))
        self.fabric.barrier()

    def predict(self, rows: Int64[np.ndarray, " n"]) -> dict[str, Float32[np.ndarray, "n K"]]:
        """Give every stage's beliefs in some cases, as they are, without augmentation."""
        self.step.eval()
        world, rank = self.fabric.world_size, self.fabric.global_rank
        own = np.array_split(np.arange(len(rows)), world)[rank]
        found: dict[str, Tensor] = {}
        with torch.no_grad(), self.fabric.autocast():
            for start in range(0, len(own), _AT_ONCE):
                places = own[start : start + _AT_ONCE]
                images = self._images_in_precision(self.images.plain(rows[places]))
                for stage, belief in self.model(images).stages.items():
                    _put(found, stage, places, belief, len(rows))
        for stage in self.model.stage_names:
            _put(found, stage, own[:0], torch.zeros(0, self.task.schema.width), len(rows))
            found[stage] = self._sum_of_all(found[stage])
        return {stage: found[stage].numpy() for stage in self.model.stage_names}

    def features(self, rows: Int64[np.ndarray, " n"]) -> Float32[Tensor, "n D"]:
        """Give what the backbone makes of some cases, as they are; each process by itself."""
        self.step.eval()
        found = []
        with torch.no_grad(), self.fabric.autocast():
            for start in range(0, len(rows), _AT_ONCE):
                images = self._images_in_precision(self.images.plain(rows[start : start + _AT_ONCE]))
                found.append(self.model.backbone(images).float().cpu())
        return torch.cat(found)

    def go_to_best(self) -> None:
        """Put the model where the chosen epoch left it."""
        self.fabric.barrier()
        read_state(self.folder / BEST, self.model)

    def _phase_one(self, epoch: int) -> tuple[dict[str, Tensor], dict[str, float], dict[str, float]]:
        """Step through all training cases with the networks fixed; keep what each stage believed of each."""
        settings, training = self.settings.train, self.task.rows.training
        world, rank = self.fabric.world_size, self.fabric.global_rank
        state = np.random.SeedSequence(settings.seed, spawn_key=(epoch, rank)).generate_state(1)
        torch.manual_seed(int(state[0]))
        self.step.train()
        passes = passes_of(self.settings)
        batches = [
            (nth, batch)
            for nth in range(epoch * passes, (epoch + 1) * passes)
            for batch in epoch_batches(len(training), settings.batch, settings.seed, nth)
        ]
        beliefs: dict[str, Tensor] = {}
        sums: dict[str, float] = {}
        gradients: dict[str, float] = {}
        for number, (nth, batch) in enumerate(batches):
            for group in self.optimizer.param_groups:
                group["lr"] = rate_at(settings, epoch + number / len(batches))
            own = np.array_split(batch, world)[rank]
            # As many passes in each process, or they would wait for each other.
            parts = np.array_split(own, max(1, min(settings.accumulate, len(batch) // world // 2)))
            loss = 0.0
            for left, part in zip(reversed(range(len(parts))), parts, strict=True):
                with self.fabric.no_backward_sync(self.step, enabled=left > 0):
                    told = self._pass(training[part], nth)
                    # The processes' gradients are averaged: each part weighs what it has of the batch.
                    share = len(part) / len(batch)
                    self.fabric.backward(told["losses"]["total"] * (share * world))
                loss += float(told["losses"]["total"].detach()) * share
                for name, value in told["losses"].items():
                    sums[name] = sums.get(name, 0.0) + float(value.detach()) * len(part)
                for stage, belief in told["stages"].items():
                    _put(beliefs, stage, part, belief, len(training))
            if number + 1 == len(batches):
                gradients = gradient_norms(self.model, self._scale())
            if settings.clip is not None:
                self.fabric.clip_gradients(self.step, self.wrapped_optimizer, max_norm=settings.clip)
            self.wrapped_optimizer.step()
            self.wrapped_optimizer.zero_grad()
            if self.leads:
                self.watcher.batch(epoch, number + 1, len(batches), loss * world)
        beliefs = {stage: self._sum_of_all(belief) for stage, belief in beliefs.items()}
        total = self._sum_of_all(torch.tensor(list(sums.values()), dtype=torch.float64))
        total = total / (len(training) * passes)
        return beliefs, dict(zip(sums, total.tolist(), strict=True)), gradients

    def _pass(self, rows: Int64[np.ndarray, " n"], epoch: int) -> dict[str, dict[str, Tensor]]:
        images = self.images.training(rows, self.augmentation, self.settings.train.seed, epoch)
        targets, device = self.task.targets, self.fabric.device
        chosen = torch.from_numpy(rows)
        given = images.to(device), targets.beliefs[chosen].to(device), targets.known[chosen].to(device)
        try:
            told: dict[str, dict[str, Tensor]] = self.step(*given)
        except InputError as error:  # networks take no evidence that is no number
            raise self._not_finite(rows, epoch, error.found) from None
        if not math.isfinite(float(told["losses"]["total"].detach())):
            bad = [name for name, loss in told["losses"].items() if not bool(loss.isfinite())]
            raise self._not_finite(rows, epoch, ", ".join(name for name in bad if name != "total"))
        return told

    def _not_finite(self, rows: Int64[np.ndarray, " n"], epoch: int, what: str) -> InputError:
        ids = ", ".join(self.task.dataset.cases[row].id for row in rows)
        return InputError(
            found=f"epoch {epoch}: the loss ({what}) of the cases {ids} is no finite number",
            expected="numbers",
            hint="a lower train.rate, train.clip=1, train.precision=32-true; or look at these images",
        )

    def _check_weights(self, epoch: int) -> None:
        """Refuse weights that the last step of an epoch left no numbers, before they are written down."""
        wrong = [name for name, tensor in weights_of(self.model).items() if not bool(tensor.isfinite().all())]
        if wrong:
            raise InputError(
                found=f"epoch {epoch}: {len(wrong)} weights, such as {wrong[0]}, are no finite numbers",
                expected="numbers",
                hint="a lower train.rate, train.clip=1, train.precision=32-true",
            )

    def _quick_scores(self, beliefs: Mapping[str, Float[Tensor, "n K"]]) -> dict[str, Any]:
        """Accuracy and AUC of the disease in every stage, as the training cases were seen in this epoch."""
        truth = self.task.codes(self.task.rows.training)[self.task.disease]
        at = self.task.schema.slices()[self.task.disease]
        scores = {}
        for stage, belief in beliefs.items():
            p = belief[:, at].numpy()
            scores[stage] = {"accuracy": accuracy(p, truth), "auc": auc(p, truth)}
        return scores

    def _validation_scores(self) -> dict[str, Any]:
        rows = self.task.rows.validation
        if not len(rows):
            return {}
        return score_stages(self.task.schema, self.predict(rows), self.task.codes(rows))

    def _temperatures(self) -> dict[str, float]:
        parts = {name: getattr(self.model, name) for name in ("first_evidence", "second_evidence")}
        return {name: float(part.temperature.detach()) for name, part in parts.items() if part is not None}

    def _keep_if_best(self, epoch: int, validation: Mapping[str, Mapping[str, float]]) -> bool:
        """Write the weights down if no epoch before was better, by the last stage on validation.

        Until the first epoch that may be chosen, each is better than the ones before.
        """
        settings = self.settings.train
        choose, merit = settings.choose, -math.inf
        first = math.floor(settings.choose_from * settings.epochs + 1e-9)  # 0.29 of 100 is 29, and not 28
        if choose != "last" and validation:
            score = list(validation.values())[-1][choose]
            merit = -score if choose == "log_loss" else score
        is_best = (
            epoch <= first
            or self.progress.best is None
            or choose == "last"
            or not validation
            or merit > self.progress.best
        )
        if is_best:
            self.progress.best = merit if math.isfinite(merit) else None
            self.progress.best_epoch = epoch
            if self.leads:
                write_state(self.folder / BEST, self.model, None, {"epoch": epoch})
        return is_best

    def _phase_two(self, epoch: int, beliefs: Mapping[str, Float[Tensor, "n K"]]) -> dict[str, Any] | None:
        """Learn the networks anew if it is time; one process does, and tells the others."""
        settings = self.settings.refit
        if not networks_in(self.model) or not is_due(
            settings, epoch, self.progress.refits, self.settings.train.epochs
        ):
            return None
        self.progress.refits += 1
        state = np.random.SeedSequence(self.settings.train.seed, spawn_key=(epoch, 1 << 20))
        seed = int(state.generate_state(1)[0])
        changes: dict[str, Any] | None = None
        if self.leads:
            on_device = {stage: belief.to(self.fabric.device) for stage, belief in beliefs.items()}
            changes = learn_anew(self.model, settings, self.task, self.truth, on_device, seed)
        if self.fabric.world_size > 1:
            told = {name: net.to_dict() for name, net in networks_in(self.model).items()}
            told, changes = self.fabric.broadcast((told, changes))
            if not self.leads:
                for name, net in networks_in(self.model).items():
                    net.become(BayesNet.from_dict(told[name]))
        for name, change in (changes or {}).items():
            if change["disease_degree"] == 0 and self.leads:
                self.watcher.note(
                    f"epoch {epoch}: {name} was learned anew and leaves {self.task.disease} without "
                    "neighbours: it tells the disease nothing. More ground truth in it "
                    "(refit.truth_share), a pseudocount or disease = 'logistic' keep it joined."
                )
        return changes

    def _write(self, record: Mapping[str, Any], seconds: float) -> None:
        """Log line first, state second: a state that is on disk knows a log that is, too."""
        line = json.dumps(without_nan(record), allow_nan=False) + "\n"
        self._append(LOG, line)
        self.progress.log_bytes += len(line.encode())
        if torch.cuda.is_available() and self.fabric.device.type == "cuda":
            memory = {"peak_mib": torch.cuda.max_memory_allocated() >> 20}
        else:
            memory = {}
        self._append(
            TIMES, json.dumps({"epoch": record["epoch"], "seconds": round(seconds, 3)} | memory) + "\n"
        )
        precision = self.fabric.strategy.precision.state_dict()
        write_state(
            self.folder / LAST,
            self.model,
            self.optimizer,
            {"progress": asdict(self.progress), "precision": precision},
        )

    def _append(self, name: str, line: str) -> None:
        path = self.folder / name
        try:
            with path.open("a", encoding="utf-8", newline="\n") as stream:
                stream.write(line)
        except OSError as error:
            raise InputError(
                found=f"{path}: cannot be written: {error.strerror or error}",
                expected="a disk with room",
                hint="make room, then go on with --resume",
            ) from None

    def _cut_log(self, length: int) -> None:
        """Forget lines that were written after the last state, and half a line of times."""
        path, times = self.folder / LOG, self.folder / TIMES
        if self.leads and times.is_file():
            os.truncate(times, times.read_bytes().rfind(b"\n") + 1)
        if self.leads and path.is_file():
            if path.stat().st_size < length:
                raise InputError(
                    found=f"{path}: shorter than {LAST} remembers",
                    expected="the log as it was written",
                    hint="train again into a new folder",
                )
            os.truncate(path, length)

    def _check_batches(self) -> None:
        """Every process needs two cases of every batch: batch norm takes its statistics from them."""
        n, train = len(self.task.rows.training), self.settings.train
        smallest = min(len(batch) for batch in epoch_batches(n, train.batch, train.seed, 0))
        if smallest < 2 * self.fabric.world_size:
            raise InputError(
                found=f"batches of {smallest} cases for {self.fabric.world_size} processes",
                expected="two cases or more for each",
                hint=f"train.batch={max(train.batch, 2 * self.fabric.world_size + 1)}, or fewer devices",
            )

    def _scale(self) -> float:
        """By how much half precision has enlarged the gradients, lest they vanish."""
        scaler = getattr(self.fabric.strategy.precision, "scaler", None)
        return float(scaler.get_scale()) if scaler is not None else 1.0

    def _images_in_precision(self, images: Tensor) -> Tensor:
        converted: Tensor = self.fabric.strategy.precision.convert_input(images.to(self.fabric.device))
        return converted

    def _sum_of_all(self, own: Tensor) -> Tensor:
        """Add up what the processes have, each in its own rows."""
        if self.fabric.world_size > 1:
            own = own.to(self.fabric.device)
            distributed.all_reduce(own)
        return own.cpu()


_AT_ONCE = 32


def passes_of(settings: config.Experiment) -> int:
    """How often an epoch shows every training case.

    >>> passes_of(config.Experiment(data={"fraction": 0.25}, train={"equal_steps": True}))
    4
    """
    return round(1 / settings.data.fraction) if settings.train.equal_steps else 1


def image_shape(settings: config.Experiment, task: Task) -> tuple[int, ...]:
    """Shape of the images that the network sees; the margin of a patch is there for augmentation alone."""
    core, size = task.dataset.core, settings.data.image_size
    if size is not None and any(size > n for n in core):
        raise InputError(
            found=f"data.image_size = {size} and images of {' x '.join(map(str, core))}",
            expected="no more than the images have",
            hint=f"data.image_size={min(core)}, or a dataset prepared with a larger --size",
        )
    return core if size is None else (size,) * len(core)


def _put(
    found: dict[str, Tensor], stage: str, places: Int64[np.ndarray, " m"], belief: Tensor, n: int
) -> None:
    if stage not in found:
        found[stage] = torch.zeros(n, belief.shape[1], dtype=torch.float32)  # also where 64 bits are usual
    found[stage][torch.from_numpy(places)] = belief.detach().float().cpu()


def augmentation(settings: config.Train) -> Augmentation:
    """Build what the settings say; false is nothing at all."""
    if settings.augment is False:
        return Augmentation()
    chosen = settings.augment
    flips: Flips = "left-right" if chosen.flips == "left-right" else "all" if chosen.flips else "none"
    return Augmentation(flips, chosen.turns, chosen.degrees, chosen.shift, chosen.scale)


def rounded(value: Any) -> Any:
    """Shorten the numbers of a record to six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: rounded(item) for name, item in value.items()}
    return value


def flattened(value: Any, name: str = "") -> list[tuple[str, float]]:
    """List the finite numbers of a record by their path.

    >>> flattened({"losses": {"total": 0.5}, "best": True})
    [('losses/total', 0.5)]
    """
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in flattened(item, f"{name}/{key}".strip("/"))]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return [(name, float(value))] if is_number and name != "epoch" else []
