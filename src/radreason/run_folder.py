"""The folder of one trained model: which file holds what; read and write, nothing else.

    plan.json           the whole experiment, the data and cases it is of, versions; written first
    last.safetensors    where training stands: weights, optimizer, epoch; what --resume goes on from
    best.safetensors    weights of the chosen epoch, with both networks
    background.safetensors   what questions need of the training cases; made of these weights
    log.jsonl           a line per epoch: the same bytes whether training was interrupted or not
    times.jsonl         seconds per epoch, which are never the same
    bn1, bn2            the two networks of the chosen epoch, as `radreason network` reads them
    predictions.csv     every stage's beliefs in the validation and test cases
    summary.json        metrics of every stage, temperature, threshold; written last
    tensorboard         curves

A cross-validation is a folder of such folders, with crossval.json, which says what is done and is written
first, and a summary.json over all of them. Nothing in either is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from radreason import __version__, config
from radreason.artefacts import readable
from radreason.errors import InputError
from radreason.input_files import read_bytes, read_object, write_bytes, write_text

PLAN, LAST, BEST = "plan.json", "last.safetensors", "best.safetensors"
BACKGROUND = "background.safetensors"
CROSSVAL = "crossval.json"
LOG, TIMES, PREDICTIONS, SUMMARY = "log.jsonl", "times.jsonl", "predictions.csv", "summary.json"
NETWORKS = {"first_net": "bn1", "second_net": "bn2"}
TENSORBOARD = "tensorboard"

FORMAT, CROSSVAL_FORMAT = "radreason run", "radreason crossval"
VERSION = 1
"""Raised by one when a change would mislead a program that reads the folder as it was."""

MAX_BYTES = 64 << 20
MAX_WEIGHTS = 8 << 30

_WHAT = "a run that `radreason train` wrote"


def write_plan(folder: Path, plan: Mapping[str, Any]) -> None:
    """Write what a run is going to do."""
    _write_document(folder / PLAN, FORMAT, plan)


def read_plan(folder: Path) -> dict[str, Any]:
    """Read the plan of a run; anything else is refused."""
    return _read_document(folder / PLAN, FORMAT, _WHAT)


def patient_key(patient: str) -> str:
    """Give the mark of a patient in plans: the same for the same pseudonym, and no name.

    >>> patient_key("patient-7")
    '5eb7c66585c44dff'
    """
    return hashlib.sha256(patient.encode()).hexdigest()[:16]


def write_crossval(folder: Path, plan: Mapping[str, Any]) -> None:
    """Write what a cross-validation is going to do."""
    _write_document(folder / CROSSVAL, CROSSVAL_FORMAT, plan)


def read_crossval(folder: Path) -> dict[str, Any]:
    """Read the plan of a cross-validation; anything else is refused."""
    return _read_document(folder / CROSSVAL, CROSSVAL_FORMAT, "what `radreason crossval` wrote")


def _write_document(path: Path, kind: str, document: Mapping[str, Any]) -> None:
    header = {"format": kind, "version": VERSION, "written_by": f"radreason {__version__}"}
    write_text(path, readable(header | dict(document)) + "\n")


def _read_document(path: Path, kind: str, what: str) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(found=f"{path.parent}: no {path.name} in it", expected=what)
    document = read_object(path, MAX_BYTES, _WHAT)
    if document.get("format") != kind:
        raise InputError(found=f"{path}: not a file of the format {kind!r}", expected=what)
    if document.get("version") != VERSION:
        raise InputError(
            found=f"{path}: version {document.get('version')!r:.20} of the format",
            expected=f"version {VERSION}",
            hint="train again, or use the version of radreason that wrote it",
        )
    return {key: value for key, value in document.items() if key not in ("format", "version", "written_by")}


def last_record(folder: Path) -> dict[str, Any] | None:
    """Read the last whole line of a training's log; None before there is one. It never fails."""
    try:
        lines = (folder / LOG).read_bytes().split(b"\n")[:-1]
        record = json.loads(lines[-1]) if lines else None
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def refuse_another(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on with another plan, by the first thing that differs; versions may.

    So may patients and intensities, which follow from the cases: older plans do not name them. A setting
    that an older plan does not know has its default, or an update would end every cross-validation that it
    comes between.
    """
    if "settings" in before:
        settings = config.resolve(before["settings"], f"{folder}: its plan").model_dump(mode="json")
        before = {**before, "settings": settings}
    old, new = _leaves(before), _leaves(now)
    for name in [*new, *(old.keys() - new.keys())]:
        if not name.startswith(("made_with", "patients", "intensities")) and old.get(name) != new.get(name):
            was, now_is = (f"{value!r:.60}" for value in (old.get(name), new.get(name)))
            raise InputError(
                found=f"{folder}: a training with {name} = {was}, now {now_is}",
                expected="the same plan, to go on with it",
                hint="another folder after --out, or the settings of before",
            )


def _leaves(value: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    return {
        path: leaf
        for key, item in value.items()
        for path, leaf in _leaves(item, f"{name}.{key}".strip(".")).items()
    }


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document that people may read; what is no number becomes null."""
    write_text(path, readable(without_nan(document)) + "\n")


def read_summary(folder: Path) -> dict[str, Any]:
    """Read the results of a run that has ended."""
    return read_object(folder / SUMMARY, MAX_BYTES, _WHAT)


def without_nan(value: Any) -> Any:
    """Replace what JSON has no word for by null: a metric that could not be computed."""
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return None
    if isinstance(value, Mapping):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value


def write_weights(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors with what goes with them, in one step: an older file stays until the new one is whole."""
    copied = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = safetensors.torch.save(copied, {"state": json.dumps(state)})
    write_bytes(path, content)


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_weights` wrote."""
    content = read_bytes(path, MAX_WEIGHTS, _WHAT)
    try:
        tensors = safetensors.torch.load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        state = json.loads(header["__metadata__"]["state"])
        if not isinstance(state, dict):
            raise ValueError("no state in it")
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            found=f"{path}: {error!s:.100}", expected="weights that `radreason train` wrote"
        ) from None
    return tensors, state
