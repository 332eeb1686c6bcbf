"""Many phantoms as a dataset: a hundred per shard, any number of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from threadpoolctl import threadpool_limits

from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.data.dataset_writer import DatasetWriter
from radreason.data.phantom_cxr.findings import SHARES, disease_given, draw_findings, states
from radreason.data.workers import in_workers
from radreason.errors import InputError
from radreason.schema import TB

KIND: Final = "phantom-cxr"
PHANTOM: Final = "phantom"
"""The word that stands in every name, and among the flags of every case."""

SHARD: Final = 100
SIZES: Final = (16, 2048)

RENDERING: Final = 1
"""Raised by one when the same seed gives other pictures than before."""


@dataclass(frozen=True)
class PhantomSettings:
    """What a user decides: edge of the images in pixels, how many, the share of findings not mentioned."""

    size: int = 512
    cases: int = 1_420
    missing: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not SIZES[0] <= self.size <= SIZES[1] or self.size % 2:
            raise InputError(
                found=f"images of {self.size} pixels",
                expected=f"{SIZES[0]} to {SIZES[1]}, an even number: two lungs stand side by side",
            )
        if self.cases < 1:
            raise InputError(found=f"{self.cases} phantoms", expected="1 or more")
        if not 0 <= self.missing < 1:
            raise InputError(
                found=f"a share of {self.missing:g} of findings not mentioned", expected="0 or more, below 1"
            )
        if self.seed < 0:
            raise InputError(found=f"seed {self.seed}", expected="zero or more")

    def to_dict(self) -> dict[str, Any]:
        """What a dataset says of itself."""
        return {"rendering": RENDERING, **asdict(self), "shares": dict(SHARES)}


@dataclass(frozen=True)
class Drawn:
    """A case, and the findings that its phantom shows, mentioned or not."""

    case: Case
    shown: tuple[str, ...]


def prepare_phantoms(
    folder: Path,
    settings: PhantomSettings,
    *,
    notes: Sequence[str] = (),
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Dataset:
    """Render phantoms into a dataset; what was begun there is continued.

    The bytes depend on the settings alone, not on workers or interruptions.
    """
    drawn = draw_cases(settings)
    writer = DatasetWriter(
        folder=folder,
        schema=TB,
        settings=settings.to_dict(),
        patch_shape=(settings.size, settings.size),
        kind=KIND,
        source="phantoms of chest radiographs, not images of patients; findings after PadChest's labels",
    )
    with writer.open():
        shards = [
            (f"{start // SHARD:06d}", drawn[start : start + SHARD]) for start in range(0, len(drawn), SHARD)
        ]
        left = [(name, some) for name, some in shards if not writer.done(name)]
        done = len(drawn) - sum(len(some) for _, some in left)
        progress(done, len(drawn))
        for count in in_workers(_Rendering(writer, settings), left, workers):
            done += count
            progress(done, len(drawn))
        return writer.finish(notes)


def draw_cases(settings: PhantomSettings) -> list[Drawn]:
    """Draw who has what, and what is not mentioned of it; the disease always is.

    Every finding is left out alike, present or absent: it is missing at random.
    """
    rng = np.random.default_rng([settings.seed, 0])
    found = draw_findings(settings.cases, rng)
    told = rng.random(found.shape) >= settings.missing
    told[:, TB.position(TB.disease or "")] = True
    best = dict(zip(map(tuple, states().tolist()), disease_given().tolist(), strict=True))
    cases = []
    for number, (row, said) in enumerate(zip(found.tolist(), told.tolist(), strict=True)):
        labels = {
            name: (float(state == 0), float(state == 1)) if mentioned else None
            for name, state, mentioned in zip(TB.names, row, said, strict=True)
        }
        shown = tuple(name for name, state in zip(TB.names, row, strict=True) if state)
        extra = {"disease_given_findings": best[tuple(row)], "shown": " ".join(shown)}
        name = f"{PHANTOM}-{number:06d}"
        cases.append(Drawn(Case(name, name, name, labels, flags=(PHANTOM,), extra=extra), shown))
    return cases


@dataclass(frozen=True)
class _Rendering:
    """What is done with one shard; it travels to the worker processes."""

    writer: DatasetWriter
    settings: PhantomSettings

    def __call__(self, shard_of: tuple[str, Sequence[Drawn]]) -> int:
        from radreason.data.phantom_cxr.render import Phantom, generator

        name, drawn = shard_of
        with threadpool_limits(1), self.writer.shard(name) as shard:
            for one in drawn:
                phantom = Phantom.draw(one.shown, generator(self.settings.seed, one.case.id))
                shard.add(one.case, *phantom.side_by_side(self.settings.size))
        return len(drawn)
