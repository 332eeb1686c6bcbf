"""Which files of a folder belong to which DICOM series, and which to none.

A file is judged by what it says of itself, not by its name or place. Only what tells slices from
strays is read; of the patient nothing but the pseudonymous id.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from radreason.errors import InputError

if TYPE_CHECKING:
    from pydicom import FileDataset

CT_IMAGE = "1.2.840.10008.5.1.4.1.1.2"

MULTIFRAME_CT = ("1.2.840.10008.5.1.4.1.1.2.1", "1.2.840.10008.5.1.4.1.1.2.2")

_TAGS = ["SOPClassUID", "SeriesInstanceUID", "Modality", "ImageType", "PatientID"]
_FIRST_GROUPS = (b"\x02\x00", b"\x08\x00", b"\x00\x02", b"\x00\x08")
"""How a file without the mark "DICM" can begin, in either byte order. A file of zeros, as broken copies
leave it, would otherwise be searched for minutes."""

_LIBRARIES = ("pydicom", "highdicom", "openjpeg")
_SILENT = logging.CRITICAL + 1


@dataclass(frozen=True)
class Series:
    """One series of a folder: CT slices, and other files that travel under the same series UID."""

    uid: str
    modality: str
    slices: tuple[Path, ...]
    others: tuple[Path, ...] = ()
    patient: str = field(default="", repr=False)  # may be no pseudonym in a hospital's own files


@dataclass(frozen=True)
class SeriesIndex:
    """What a folder holds: series by UID, and the files that are in none, each with the reason."""

    folder: Path
    series: dict[str, Series]
    strays: tuple[tuple[Path, str], ...] = ()

    @property
    def ct(self) -> tuple[Series, ...]:
        """The series that have CT slices."""
        return tuple(series for series in self.series.values() if series.slices)


def find_series(folder: Path | str) -> SeriesIndex:
    """Look through a folder and the folders in it."""
    folder = Path(folder)
    if not folder.is_dir():
        kind = "a file" if folder.is_file() else "no such folder"
        raise InputError(found=f"{folder}: {kind}", expected="a folder of DICOM files")
    with quiet():
        return _index_of(folder)


def read_header(path: Path, tags: list[str] | None = None) -> FileDataset | str:
    """Read what a file says before its pixels, or say why it cannot be read.

    Files of old scanners lack the mark "DICM" at byte 128; they count if they hold what an image must.
    """
    import pydicom

    if not path.is_file():
        return "not a regular file"
    marked = False
    try:
        with quiet(), path.open("rb") as stream:
            start = stream.read(132)
            marked = start[128:] == b"DICM"
            if not marked and start[:2] not in _FIRST_GROUPS:
                return "not DICOM"
            stream.seek(0)
            header = pydicom.dcmread(stream, stop_before_pixels=True, specific_tags=tags, force=not marked)
            if not marked and not _text(header, "SOPClassUID").startswith("1.2.840.10008."):
                return "not DICOM"
    except OSError as error:
        return f"cannot be read: {error.strerror or 'damaged'}"
    except Exception:  # a damaged file raises what its bytes happen to mean; its words may be the patient's
        return "damaged DICOM" if marked else "not DICOM"
    return header


@contextmanager
def quiet() -> Iterator[None]:
    """Keep warnings and logs back: they quote values, and a value may be a name or a birth date."""
    heard = [log for name in _LIBRARIES if (log := logging.getLogger(name)).level != _SILENT]
    levels = [log.level for log in heard]
    try:
        for log in heard:
            log.setLevel(_SILENT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(heard, levels, strict=True):
            log.setLevel(level)


def _index_of(folder: Path) -> SeriesIndex:
    slices: dict[str, list[Path]] = defaultdict(list)
    others: dict[str, list[Path]] = defaultdict(list)
    said: dict[str, tuple[str, str]] = {}
    strays = []
    for path in _files_in(folder):
        header = read_header(path, _TAGS)
        if isinstance(header, str):
            strays.append((path, header))
            continue
        uid = _text(header, "SeriesInstanceUID")
        if not uid:
            strays.append((path, "DICOM, but of no series"))
            continue
        said.setdefault(uid, (_text(header, "Modality"), _text(header, "PatientID")))
        is_slice = _text(header, "SOPClassUID") == CT_IMAGE and "LOCALIZER" not in _text(header, "ImageType")
        (slices if is_slice else others)[uid].append(path)
    series = {
        uid: Series(uid, modality, tuple(slices[uid]), tuple(others[uid]), patient)
        for uid, (modality, patient) in said.items()
    }
    return SeriesIndex(folder, series, tuple(strays))


def _files_in(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(place, name)


def _text(header: FileDataset, keyword: str) -> str:
    """Give an element as text, empty if it is missing or makes no sense."""
    try:
        return str(header.get(keyword, "")).strip(" \0")
    except Exception:
        return ""
