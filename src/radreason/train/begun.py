"""Whether a folder may be trained in, and whether a training was begun there; looked at while it is held."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from radreason.errors import InputError
from radreason.input_files import is_draft
from radreason.run_folder import PLAN, SUMMARY, read_plan, refuse_another
from radreason.train.watch import Watcher


def make(folder: Path) -> None:
    """Make the folder, whose content can be seen."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        any(folder.iterdir())
    except OSError as error:
        raise InputError(
            found=f"{folder}: cannot be made: {error.strerror or error}", expected="a folder to write to"
        ) from None


def goes_on(folder: Path, resume: bool, plan: Mapping[str, Any], watcher: Watcher) -> bool:
    """Find nothing in the folder, or the same plan; tell whether a training was begun there."""
    drafts = [path for path in folder.iterdir() if is_draft(path)]  # of a training killed while it wrote
    is_empty = len(drafts) == len([*folder.iterdir()])
    if not (folder / PLAN).is_file():
        if not is_empty:
            raise InputError(
                found=f"{folder} holds files that are not a run's",
                expected="a new folder, an empty one, or a run to go on with",
                hint="another name after --out",
            )
        _clear(drafts)
        return False
    before = read_plan(folder)
    if not resume:
        epochs = "has ended" if (folder / SUMMARY).is_file() else "was begun"
        raise InputError(
            found=f"{folder}: a training that {epochs} is there",
            expected="a new folder, or --resume to go on with it",
        )
    refuse_another(before, plan, folder)
    if before.get("made_with") != plan["made_with"]:
        watcher.note("the versions of the packages are not those the training began with: bits may differ")
    _clear(drafts)
    return True


def _clear(drafts: list[Path]) -> None:
    for draft in drafts:
        draft.unlink(missing_ok=True)
