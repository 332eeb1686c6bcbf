"""From scans or radiographs to a dataset: each is read once, its lesions are cut, and it is let go.

Scans are shared out to processes. Each holds one scan at a time, whatever there is to do, and writes
what it cut as a shard that is there whole or not at all. So a run that was killed is continued by
starting it again, and ends in the same bytes. A scan that cannot be read costs its own lesions; the
end says which and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int16, UInt8
from threadpoolctl import threadpool_limits

from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.data.dataset_writer import DatasetWriter, Shard
from radreason.data.lesion import Lesion
from radreason.data.scan_files import ScanFiles
from radreason.data.workers import in_workers
from radreason.errors import InputError
from radreason.schema import Schema


@runtime_checkable
class Lesions(Protocol):
    """The lesions of a scan, some of them known only once it is read."""

    @property
    def names(self) -> Sequence[str]:
        """What cannot be had if the scan cannot be read."""
        ...

    def of(self, image: Any) -> tuple[Sequence[Lesion], Sequence[tuple[str, str]]]:
        """Give the lesions to cut, and what is left out, with the reason."""
        ...


@runtime_checkable
class Cutter(Protocol):
    """How patches are cut from an image that was read; it travels to the worker processes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a patch with its margin."""
        ...

    @property
    def margin(self) -> int:
        """Voxels around a patch on every side."""
        ...

    def cut(
        self, lesion: Lesion, image: Any
    ) -> tuple[Case, Int16[np.ndarray, "*patch"], UInt8[np.ndarray, "*patch"] | None, tuple[str, ...]]:
        """Give the case, complete with what only the image tells, its patch and mask, and what to note."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record of settings."""
        ...


@dataclass(frozen=True)
class Listed:
    """Lesions that were known beforehand."""

    lesions: tuple[Lesion, ...]

    @property
    def names(self) -> Sequence[str]:
        """The names of the cases."""
        return [lesion.case.id for lesion in self.lesions]

    def of(self, image: Any) -> tuple[Sequence[Lesion], Sequence[tuple[str, str]]]:
        """Give all of them."""
        return self.lesions, ()


@dataclass(frozen=True)
class Job:
    """A scan and what to cut from it; its name is that of its shard."""

    name: str
    scan: ScanFiles
    lesions: Lesions


@dataclass(frozen=True)
class Plan:
    """All that is to be done, and what the dataset will say of where it came from.

    ``excluded`` were left out by settings, ``refused`` because something is wrong with them.
    """

    kind: str
    source: str
    schema: Schema
    settings: Mapping[str, Any]
    jobs: tuple[Job, ...]
    excluded: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a run: how many cases, what was left out and why, and the dataset if one was written.

    ``excluded`` names files where that helps; what the dataset keeps of it does not, for a file in a
    hospital may be named after the patient.
    """

    cases: int
    excluded: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    dataset: Dataset | None = None


def prepare(
    plan: Plan,
    cut: Cutter,
    out: Path | None,
    *,
    workers: int = 1,
    strict: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Cut all lesions of all scans into a dataset; without a folder only try whether it would do.

    With ``strict`` the first scan or lesion that cannot be had stops everything.
    """
    if strict and plan.refused:
        case_id, reason = plan.refused[0]
        raise InputError(found=f"{case_id}: {reason}", expected="nothing amiss, as --strict asks")
    if out is None:
        return _try(plan, cut, workers, strict, progress)
    writer = DatasetWriter(
        folder=out,
        schema=plan.schema,
        settings={**plan.settings, "cut": cut.to_dict()},
        patch_shape=cut.shape,
        kind=plan.kind,
        source=plan.source,
        margin=cut.margin,
    )
    told: dict[tuple[str, str], str] = {}
    with writer.open():
        todo = [] if writer.finished else [job for job in plan.jobs if not writer.done(job.name)]
        for case_id, reason in (*plan.excluded, *plan.refused):
            writer.exclude(case_id, reason)
        done = len(plan.jobs) - len(todo)
        for result in _counted(todo, _Work(writer, cut, strict), done, workers, progress):
            for left_out in result.excluded:
                told[left_out.name, left_out.anonymous] = left_out.reason
            for left_out in result.excluded if result.failed else ():
                writer.exclude(left_out.name, left_out.anonymous)
        dataset = writer.finish(plan.notes, [job.name for job in plan.jobs])
    excluded = [(entry["case"], entry["reason"]) for entry in dataset.excluded]
    return Outcome(
        len(dataset),
        tuple((case_id, told.get((case_id, reason), reason)) for case_id, reason in excluded),
        dataset.notes,
        dataset,
    )


def _try(
    plan: Plan, cut: Cutter, workers: int, strict: bool, progress: Callable[[int, int], None]
) -> Outcome:
    results = list(_counted(plan.jobs, _Work(None, cut, strict), 0, workers, progress))
    excluded = {(left_out.name, left_out.reason) for result in results for left_out in result.excluded}
    return Outcome(
        sum(result.cases for result in results),
        tuple(sorted({*plan.excluded, *plan.refused, *excluded})),
        (*plan.notes, *sorted(note for result in results for note in result.notes)),
    )


def _counted(
    jobs: Sequence[Job],
    work: _Work,
    done: int,
    workers: int,
    progress: Callable[[int, int], None],
) -> Iterator[_Result]:
    total = done + len(jobs)
    progress(done, total)
    for result in in_workers(work, jobs, workers):
        done += 1
        progress(done, total)
        yield result


@dataclass(frozen=True)
class _LeftOut:
    name: str
    reason: str
    anonymous: str


@dataclass
class _Result:
    """What became of one scan; one that ``failed`` has no shard to hold its exclusions."""

    cases: int = 0
    excluded: list[_LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: bool = False


@dataclass(frozen=True)
class _Work:
    """What is done with one scan; it travels to the worker processes."""

    writer: DatasetWriter | None
    cut: Cutter
    strict: bool

    def __call__(self, job: Job) -> _Result:
        try:
            with threadpool_limits(1):  # every worker its own thread, and the same roundings everywhere
                image = job.scan.read()
                lesions, excluded = job.lesions.of(image)
        except InputError as error:
            if self.strict:
                raise InputError(f"{job.name}: {error.found}", error.expected, error.hint) from None
            hidden = job.scan.anonymous(error.found)
            return _Result(
                excluded=[_LeftOut(name, error.found, hidden) for name in job.lesions.names], failed=True
            )
        result = _Result(
            excluded=[_LeftOut(name, reason, reason) for name, reason in excluded],
            notes=[f"{job.name}: {job.scan.anonymous(note)}" for note in image.notes],
        )
        with nullcontext() if self.writer is None else self.writer.shard(job.name) as shard:
            for lesion in lesions:
                with threadpool_limits(1):
                    self._cut(lesion, image, result, shard)
            if shard is not None:
                for left_out in result.excluded:
                    shard.exclude(left_out.name, left_out.anonymous)
                for note in result.notes:
                    shard.note(note)
        return result

    def _cut(self, lesion: Lesion, image: Any, result: _Result, shard: Shard | None) -> None:
        name = lesion.case.id
        try:
            case, patch, mask, notes = self.cut.cut(lesion, image)
        except InputError as error:
            if self.strict:
                raise InputError(f"{name}: {error.found}", error.expected, error.hint) from None
            result.excluded.append(_LeftOut(name, error.found, lesion.anonymous(error.found)))
            return
        result.cases += 1
        result.notes += [f"{name}: {note}" for note in notes]
        if shard is not None:
            shard.add(case, patch, mask)
