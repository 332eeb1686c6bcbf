"""``radreason train``: one model from one experiment, on one fold or on all cases."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from radreason.cli.terminal import console, print_json, stderr, waiting
from radreason.errors import InputError
from radreason.report import training_text
from radreason.train.watch import Watcher

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def train(
    experiment: Path,
    /,
    *,
    data: Path,
    out: Path,
    set: list[str] | None = None,
    fold: int | None = None,
    repeat: int = 0,
    all: bool = False,
    resume: bool = False,
    devices: int = 1,
    accelerator: Literal["auto", "cpu", "cuda"] = "auto",
    json: bool = False,
) -> None:
    """Train EXPERIMENT on DATASET: one model, one folder, with every step of it written down.

    docs/training.md lists the settings and what is in the folder. Killed at any moment and started
    again with --resume it goes on from its last epoch, and ends in the same bytes.

    Parameters
    ----------
    experiment
        TOML file, such as experiments/lidc-compact.toml.
    data
        Folder that `prepare` wrote.
    out
        Folder to write, the run.
    set
        Change one setting, as in model.graph.layers=3 or model.graph=false. May be given again.
    fold
        Train on all folds but this one, counted from 0, and test on it.
    repeat
        Which dealing of the patients the fold is of.
    all
        Train on all cases; none is left to test on.
    resume
        Go on with the training that is in --out, if there is one.
    devices
        GPUs, or processes on CPUs, that share every batch.
    accelerator
        auto takes a GPU if there is one.
    json
        Print the summary as JSON, and nothing on the way.
    """
    if (fold is None) != all:
        raise InputError(
            found="neither --fold nor --all" if fold is None else f"--fold {fold} and --all",
            expected="one of them: --fold 0 keeps a fold to test on, --all trains on every case",
        )
    if repeat and all:
        raise InputError(found=f"--repeat {repeat} with --all", expected="--repeat only with --fold")
    from radreason import config

    settings = config.load(experiment, set or [])
    with waiting("getting ready", silent=json):
        from radreason.data.dataset import Dataset
        from radreason.report.run_pictures import draw_run
        from radreason.train.training import Order, leads, train

        Dataset.open(data)
    order = Order(settings, data, out, repeat, fold, resume, devices, accelerator)
    summary = train(order, None if json else Terminal())
    if not leads():
        return
    with waiting("drawing", silent=json):
        pictures = draw_run(out, Dataset.open(data))
    if json:
        print_json(summary | {"folder": str(out), "pictures": [str(path) for path in pictures]})
    else:
        names = [str(path.relative_to(out)) for path in pictures]
        console().print(training_text.outcome(summary, str(out), names), soft_wrap=True)


class Terminal(Watcher):
    """Two lines per epoch, and a bar below them where someone watches; all of it on stderr."""

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._task: TaskID | None = None
        self._epochs = 0
        self._done = 0.0
        self._started = 0.0

    def began(self, plan: Mapping[str, Any], epochs_done: int) -> None:
        """Say what is trained, and put up the bar."""
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._epochs, self._done = plan["settings"]["train"]["epochs"], float(epochs_done)
        self._started, self._first = time.perf_counter(), float(epochs_done)
        screen = stderr()
        screen.print(training_text.began(plan), soft_wrap=True)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=screen,
            transient=True,
            disable=not screen.is_terminal,
        )
        self._bars.start()
        self._task = self._bars.add_task("first batch", total=self._epochs, completed=epochs_done, left="")

    def batch(self, epoch: int, done: int, of: int, loss: float) -> None:
        """Move the bar."""
        self._done = epoch + done / of
        if self._bars is not None and self._task is not None:
            self._bars.update(
                self._task,
                completed=self._done,
                description=f"epoch {epoch + 1}/{self._epochs}, batch {done}/{of}, loss {loss:.3f}",
                left=self._left(),
            )

    def epoch(self, record: Mapping[str, Any], seconds: float) -> None:
        """Print the figures of an epoch."""
        self._say(training_text.epoch_line(record, self._epochs, seconds))

    def note(self, text: str) -> None:
        """Print what a person should know."""
        self._say(f"Note: {text}")

    def ended(self) -> None:
        """Take the bar down."""
        if self._bars is not None:
            self._bars.stop()

    def _say(self, text: str) -> None:
        (self._bars.console if self._bars is not None else stderr()).print(text, soft_wrap=True)

    def _left(self) -> str:
        """How long the rest takes if it goes on as it went so far."""
        here = self._done - self._first
        seconds = (time.perf_counter() - self._started) / max(here, 1e-9) * (self._epochs - self._done)
        if here * self._epochs < 1e-3:
            return ""
        hours, minutes = divmod(round(seconds / 60), 60)
        return (
            f"{hours} h {minutes} min left" if hours else f"{minutes} min left" if minutes else "< 1 min left"
        )
