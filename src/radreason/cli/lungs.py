"""``radreason train-lungs``: the network that finds lungs on radiographs, from pictures and masks."""

from __future__ import annotations

import time
from pathlib import Path

from radreason.cli.terminal import console, print_json, progress
from radreason.errors import InputError


def train_lungs(
    pairs: Path,
    /,
    *,
    out: Path,
    folds: int = 5,
    epochs: int = 30,
    batch: int = 8,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Train the network that `prepare cxr` finds lungs with on PAIRS, a table of radiographs and masks.

    Columns: image, mask, drawing ("clear" without what lies behind the heart, or "behind heart"), and if
    known patient, source, licence, and doubt, why a mask is not to be trusted: it is tested by itself and
    never trained on. Each fold is tested by a network that has not seen it; the weights are then trained on
    all pairs. Started again after an interruption it continues.

    Parameters
    ----------
    pairs
        CSV, TSV or Parquet, a row per radiograph. Paths start from the table's own folder.
    out
        Folder to write: states, figures, weights and their card.
    folds
        Into how many folds patients are dealt; 0 for weights without figures.
    epochs
        How often each picture is seen.
    batch
        Pictures in a batch.
    seed
        Seed of folds, weights and augmentation.
    json
        Print the figures as JSON.
    """
    if folds < 0 or folds == 1:
        raise InputError(found=f"--folds {folds}", expected="2 or more, or 0 for none")
    started = time.perf_counter()
    with progress(silent=json) as bars:
        step = bars.add_task("reading pictures", total=None)
        from radreason.lungs.card import card
        from radreason.lungs.run import train_lungs
        from radreason.lungs.training import Settings

        def watch(stage: str, epoch: int, loss: float) -> None:
            bars.update(step, description=f"{stage}, loss {loss:.3f}", completed=epoch + 1, total=epochs)

        found = train_lungs(pairs, out, Settings(epochs, batch, seed=seed), folds, watch)
    if json:
        print_json(found | {"seconds": round(time.perf_counter() - started, 2)})
    else:
        console().print(card(found), soft_wrap=True)
        console().print(f"Wrote {found['weights']}, {found['bytes'] / 1e6:.1f} MB", soft_wrap=True)
