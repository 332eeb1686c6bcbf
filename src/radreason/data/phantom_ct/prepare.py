"""From readings to a dataset of phantoms: one per nodule, a hundred per shard, any number of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from threadpoolctl import threadpool_limits

from radreason.data.dataset import Dataset
from radreason.data.dataset_writer import DatasetWriter
from radreason.data.phantom_ct.model import Model
from radreason.data.phantom_ct.planted import Planted, plant
from radreason.data.workers import in_workers
from radreason.errors import InputError
from radreason.schema import Schema

KIND: Final = "phantom-ct"
PHANTOM: Final = "phantom"
"""The word that stands in every name, and among the flags of every case."""

SHARD: Final = 100
MAX_SIZE: Final = 512

RENDERING: Final = 1
"""Raised by one when the same seed gives other pictures than before."""


@dataclass(frozen=True)
class PhantomSettings:
    """What a user decides about the phantoms. ``size`` and ``margin`` are in voxels of 1 mm."""

    size: int = 64
    margin: int = 8
    seed: int = 0
    planted: Planted | None = None

    def __post_init__(self) -> None:
        if not 8 <= self.size <= MAX_SIZE:
            raise InputError(found=f"patches of {self.size} voxels", expected=f"8 to {MAX_SIZE}")
        if not 0 <= self.margin <= MAX_SIZE:
            raise InputError(found=f"a margin of {self.margin} voxels", expected=f"0 to {MAX_SIZE}")
        if self.seed < 0:
            raise InputError(found=f"seed {self.seed}", expected="zero or more")

    @property
    def patch_shape(self) -> tuple[int, int, int]:
        """What is rendered: the patch and its margin on every side."""
        whole = self.size + 2 * self.margin
        return whole, whole, whole

    def to_dict(self) -> dict[str, Any]:
        """What a dataset says of itself."""
        return {
            "rendering": RENDERING,
            "size": self.size,
            "margin": self.margin,
            "spacing_mm": 1.0,
            "seed": self.seed,
            "planted": self.planted and self.planted.to_dict(),
        }


def prepare_phantoms(
    models: Sequence[Model],
    schema: Schema,
    folder: Path,
    settings: PhantomSettings,
    *,
    source: str,
    described: dict[str, Any] | None = None,
    excluded: Iterable[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Dataset:
    """Render one phantom for every model into a dataset; what was begun there is continued.

    ``described`` are settings that made the models (the consensus), ``source`` says whose readings.
    The bytes depend on models and settings alone, not on workers or interruptions.
    """
    models = _as_phantoms(models, schema, settings)
    writer = DatasetWriter(
        folder=folder,
        schema=schema,
        settings=settings.to_dict() | (described or {}),
        patch_shape=settings.patch_shape,
        kind=KIND,
        source=f"CT phantoms, not images of patients: invented lung and nodules after {source}",
        margin=settings.margin,
    )
    with writer.open():
        for case, reason in excluded:
            writer.exclude(case, reason)
        shards = [
            (f"{start // SHARD:06d}", models[start : start + SHARD]) for start in range(0, len(models), SHARD)
        ]
        left = [(name, some) for name, some in shards if not writer.done(name)]
        done = len(models) - sum(len(some) for _, some in left)
        progress(done, len(models))
        for count in in_workers(_Rendering(writer, settings.seed), left, workers):
            done += count
            progress(done, len(models))
        return writer.finish(notes)


@dataclass(frozen=True)
class _Rendering:
    """What is done with one shard; it travels to the worker processes."""

    writer: DatasetWriter
    seed: int

    def __call__(self, shard_of: tuple[str, Sequence[Model]]) -> int:
        from radreason.data.phantom_ct.render import generator, render
        from radreason.data.phantom_ct.shape import fit_shape

        name, models = shard_of
        depth, height, width = self.writer.patch_shape
        with threadpool_limits(1), self.writer.shard(name) as shard:  # threads cost more than they give
            for model in models:
                shape = fit_shape(model.outlines, model.pixel_mm, model.slice_mm)
                rng = generator(self.seed, model.case.id)
                patch, mask = render(shape, model.diameter_mm, model.shown, (depth, height, width), rng)
                shard.add(model.case, patch, mask)
        return len(models)


def _as_phantoms(models: Sequence[Model], schema: Schema, settings: PhantomSettings) -> list[Model]:
    """Let every name and flag say that this is a phantom, and plant a disease if asked to."""
    phantoms = [
        replace(
            model,
            case=replace(
                model.case,
                id=f"{PHANTOM}-{model.case.id}",
                patient=f"{PHANTOM}-{model.case.patient}",
                scan=f"{PHANTOM}-{model.case.scan}",
                flags=(*model.case.flags, PHANTOM),
                centre_mm=None,
                padding_share=0.0,
            ),
        )
        for model in models
    ]
    return plant(phantoms, schema, settings.planted, settings.seed) if settings.planted else phantoms
