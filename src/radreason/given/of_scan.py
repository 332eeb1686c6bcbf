"""A place in a CT scan, cut as `radreason prepare ct` cuts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version

from threadpoolctl import threadpool_limits

from radreason.data.case import Case
from radreason.data.cut_ct import Cut
from radreason.data.lesion import Lesion
from radreason.data.patch import patch_affine
from radreason.data.place import Place
from radreason.data.scan_files import ScanFiles, SeriesFiles
from radreason.data.volume import Volume
from radreason.given import fits
from radreason.given.source import Found
from radreason.given.takes import Takes
from radreason.given.whom import Asked, Whom


class LastScan:
    """Reads scans, and gives the last one again: a table often has several places in it."""

    def __init__(self) -> None:
        self._last: tuple[ScanFiles, Volume] | None = None

    def __call__(self, files: ScanFiles) -> Volume:
        """Read a scan, unless it is the one that was read last."""
        if self._last is None or self._last[0] != files:
            self._last = None  # one scan at a time in memory
            volume = files.read()
            assert isinstance(volume, Volume), "a scan is a volume"
            self._last = files, volume
        return self._last[1]


@dataclass(frozen=True)
class OfScan:
    """A place in a CT scan."""

    files: ScanFiles
    place: Place
    name: str
    shown: str
    patient: str | None = field(default=None, repr=False)
    reads: LastScan = field(default_factory=LastScan, repr=False, compare=False)

    def asked(self, whom: Whom) -> Asked:
        """Choose by the patient, if the table says who it is."""
        return whom.of_patient(self.patient, self.name)

    def read(self, takes: Takes) -> Found:
        """Read the scan and cut the patch, as `radreason prepare ct` does."""
        cut = takes.cutter
        assert isinstance(cut, Cut), "scans are given to runs on CT alone"
        with threadpool_limits(1):
            volume = self.reads(self.files)
            where = self.shown
            fits.check_units(where, volume)
            fits.check_values(where, volume.array, takes, patch=False)
            lesion = Lesion(Case(self.name, self.patient or "", "", {}), self.place)
            case, patch, mask, notes = cut.cut(lesion, volume)
        fits.check_values(where, patch, takes)
        assert case.centre_mm is not None
        notes = (*(self.files.anonymous(note) for note in volume.notes), *notes)
        is_series = isinstance(self.files, SeriesFiles)
        image = {
            "from": "DICOM series" if is_series else "image file",
            "reader": f"pydicom {version('pydicom')} and highdicom {version('highdicom')}"
            if is_series
            else f"SimpleITK {version('SimpleITK')}",
            **({"series_uid": self.files.uid} if isinstance(self.files, SeriesFiles) else {}),
            "voxels": list(volume.shape),
            "spacing_mm": list(volume.spacing_mm),
        }
        step = {
            "step": "cut along the axes of the scan, by cubic spline",
            **cut.to_dict(),
            "centre_mm": list(case.centre_mm),
            "padding_share": case.padding_share,
        }
        affine = patch_affine(volume, case.centre_mm, len(patch), cut.spacing_mm)
        return Found(patch, image, (step,), (cut.spacing_mm,) * 3, affine, mask=mask, notes=notes)

    def anonymous(self, text: str) -> str:
        """Take the names of files out of a message."""
        return self.place.anonymous(self.files.anonymous(text)).replace(self.shown, self.name)
