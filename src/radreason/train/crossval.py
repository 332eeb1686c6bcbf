"""A cross-validation: every fold of every repeat, and parts of the training sets, as jobs of their own.

    RUN/crossval.json                        what is done; written first
    RUN/repeat-0/fold-3/                     one model, as `radreason train` leaves it
    RUN/repeat-0/predictions.csv             the test cases of all folds of a repeat
    RUN/summary.json                         figures over all models; written last
    RUN/fraction-25/crossval.json, ...       with fractions: a folder like this one for each of them

The folder is the memory: a model that has its summary is done, one that has a checkpoint goes on from
there, and the same call may be made again at any time. Repeats and folds may be added by a later call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from radreason import config
from radreason.data.dataset import Dataset
from radreason.data.splits import Splits
from radreason.errors import InputError
from radreason.input_files import is_draft
from radreason.run_folder import CROSSVAL, SUMMARY, read_crossval, refuse_another, write_crossval
from radreason.train.folder_lock import locked
from radreason.train.jobs import Job, News, Runner
from radreason.train.summary import summarise
from radreason.train.training import Accelerator, Order


@dataclass(frozen=True)
class Crossval:
    """What to train, on what, into which folder. All folds and repeats of the dataset's splits by default."""

    settings: config.Experiment
    dataset: Path
    folder: Path
    repeats: tuple[int, ...] | None = None
    folds: tuple[int, ...] | None = None
    fractions: tuple[float, ...] | None = None
    threads: int = 1
    accelerator: Accelerator = "auto"


def seed_of(seed: int, repeat: int, fold: int) -> int:
    """Give the seed of one model: a number of 32 bits that follows from these three and nothing else.

    The method and the fraction do not enter, so models that are compared share their validation cases,
    their order and whatever else they draw in common.

    >>> seed_of(0, 0, 0), seed_of(0, 0, 1), seed_of(0, 1, 0)
    (4088532484, 3581274545, 3953331965)
    """
    return int(np.random.SeedSequence(seed, spawn_key=(repeat, fold)).generate_state(1)[0])


def part_name(fraction: float) -> str:
    """Name the folder of a fraction.

    >>> part_name(0.25)
    'fraction-25'
    """
    return f"fraction-{round(100 * fraction)}"


@contextmanager
def prepared(crossval: Crossval) -> Iterator[list[Job]]:
    """Write down what is going to be done, give its jobs, and hold the folder meanwhile."""
    dataset = Dataset.open(crossval.dataset)
    splits = Splits.read(dataset)
    parts = _parts(crossval)
    plans = {name: _plan(part, dataset, splits) for name, part in parts.items()}
    _make(crossval.folder)
    with locked(crossval.folder):
        if crossval.fractions is not None:
            of_all: dict[str, Any] = {key: value for key, value in _first(plans).items() if key != "models"}
            of_all["settings"] = crossval.settings.model_dump(mode="json")
            of_all["fractions"] = {name: part.settings.data.fraction for name, part in parts.items()}
            _write(crossval.folder, of_all)
        for name, plan in plans.items():
            _make(parts[name].folder)
            _write(parts[name].folder, plan)
        yield [
            Job(f"{name}/{model}".strip("/"), _order(parts[name], model, about), crossval.threads)
            for name, plan in plans.items()
            for model, about in plan["models"].items()
        ]


def run(jobs: Sequence[Job], runner: Runner) -> Iterator[News]:
    """Run the jobs that are not done; say first which are."""
    done = [job for job in jobs if (job.order.folder / SUMMARY).is_file()]
    yield from (News(job.name, "done") for job in done)
    yield from runner([job for job in jobs if job not in done])


def finish(folder: Path) -> dict[str, Any]:
    """Write the summary of all models that are done, and of every fraction; give it."""
    plan = read_crossval(folder)
    if "fractions" not in plan:
        return summarise(folder)
    return summarise(folder, {name: summarise(folder / name) for name in plan["fractions"]})


