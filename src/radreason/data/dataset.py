"""A dataset on disk: a folder of three or four plain files that NumPy and any JSON reader can open.

    dataset.json   what it is: schema, settings, counts, exclusions with reasons, digests
    cases.jsonl    one case per line, in the order of the patches
    patches.npy    int16, (cases, *patch), memory-mapped; the patch carries a margin around its core
    masks.npy      uint8, the same shape, if any case has a mask

docs/dataset.md is the contract. `dataset_writer` makes such a folder.

    N cases
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int16, Shaped, UInt8

from radreason.data.case import Case
from radreason.errors import InputError
from radreason.input_files import read_text
from radreason.schema import Schema

FORMAT = "radreason dataset"
VERSION = 1
"""Raised by one when a change would mislead a program that reads the folder as it was."""

DATASET, CASES, PATCHES, MASKS = "dataset.json", "cases.jsonl", "patches.npy", "masks.npy"

MAX_BYTES = 1 << 30
"""The largest dataset.json or cases.jsonl that is read: a million cases."""

_WHAT = "a dataset that `radreason prepare` wrote"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Cases with their labels in memory and their patches on disk. Open it with `Dataset.open`."""

    folder: Path
    kind: str
    source: str
    schema: Schema
    settings: Mapping[str, Any]
    counts: Mapping[str, Any]
    excluded: tuple[Mapping[str, str], ...]
    notes: tuple[str, ...]
    fingerprint: str
    margin: int
    cases: tuple[Case, ...]
    patches: Int16[np.ndarray, " N *patch"]
    masks: UInt8[np.ndarray, " N *patch"] | None
    files: Mapping[str, Mapping[str, Any]] = field(repr=False, default_factory=dict)

    @classmethod
    def open(cls, folder: Path | str) -> Dataset:
        """Open a dataset; patches stay on disk until they are asked for."""
        folder = Path(folder)
        document = read_document(folder)
        match document:
            case {
                "kind": str(kind),
                "source": str(source),
                "settings": dict(settings),
                "counts": {"cases": int(n_cases), "patients": int(), "scans": int()} as counts,
                "fingerprint": str(fingerprint),
                "patch": {"margin": int(margin), "shape": [*shape]},
                "excluded": [*excluded],
                "notes": [*notes],
                "files": dict(files),
                "schema": dict(described),
            } if (
                all(map(_is_exclusion, excluded))
                and all(isinstance(note, str) for note in notes)
                and all(isinstance(n, int) and n > 2 * max(margin, 0) for n in shape)
                and margin >= 0
                and {CASES, PATCHES} <= set(files) <= {CASES, PATCHES, MASKS}
                and all(isinstance(written, dict) for written in files.values())
            ):
                schema = Schema.from_dict(described, str(folder / DATASET))
            case _:
                raise InputError(
                    found=f"{folder / DATASET}: an entry is missing or of the wrong kind", expected=_WHAT
                )
        cases = _read_cases(folder / CASES)
        if len(cases) != n_cases:
            raise InputError(
                found=f"{folder / CASES}: {len(cases):,} cases",
                expected=f"{n_cases:,}, as {DATASET} says",
                hint="prepare the dataset again",
            )
        for case in cases:
            case.check(schema)
        if len({case.id for case in cases}) < n_cases:
            raise InputError(found=f"{folder / CASES}: two cases of one name", expected=_WHAT)
        if not _are_counted(schema, counts):
            raise InputError(found=f"{folder / DATASET}: counts of other variables", expected=_WHAT)
        masks = _map(folder / MASKS, np.dtype("u1"), (n_cases, *shape)) if MASKS in files else None
        patches = _map(folder / PATCHES, np.dtype("<i2"), (n_cases, *shape))
        return cls(
            folder,
            kind,
            source,
            schema,
            settings,
            counts,
            tuple(excluded),
            tuple(notes),
            fingerprint,
            margin,
            cases,
            patches,
            masks,
            files,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as the name of the folder, never as gigabytes."""
        return Dataset.open, (self.folder,)

    def __len__(self) -> int:
        return len(self.cases)

    @property
    def core(self) -> tuple[int, ...]:
        """The shape of a patch without its margin."""
        return tuple(int(n) - 2 * self.margin for n in self.patches.shape[1:])

    def labels(self, rows: Any = None) -> dict[str, Float64[np.ndarray, "N _"]]:
        """A distribution per case for each variable, NaN where missing: what `prob.Labels` takes."""
        cases = self.cases if rows is None else [self.cases[row] for row in _indices(rows, len(self))]
        columns = {}
        for variable in self.schema:
            column = np.full((len(cases), variable.size), np.nan)
            for row, case in enumerate(cases):
                label = case.labels.get(variable.name)
                if label is not None:
                    column[row] = label
            columns[variable.name] = column
        return columns

    def reader_shares(self) -> dict[str, Float64[np.ndarray, "N _"]]:
        """The share of readers behind each state: a soft label whatever consensus was chosen."""
        columns = {}
        for variable in self.schema:
            votes = np.zeros((len(self), variable.size))
            for row, case in enumerate(self.cases):
                for reading in case.readings:
                    state = reading.get(variable.name)
                    if state is not None:
                        votes[row, variable.index(state)] += 1
            total = votes.sum(axis=1, keepdims=True)
            columns[variable.name] = np.divide(votes, total, out=np.full_like(votes, np.nan), where=total > 0)
        return columns

    def patches_at(self, rows: Any, shape: Sequence[int] | None = None) -> Int16[np.ndarray, " n *crop"]:
        """Copy the patches of some cases, cut to ``shape`` around their centre (the core if not given)."""
        return _copy(self.patches, _indices(rows, len(self)), self.core if shape is None else tuple(shape))

    def masks_at(self, rows: Any, shape: Sequence[int] | None = None) -> UInt8[np.ndarray, " n *crop"]:
        """Copy the masks of some cases as `patches_at` does the patches."""
        if self.masks is None:
            raise InputError(found=f"{self.folder}: no masks", expected="a dataset whose cases have masks")
        return _copy(self.masks, _indices(rows, len(self)), self.core if shape is None else tuple(shape))

    def batches(
        self, size: int, rows: Any = None, shape: Sequence[int] | None = None
    ) -> Iterator[tuple[Shaped[np.ndarray, " n"], Int16[np.ndarray, " n *crop"]]]:
        """Give rows and patches, ``size`` at a time, in the order of ``rows`` (all if not given)."""
        chosen = np.arange(len(self)) if rows is None else _indices(rows, len(self))
        for start in range(0, len(chosen), size):
            batch = chosen[start : start + size]
            yield batch, self.patches_at(batch, shape)

    def verify(self) -> None:
        """Read every byte and compare with the digests that were written with it."""
        for name, written in self.files.items():
            with (self.folder / name).open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if digest != written.get("sha256"):
                raise InputError(
                    found=f"{self.folder / name}: not the bytes that were written",
                    expected=f"the digest {str(written.get('sha256'))[:16]}...",
                    hint="copy the dataset again, or prepare it again",
                )


def read_document(folder: Path) -> dict[str, Any]:
    """Read dataset.json as far as every version has it: its format and version are right."""
    path = folder / DATASET
    try:
        document = json.loads(read_text(path, MAX_BYTES, _WHAT))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(found=f"{path}: no JSON: {error}", expected=_WHAT) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(found=f"{path}: not a file of the format {FORMAT!r}", expected=_WHAT)
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        newer = isinstance(version, int) and version > VERSION
        raise InputError(
            found=f"{path}: version {version!r:.20} of the format",
            expected=f"version {VERSION}",
            hint="install a newer radreason" if newer else "prepare the dataset again",
        )
    return document


def lines_of(text: str) -> list[str]:
    """Cut lines of JSON: only at line feeds, for a text within may hold other separators."""
    return text.removesuffix("\n").split("\n") if text else []


def _is_exclusion(entry: object) -> bool:
    match entry:
        case {"case": str(), "reason": str()}:
            return True
    return False


def _are_counted(schema: Schema, counts: Mapping[str, Any]) -> bool:
    match counts:
        case {"states": dict(states), "missing": dict(missing)}:
            return all(
                isinstance(states.get(name), dict) and isinstance(missing.get(name), int)
                for name in schema.names
            )
    return False


def _read_cases(path: Path) -> tuple[Case, ...]:
    cases = []
    for number, line in enumerate(lines_of(read_text(path, MAX_BYTES, "the cases of a dataset")), 1):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                found=f"{path}: line {number}: no JSON: {error}", expected="one case per line"
            ) from None
        cases.append(Case.from_dict(data, f"{path}: line {number}"))
    return tuple(cases)


def _map(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Map an array into memory, read-only, if it is the one that dataset.json speaks of."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(found=f"{path}: no such file", expected=_WHAT) from None
    except (OSError, ValueError, EOFError) as error:
        raise InputError(found=f"{path}: {str(error)[:100]}", expected="an array as NumPy saves it") from None
    if array.dtype != dtype or array.shape != shape:
        raise InputError(
            found=f"{path}: {array.dtype} of shape {array.shape}", expected=f"{dtype} of shape {shape}"
        )
    return np.asarray(array)  # a plain array over the same map: indexing it is faster


def _indices(rows: Any, n_cases: int) -> Shaped[np.ndarray, " n"]:
    """Take indices or a Boolean mask."""
    rows = np.atleast_1d(np.asarray(rows))
    if rows.dtype == bool and len(rows) == n_cases:
        return np.flatnonzero(rows)
    if rows.size and (rows.dtype.kind not in "iu" or rows.min() < -n_cases or rows.max() >= n_cases):
        raise InputError(
            found=f"rows {rows[:5].tolist()!r:.60}", expected=f"whole numbers below {n_cases:,}, or a mask"
        )
    indices: Shaped[np.ndarray, " n"] = rows.astype(np.intp)
    return indices


def _copy(array: np.ndarray, rows: Shaped[np.ndarray, " n"], shape: tuple[int, ...]) -> np.ndarray:
    whole = array.shape[1:]
    if len(shape) != len(whole) or any(not 0 < n <= m for n, m in zip(shape, whole, strict=True)):
        raise InputError(found=f"a crop of shape {shape}", expected=f"one within {whole}")
    starts = [(m - n) // 2 for n, m in zip(shape, whole, strict=True)]
    inner = tuple(slice(a, a + n) for a, n in zip(starts, shape, strict=True))
    copied: np.ndarray = np.empty((len(rows), *shape), array.dtype)
    for place, row in enumerate(rows):
        copied[place] = array[row][inner]
    return copied
