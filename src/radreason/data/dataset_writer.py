"""Writing a dataset so that it can be killed at any moment and finishes to the same bytes.

Work is done in shards (a scan, or a hundred phantoms). A shard is a folder that appears under its
name in one step, when all of it is on disk; what was being written when the power went is a folder
without a name, and is thrown away. When all shards are there they are joined in a stated order, which
no number of workers and no interruption changes. dataset.json comes last: a folder
that has one is finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import Int16, UInt8

from radreason import __version__
from radreason.data.case import Case
from radreason.data.dataset import (
    CASES,
    DATASET,
    FORMAT,
    MASKS,
    PATCHES,
    VERSION,
    Dataset,
    lines_of,
    read_document,
)
from radreason.errors import InputError
from radreason.input_files import write_text
from radreason.schema import Schema

PARTS = ".unfinished"
"""Where shards wait for each other; gone when the dataset is finished."""

NO_MASK = "no mask"
"""The flag of a case whose mask is all zero because there was none."""

_CHUNK = 8 << 20


@dataclass(frozen=True, eq=False)
class DatasetWriter:
    """A dataset on its way to disk. It may be sent to worker processes, which write shards of it.

    ``settings`` are everything that decides what is written, including digests of the tables that
    were read: an unfinished folder is continued only under the same settings. ``patch_shape`` includes
    a margin of ``margin`` voxels on every side.
    """

    folder: Path
    schema: Schema
    settings: Mapping[str, Any]
    patch_shape: tuple[int, ...]
    kind: str
    source: str
    margin: int = 0
    _excluded: dict[tuple[str, str], None] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))
        object.__setattr__(self, "patch_shape", tuple(self.patch_shape))
        if any(n <= 2 * self.margin for n in self.patch_shape) or self.margin < 0:
            raise InputError(
                found=f"patches of {self.patch_shape} with a margin of {self.margin}",
                expected="something left inside the margin",
            )

    @property
    def header(self) -> dict[str, Any]:
        """What a dataset under these settings says of itself before it has any case."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"radreason {__version__}",
            "kind": self.kind,
            "source": self.source,
            "schema": self.schema.to_dict(),
            "settings": dict(self.settings),
            "patch": {"shape": list(self.patch_shape), "margin": self.margin, "dtype": "int16"},
        }
        as_it_will_be_read: dict[str, Any] = json.loads(json.dumps(header, allow_nan=False))
        return as_it_will_be_read

    @contextmanager
    def open(self) -> Iterator[DatasetWriter]:
        """Claim the folder: continue what was begun there under the same settings, refuse all else."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                found=f"{self.folder}: cannot be made: {error.strerror}", expected="a folder to write to"
            ) from None
        if not self.finished:
            self._begin()
        with _claimed(self.folder):
            if self.finished:
                shutil.rmtree(self._parts, ignore_errors=True)
            for draft in self._parts.glob(".*"):
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()
            yield self

    @property
    def finished(self) -> bool:
        """Whether the dataset is there, whole, and made under these settings."""
        if not (self.folder / DATASET).exists():
            return False
        self._same(read_document(self.folder), "a finished dataset")
        return True

    def done(self, name: str) -> bool:
        """Whether this shard is on disk."""
        return self._place(name).is_dir() or self.finished

    @contextmanager
    def shard(self, name: str) -> Iterator[Shard]:
        """Write the cases of one shard; nothing of it is there until the block ends well."""
        self._parts.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=self._parts, prefix="."))
        try:
            with (
                (draft / CASES).open("w", encoding="utf-8", newline="\n") as cases,
                (draft / "patches").open("wb") as patches,
                (draft / "masks").open("wb") as masks,
            ):
                shard = Shard(self.schema, self.patch_shape, cases, patches, masks)
                yield shard
                record = {
                    "name": name,
                    "cases": shard.n_cases,
                    "excluded": shard.excluded,
                    "notes": shard.notes,
                }
                for stream in (cases, patches, masks):
                    stream.flush()
                    os.fsync(stream.fileno())
            write_text(draft / "shard.json", json.dumps(record, ensure_ascii=False))
            if not self._place(name).is_dir():
                draft.rename(self._place(name))
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def exclude(self, case_id: str, reason: str) -> None:
        """Record what was left out and why, where it belongs to no shard."""
        self._excluded[case_id, reason] = None

    def finish(self, notes: Sequence[str] = (), order: Sequence[str] = ()) -> Dataset:
        """Join the shards, those named in ``order`` first and the others by name, and open the whole."""
        if self.finished:
            return Dataset.open(self.folder)
        place_of = {name: place for place, name in enumerate(order)}
        shards = sorted(
            (
                json.loads((place / "shard.json").read_text(encoding="utf-8")) | {"place": place}
                for place in self._parts.iterdir()
                if not place.name.startswith(".") and place.is_dir()
            ),
            key=lambda shard: (place_of.get(shard["name"], len(order)), shard["name"]),
        )
        for shard in shards:
            self._excluded.update({(case, reason): None for case, reason in shard["excluded"]})
        excluded = [{"case": case, "reason": reason} for case, reason in sorted(self._excluded)]
        places = [shard["place"] for shard in shards]
        cases = self._cases(places)
        if not cases:
            raise InputError(
                found=f"no case at all; {len(excluded):,} left out"
                + "".join(f"\n    {e['case']}: {e['reason']}" for e in excluded[:10]),
                expected="at least one case",
            )
        shape = (len(cases), *self.patch_shape)
        files = {
            CASES: self._join(CASES, b"", [place / CASES for place in places]),
            PATCHES: self._join(PATCHES, _npy_header("<i2", shape), [place / "patches" for place in places]),
        }
        if any(NO_MASK not in case.flags for case in cases):
            files[MASKS] = self._join(MASKS, _npy_header("|u1", shape), [place / "masks" for place in places])
        document = self.header | {
            "counts": _counts(cases, self.schema) | {"excluded": len(excluded)},
            "excluded": excluded,
            "notes": [*notes, *(note for shard in shards for note in shard["notes"])],
            "files": files,
        }
        identity = {key: document[key] for key in ("version", "kind", "schema", "patch", "files")}
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        document["fingerprint"] = f"sha256:{digest}"
        write_text(self._parts / DATASET, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        (self._parts / DATASET).replace(self.folder / DATASET)
        shutil.rmtree(self._parts, ignore_errors=True)
        return Dataset.open(self.folder)

    @property
    def _parts(self) -> Path:
        return self.folder / PARTS

    def _place(self, name: str) -> Path:
        """A folder for any name: of a series, or of a path somewhere else."""
        return self._parts / hashlib.sha256(name.encode()).hexdigest()[:24]

    def _begin(self) -> None:
        begun = self._parts / "header.json"
        if begun.exists():
            self._same(json.loads(begun.read_text(encoding="utf-8")), "an unfinished dataset")
        else:
            refuse_other_folder(self.folder)
            self._parts.mkdir(exist_ok=True)
            write_text(begun, json.dumps(self.header, ensure_ascii=False))

    def _same(self, other: Mapping[str, Any], what: str) -> None:
        mine = self.header
        differing = [key for key in mine if other.get(key) != mine[key]]
        if "settings" in differing and isinstance(other.get("settings"), dict):
            theirs, ours = other["settings"], mine["settings"]
            names = sorted(k for k in {*theirs, *ours} if theirs.get(k) != ours.get(k))
            differing = [key for key in differing if key != "settings"] + names
        if differing:
            raise InputError(
                found=f"{self.folder}: {what} with other settings: {', '.join(differing)}",
                expected="the same settings, to continue",
                hint="another name after --out, or remove the folder",
            )

    def _cases(self, places: Sequence[Path]) -> list[Case]:
        cases = [
            Case.from_dict(json.loads(line))
            for place in places
            for line in lines_of((place / CASES).read_text(encoding="utf-8"))
        ]
        ids = [case.id for case in cases]
        if len(set(ids)) < len(ids):
            twice = next(name for name in ids if ids.count(name) > 1)
            raise InputError(found=f"two cases named {twice!r}", expected="a name of its own for each case")
        return cases

    def _join(self, name: str, head: bytes, parts: Sequence[Path]) -> dict[str, Any]:
        """Write one file of the dataset from its parts, and say what is in it."""
        draft = self._parts / f".{name}"
        digest = hashlib.sha256(head)
        with draft.open("wb") as whole:
            whole.write(head)
            for part in parts:
                with part.open("rb") as stream:
                    while chunk := stream.read(_CHUNK):
                        digest.update(chunk)
                        whole.write(chunk)
            size = whole.tell()
            whole.flush()
            os.fsync(whole.fileno())
        draft.replace(self.folder / name)
        return {"bytes": size, "sha256": digest.hexdigest()}


def refuse_other_folder(folder: Path) -> None:
    """Refuse to write among files that are not a dataset's, before an hour of work."""
    if folder.exists() and not folder.is_dir():
        raise InputError(found=f"{folder} is a file", expected="the name of a folder")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if names - {PARTS} and not names & {PARTS, DATASET}:
        raise InputError(
            found=f"{folder} holds files that are not a dataset's",
            expected="a new folder, an empty one, or one where the same dataset was begun",
            hint="another name after --out",
        )


