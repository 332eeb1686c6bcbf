"""``radreason prepare phantom-cxr``: radiographs of nobody, with findings that are known."""

from __future__ import annotations

import os
import time
from pathlib import Path

from radreason.cli.prepare_options import RunOptions
from radreason.cli.terminal import console, print_json, progress
from radreason.errors import InputError

CAUTION = (
    "phantoms are drawings: none shows a patient, and what is measured on them is no result on radiographs"
)


def phantom_cxr(
    *,
    out: Path,
    size: int = 512,
    limit: int = 1420,
    missing: float = 0.0,
    seed: int = 0,
    steps: Path | None = None,
    folds: int = 10,
    repeats: int = 5,
    workers: int | None = None,
    json: bool = False,
) -> None:
    """Render phantoms of chest radiographs: both lungs side by side, with known findings.

    Findings and tuberculosis are drawn from the network that PadChest's labels imply, at the shares of the
    paper's data; each finding is drawn as docs/phantoms.md states, and tuberculosis shows only through them.
    Needs no download. Started again after an interruption it continues.

    Parameters
    ----------
    out
        Folder to write.
    size
        Edge of an image in pixels; each lung takes half of its width.
    limit
        How many phantoms to render.
    missing
        Share of the findings that are not mentioned, from 0 to below 1: their labels are missing. The disease
        is always mentioned.
    seed
        Another seed gives other chests, other findings and other folds.
    steps
        Draw a picture (.png, .pdf, .svg) of the steps from a radiograph to an image, for three phantoms.
    folds
        Into how many folds the phantoms are dealt, stratified by disease.
    repeats
        How often they are dealt anew.
    workers
        Processes that render; without it one per processor. They change no byte.
    json
        Print what was written as JSON.
    """
    if workers is not None and workers < 1:
        raise InputError(found=f"--workers {workers}", expected="1 or more")
    started = time.perf_counter()
    with progress(silent=json) as bars:
        step = bars.add_task("drawing findings", total=None)
        from radreason.cli.prepare import _deal_out
        from radreason.data.phantom_cxr.prepare import PhantomSettings, prepare_phantoms
        from radreason.report import dataset_text

        dataset = prepare_phantoms(
            out,
            PhantomSettings(size, limit, missing, seed),
            notes=(CAUTION,),
            workers=workers or os.cpu_count() or 1,
            progress=lambda done, total: bars.update(
                step, description="rendering phantoms", completed=done, total=total
            ),
        )
        bars.update(step, description="dealing out folds", total=None)
        dealt = _deal_out(dataset, RunOptions(folds, repeats, seed))
        if steps is not None:
            from radreason.report.radiograph_steps import draw_steps

            draw_steps(dataset, steps)
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
