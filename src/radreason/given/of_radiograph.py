"""A radiograph of the chest, whose lungs are cut as `radreason prepare cxr` cuts them."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version

from threadpoolctl import threadpool_limits

from radreason.data.case import Case
from radreason.data.lesion import Lesion
from radreason.data.radiograph_pictures import ENDINGS
from radreason.data.scan_files import RadiographFile, ScanFiles
from radreason.given import fits
from radreason.given.source import Found
from radreason.given.takes import Takes
from radreason.given.whom import Asked, Whom


@dataclass(frozen=True)
class OfRadiograph:
    """A radiograph of the chest."""

    files: ScanFiles
    name: str
    shown: str
    patient: str | None = field(default=None, repr=False)

    def asked(self, whom: Whom) -> Asked:
        """Choose by the patient, if the table says who it is."""
        return whom.of_patient(self.patient, self.name)

    def read(self, takes: Takes) -> Found:
        """Read the radiograph and cut both lungs, as `radreason prepare cxr` does."""
        cut = takes.cutter
        with threadpool_limits(1):
            image = self.files.read()
            lesion = Lesion(Case(self.name, self.patient or "", "", {}))
            case, patch, mask, notes = cut.cut(lesion, image)
        fits.check_values(self.shown, patch, takes)
        step = {"step": "both lungs found, cut out and put side by side", **cut.to_dict(), **case.extra}
        if "cut" not in takes.prepared:
            notes = (*notes, f"the run was trained on {takes.kind}: lungs are cut as `prepare cxr` does")
        notes = (*(self.files.anonymous(note) for note in image.notes), *notes)
        about = {
            "from": "radiograph",
            "reader": _reader_of(self.files),
            "flags": list(case.flags),
        }
        return Found(patch, about, (step,), mask=mask, notes=notes)

    def anonymous(self, text: str) -> str:
        """Take the name of the file out of a message."""
        return self.files.anonymous(text).replace(self.shown, self.name)


def _reader_of(files: ScanFiles) -> str:
    name = files.path.name.lower() if isinstance(files, RadiographFile) else ""
    if name.endswith(ENDINGS):
        return f"Pillow {version('pillow')}"
    if name.endswith((".nii", ".nii.gz")):
        return f"SimpleITK {version('SimpleITK')}"
    return f"pydicom {version('pydicom')}"