@dataclass(eq=False)
class Shard:
    """Some cases of a dataset, written as they come."""

    schema: Schema
    patch_shape: tuple[int, ...]
    _cases: IO[str]
    _patches: IO[bytes]
    _masks: IO[bytes]
    n_cases: int = 0
    excluded: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self, case: Case, patch: Int16[np.ndarray, "*patch"], mask: UInt8[np.ndarray, "*patch"] | None = None
    ) -> None:
        """Write one case; a case without a mask says so among its flags."""
        case.check(self.schema)
        if patch.shape != self.patch_shape or (mask is not None and mask.shape != self.patch_shape):
            raise InputError(
                found=f"case {case.id!r}: patch of shape {patch.shape}", expected=f"{self.patch_shape}"
            )
        data = case.to_dict()
        if mask is None:
            data["flags"] = [*case.flags, NO_MASK]
            mask = np.zeros(self.patch_shape, np.uint8)
        self._cases.write(json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n")
        self._patches.write(np.ascontiguousarray(patch, "<i2").data)
        self._masks.write(np.ascontiguousarray(mask).data)
        self.n_cases += 1

    def exclude(self, case_id: str, reason: str) -> None:
        """Record a case of this shard that was left out, and why."""
        self.excluded.append((case_id, reason))

    def note(self, note: str) -> None:
        """Record what a person should know of these cases."""
        self.notes.append(note)


def _counts(cases: Sequence[Case], schema: Schema) -> dict[str, Any]:
    """Count cases, patients and scans, and for each variable the cases of each state.

    A label between states counts in each by its share.
    """
    states: dict[str, dict[str, float]] = {}
    missing: dict[str, int] = {}
    for variable in schema:
        labels = [case.labels.get(variable.name) for case in cases]
        known = [label for label in labels if label is not None]
        sums = np.sum(known, axis=0) if known else np.zeros(variable.size)
        states[variable.name] = {
            state: round(float(n), 6) for state, n in zip(variable.states, sums, strict=True)
        }
        missing[variable.name] = len(labels) - len(known)
    return {
        "cases": len(cases),
        "patients": len({case.patient for case in cases}),
        "scans": len({case.scan for case in cases}),
        "states": states,
        "missing": missing,
    }


def _npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """What NumPy writes before the numbers, so that they are mapped without being read."""
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Keep a second process out of the folder; the claim ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(
            found=f"{folder}: another process is writing this dataset", expected="one at a time"
        ) from None
    finally:
        os.close(handle)
