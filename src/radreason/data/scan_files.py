"""Where the pixels of a scan or a radiograph are, read in the process that cuts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from radreason.data.radiograph import Limits, Radiograph
from radreason.data.volume import Volume


@runtime_checkable
class Image(Protocol):
    """What was read: a volume or a radiograph."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was mended or is unusual."""
        ...


@runtime_checkable
class ScanFiles(Protocol):
    """A scan that has not been read yet; it travels between processes as a few names."""

    def read(self) -> Image:
        """Read the voxels."""
        ...

    def anonymous(self, text: str) -> str:
        """Take the names of its files out of a message."""
        ...


@dataclass(frozen=True)
class ImageFile:
    """A scan in one file: NIfTI, MetaImage or NRRD."""

    path: Path

    def read(self) -> Volume:
        """Read the voxels."""
        from radreason.data.image_files import read_image

        return read_image(self.path)

    def anonymous(self, text: str) -> str:
        """Take the name of the file out of a message."""
        return without_names(text, [self.path])


@dataclass(frozen=True)
class SeriesFiles:
    """A scan that is a series of DICOM files."""

    slices: tuple[Path, ...]
    others: tuple[Path, ...]
    uid: str
    modality: str

    def read(self) -> Volume:
        """Read the slices in their order in space."""
        from radreason.data.dicom import Series, read_series

        return read_series(Series(self.uid, self.modality, self.slices, self.others))

    def slice_thickness_mm(self) -> float | None:
        """Read how thick the first slice says it is."""
        from radreason.data.dicom_index import read_header

        header = read_header(self.slices[0], ["SliceThickness"]) if self.slices else ""
        try:
            thickness_mm = float(header.get("SliceThickness"))  # type: ignore[union-attr]
        except (AttributeError, TypeError, ValueError):
            return None
        return thickness_mm if 0 < thickness_mm < 1000 else None

    def anonymous(self, text: str) -> str:
        """Take the names of the files out of a message; they are counted in their order by name."""
        return without_names(text, (*self.slices, *self.others))


@dataclass(frozen=True)
class RadiographFile:
    """A radiograph, and what is black and white in it where its file does not say."""

    path: Path
    limits: Limits | None = None

    def read(self) -> Radiograph:
        """Read the picture."""
        from radreason.data.radiograph_files import read_radiograph

        return read_radiograph(self.path, self.limits)

    def anonymous(self, text: str) -> str:
        """Take the name of the file out of a message."""
        return without_names(text, [self.path])


def without_names(text: str, paths: Iterable[Path]) -> str:
    """Say "file 3" instead of the name of the third file: a name may be the patient's.

    >>> without_names("scans/Doe.nii: damaged; see Doe.nii", [Path("scans/Doe.nii")])
    'file 1: damaged; see file 1'
    """
    folders = []
    for number, path in enumerate(paths, 1):
        for name in (str(path), path.name):
            if name and name in text:
                text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", f"file {number}", text)
        folders.append(str(path.parent))
    for folder in sorted(set(folders) - {"."}, key=len, reverse=True):
        text = text.replace(folder, "its folder")
    return text