def _parts(crossval: Crossval) -> dict[str, Crossval]:
    """Take a cross-validation of fractions apart into one for each."""
    if crossval.fractions is None:
        return {"": crossval}
    data = crossval.settings.data
    if data.fraction != 1:
        raise InputError(
            found=f"data.fraction = {data.fraction:g} and fractions as well",
            expected="one of them",
            hint="leave data.fraction out",
        )
    parts = {}
    for fraction in crossval.fractions:
        of_part = config.Data.model_validate(data.model_dump() | {"fraction": fraction})
        settings = crossval.settings.model_copy(update={"data": of_part})
        folder = crossval.folder / part_name(fraction)
        parts[part_name(fraction)] = replace(crossval, settings=settings, folder=folder, fractions=None)
    return parts


def _plan(crossval: Crossval, dataset: Dataset, splits: Splits) -> dict[str, Any]:
    """Tell all that decides what comes out."""
    if crossval.threads < 1:
        raise InputError(found=f"{crossval.threads} threads for each model", expected="one or more")
    repeats = _chosen("repeat", crossval.repeats, splits.repeats)
    folds = _chosen("fold", crossval.folds, splits.folds)
    seed = crossval.settings.train.seed
    return {
        "settings": crossval.settings.model_dump(mode="json"),
        "data": {"kind": dataset.kind, "source": dataset.source, "fingerprint": dataset.fingerprint},
        "splits": {"repeats": splits.repeats, "folds": splits.folds, "seed": splits.seed},
        "threads": crossval.threads,
        "models": {
            f"repeat-{repeat}/fold-{fold}": {
                "repeat": repeat,
                "fold": fold,
                "seed": seed_of(seed, repeat, fold),
            }
            for repeat in repeats
            for fold in folds
        },
    }


def _chosen(what: str, asked: Sequence[int] | None, there: int) -> list[int]:
    chosen = list(range(there)) if asked is None else list(dict.fromkeys(asked))
    wrong = [number for number in chosen if not 0 <= number < there]
    if wrong or not chosen:
        raise InputError(
            found=f"{what} {', '.join(map(str, wrong)) or 'of no number'}",
            expected=f"numbers from 0 to {there - 1}: the dataset's splits have {there} {what}s",
            hint="radreason data split deals the patients anew",
        )
    return chosen


def _order(crossval: Crossval, model: str, about: dict[str, Any]) -> Order:
    settings = crossval.settings
    seeded = settings.model_copy(update={"train": settings.train.model_copy(update={"seed": about["seed"]})})
    return Order(
        seeded,
        crossval.dataset,
        crossval.folder / model,
        about["repeat"],
        about["fold"],
        resume=True,
        accelerator=crossval.accelerator,
    )


def _make(folder: Path) -> None:
    """Make a folder, or see that it is that of a cross-validation."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_free = all(is_draft(path) for path in folder.iterdir())
    except OSError as error:
        raise InputError(
            found=f"{folder}: cannot be made: {error.strerror or error}", expected="a folder to write to"
        ) from None
    if not is_free and not (folder / CROSSVAL).is_file():
        raise InputError(
            found=f"{folder} holds files that are not a cross-validation's",
            expected="a new folder, an empty one, or a cross-validation to go on with",
            hint="another name after --out",
        )


def _write(folder: Path, plan: dict[str, Any]) -> None:
    """Write the plan; models and fractions that are planned there already stay."""
    before = read_crossval(folder) if (folder / CROSSVAL).is_file() else None
    if before is not None:
        if ("fractions" in before) != ("fractions" in plan):
            was, now = ("with", "without") if "fractions" in before else ("without", "with")
            raise InputError(
                found=f"{folder}: a cross-validation {was} --fraction, now {now}",
                expected="the same plan, to go on with it",
                hint="another folder after --out",
            )
        grows = ("models", "fractions")
        had, has = ({key: item for key, item in p.items() if key not in grows} for p in (before, plan))
        refuse_another(had, has, folder)
        for key in grows:
            if key in plan:
                plan = plan | {key: _in_order(before[key] | plan[key])}
    if before != plan:
        write_crossval(folder, plan)


def _in_order(entries: dict[str, Any]) -> dict[str, Any]:
    """Sort models by repeat and fold, fractions from the whole down."""

    def place(item: tuple[str, Any]) -> tuple[float, ...]:
        about = item[1]
        return (about["repeat"], about["fold"]) if isinstance(about, dict) else (-about,)

    return dict(sorted(entries.items(), key=place))


def _first(plans: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return next(iter(plans.values()))
