"""One training of the network for lungs, from a table of pairs to weights with their card.

    OUT/fold-0 ...      state of a fold (last.safetensors) and what it found (figures.json)
    OUT/final           state of the training on all pairs
    OUT/summary.json    figures over all folds, by source
    OUT/lungs.safetensors, OUT/lungs.md   weights for `prepare cxr --weights`, and their card

What has been done is not done again: the same command goes on with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from radreason.errors import InputError
from radreason.input_files import read_text, write_text
from radreason.lungs.card import card
from radreason.lungs.drawing import BEHIND_HEART, SIDE
from radreason.lungs.figures import summary
from radreason.lungs.finder import write_net
from radreason.lungs.pairs import Pair, counted, read_pairs
from radreason.lungs.training import FIGURES, Settings, deal, examined, train_net

WEIGHTS, CARD, SUMMARY = "lungs.safetensors", "lungs.md", "summary.json"

DOUBTED, TRUSTED = "doubted masks", "all but these"

MAX_BYTES = 64 << 20

Progress = Callable[[str, int, float], None]


def train_lungs(
    table: Path,
    out: Path,
    settings: Settings,
    folds: int = 5,
    progress: Progress = lambda stage, epoch, loss: None,
) -> dict[str, Any]:
    """Train on all folds but one in turn, and then on all; without folds only the last."""
    _refuse_other_folder(out)
    pairs = read_pairs(table)
    if all(pair.doubt for pair in pairs):
        raise InputError(found=f"{table}: every mask is doubted", expected="some to train on")
    dealt = deal(pairs, folds, settings.seed) if folds else []
    out.mkdir(parents=True, exist_ok=True)
    identity = identity_of(pairs)
    rows: list[dict[str, Any]] = []
    for fold, rows_tested in enumerate(dealt):
        held_out = set(rows_tested.tolist())
        folder = out / f"fold-{fold}"
        name = f"{identity}, fold {fold} of {folds}"
        if (folder / FIGURES).is_file() and _is_of(folder, name):
            rows += _read(folder / FIGURES)["pictures"]
            continue
        net = train_net(
            [pair for row, pair in enumerate(pairs) if row not in held_out and not pair.doubt],
            folder,
            settings,
            name,
            partial(progress, f"fold {fold + 1} of {folds}"),
        )
        found = examined(net, [pairs[row] for row in rows_tested])
        write_text(folder / FIGURES, json.dumps({"pairs": name, "pictures": found}, indent=1) + "\n")
        rows += found
    trusted = [pair for pair in pairs if not pair.doubt]
    net = train_net(trusted, out / "final", settings, identity, partial(progress, "all pairs"))
    write_net(out / WEIGHTS, net, settings.channels, SIDE, BEHIND_HEART)
    result = {
        "pairs": len(pairs),
        "pairs_sha256": identity,
        "trained_on": len(trusted),
        "counted": counted(trusted),
        "doubted": counted(pairs)["doubt"],
        "settings": settings.to_dict(),
        "folds": folds,
        "figures": by_source(rows),
    }
    write_text(out / SUMMARY, json.dumps(result, indent=2) + "\n")
    write_text(out / CARD, card(result))
    return result | {"weights": str(out / WEIGHTS), "bytes": (out / WEIGHTS).stat().st_size}


def by_source(rows: list[dict[str, Any]]) -> dict[str, Mapping[str, float]]:
    """Average over the pictures of each source, over those whose masks are doubted, and over all."""
    if not rows:
        return {}
    trusted = [row for row in rows if not row.get("doubt")]
    doubted = [row for row in rows if row.get("doubt")]
    found = {
        source or "unnamed": summary([row for row in trusted if row["source"] == source])
        for source in sorted({row["source"] for row in trusted})
    }
    if doubted:
        found |= {DOUBTED: summary(doubted), TRUSTED: summary(trusted)}
    return {**found, "all": summary(rows)}


def identity_of(pairs: list[Pair]) -> str:
    """Digest what is trained on: pictures, lungs, how they are drawn, and whose they are."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(repr((pair.name, pair.patient, pair.source, pair.drawing, pair.doubt)).encode())
        digest.update(pair.grey.tobytes() + pair.lungs.tobytes())
    return digest.hexdigest()


def _is_of(folder: Path, name: str) -> bool:
    return bool(_read(folder / FIGURES).get("pairs") == name)


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(read_text(path, MAX_BYTES, "figures of a fold"))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(found=f"{path}: no JSON: {error}", expected="figures of a fold") from None
    return document


def _refuse_other_folder(out: Path) -> None:
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    ours = {WEIGHTS, CARD, SUMMARY, "final"}
    strange = sorted(name for name in names if name not in ours and not name.startswith("fold-"))
    if strange or out.is_file():
        raise InputError(
            found=f"{out} holds {', '.join(strange[:3]) or 'a file'}",
            expected="a new folder, an empty one, or one where the same training was begun",
            hint="another name after --out",
        )
