"""A case of a prepared dataset: its patch is there already."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

from radreason.data.dataset import PATCHES, Dataset
from radreason.given import fits
from radreason.given.source import Found
from radreason.given.takes import Takes
from radreason.given.whom import Asked, Whom


@dataclass(frozen=True, eq=False)
class OfDataset:
    """A case of a prepared dataset."""

    dataset: Dataset
    row: int
    name: str
    shown: str

    def asked(self, whom: Whom) -> Asked:
        """Choose by the case's patient."""
        return whom.of_case(self.dataset, self.dataset.cases[self.row])

    def read(self, takes: Takes) -> Found:
        """Copy the patch with its margin."""
        dataset, case = self.dataset, self.dataset.cases[self.row]
        own = dataset.fingerprint == takes.fingerprint
        notes = () if own else fits.check_dataset(dataset, takes)
        shape = tuple(int(n) for n in dataset.patches.shape[1:])
        patch = dataset.patches_at([self.row], shape)[0]
        if not own:
            fits.check_values(self.shown, patch, takes)
        edge = dataset.settings.get("cut", dataset.settings).get("spacing_mm")
        return Found(
            patch,
            {
                "from": "dataset",
                "kind": dataset.kind,
                "fingerprint": dataset.fingerprint,
                "reader": f"NumPy {version('numpy')}, {PATCHES}",
                "margin": dataset.margin,
                **({"centre_mm": list(case.centre_mm)} if case.centre_mm else {}),
                "padding_share": case.padding_share,
                "flags": list(case.flags),
            },
            spacing_mm=None if edge is None or len(shape) != 3 else (float(edge),) * 3,
            case=case,
            mask=None if dataset.masks is None else dataset.masks_at([self.row], shape)[0],
            notes=notes,
        )

    def anonymous(self, text: str) -> str:
        """Name no folder."""
        return text.replace(str(self.dataset.folder), "the dataset")
