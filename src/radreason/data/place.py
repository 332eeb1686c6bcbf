"""Where in a scan a lesion is: a position, a mask or readers' outlines, each found once the scan is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from radreason.data.case_table import LPS, RAS
from radreason.data.masks import centre_mm, diameter_mm, read_mask
from radreason.data.outline_mask import agreement, centre_of_outlines_mm
from radreason.data.reading import Outline
from radreason.data.scan_files import without_names
from radreason.data.volume import Volume


@dataclass(frozen=True, eq=False)
class Found:
    """The centre of a lesion in patient coordinates (LPS), and its mask and diameter where there is a mask.

    The mask may hold shares: of readers who outlined a voxel.
    """

    centre_mm: Float64[np.ndarray, " 3"]
    mask: Volume | None = None
    diameter_mm: float | None = None


@runtime_checkable
class Place(Protocol):
    """Something that says where a lesion is."""

    def find(self, volume: Volume) -> Found:
        """Find the lesion in its scan."""
        ...

    def anonymous(self, text: str) -> str:
        """Take the names of files out of a message."""
        ...


@dataclass(frozen=True)
class Position:
    """A point: in millimetres, or in voxels as column, row, slice from zero."""

    xyz: tuple[float, float, float]
    frame: str

    def find(self, volume: Volume) -> Found:
        """Carry the point to patient coordinates; whether it lies in the scan is seen when it is cut."""
        x, y, z = self.xyz
        if self.frame == LPS:
            return Found(np.array([x, y, z]))
        if self.frame == RAS:
            return Found(np.array([-x, -y, z]))
        return Found(volume.to_mm((z, y, x)))

    def anonymous(self, text: str) -> str:
        """Give the message as it is: a position has no file."""
        return text


@dataclass(frozen=True)
class MaskFile:
    """A mask: an image, a DICOM segmentation or a structure set; ``part`` names one of several."""

    path: Path
    part: str | None = None

    def find(self, volume: Volume) -> Found:
        """Take the centre of mass of the mask, and the diameter of the ball of its volume."""
        mask = read_mask(self.path, volume, self.part)
        return Found(centre_mm(mask), mask, diameter_mm(mask))

    def anonymous(self, text: str) -> str:
        """Take the name of the file out of a message."""
        return without_names(text, [self.path])


@dataclass(frozen=True, eq=False)
class Drawn:
    """What each reader outlined."""

    readers: tuple[tuple[Outline, ...], ...]

    def find(self, volume: Volume) -> Found:
        """Take the mean of the readers' centres, and for a mask the share of readers at each voxel."""
        shares = agreement(volume, self.readers)
        centres_mm = [centre_of_outlines_mm(volume, outlines) for outlines in self.readers]
        return Found(np.mean(centres_mm, axis=0), shares)

    def anonymous(self, text: str) -> str:
        """Give the message as it is: outlines have no file of their own."""
        return text
