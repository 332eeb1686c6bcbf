"""A file that holds a patch, as it was prepared or exported."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from jaxtyping import Int16
from threadpoolctl import threadpool_limits

from radreason.data.patch import patient_like_axes
from radreason.data.scan_files import ImageFile, without_names
from radreason.errors import InputError
from radreason.given import fits
from radreason.given.source import WHAT, Found, by
from radreason.given.takes import Takes
from radreason.given.whom import Asked, Whom


@dataclass(frozen=True)
class OfPatch:
    """A file that holds a patch, as prepared."""

    path: Path
    name: str
    shown: str

    def asked(self, whom: Whom) -> Asked:
        """Ask all: nobody says whose it is."""
        return whom.of_patient(None)

    def read(self, takes: Takes) -> Found:
        """Read the patch; one of an image file is put in the order of axes that patches have."""
        found = self._array(takes) if self.path.suffix.lower() == ".npy" else self._volume(takes)
        fits.check_values(str(self.path), found.patch, takes)
        return found

    def _array(self, takes: Takes) -> Found:
        try:
            array = np.load(self.path, allow_pickle=False)
        except FileNotFoundError:
            raise InputError(found=f"{self.path}: no such file", expected=WHAT) from None
        except (OSError, ValueError, EOFError):  # NumPy's own advice would be to load it unsafely
            raise InputError(
                found=f"{self.path}: no array can be read from it",
                expected="an array of numbers, as numpy.save writes it",
            ) from None
        shapes = shapes_of(takes)
        if not isinstance(array, np.ndarray) or array.shape not in shapes:
            raise InputError(
                found=f"{self.path}: an array of {by(getattr(array, 'shape', ()))}",
                expected=f"a patch of {' or '.join(map(by, shapes))}",
                hint="give the scan itself with the place of the lesion (--at)"
                if takes.is_ct
                else "give the radiograph itself",
            )
        patch, notes = _whole_numbers(str(self.path), array, takes)
        stated = ("the file states no spacing and no axes: they are taken to be the run's",)
        return Found(patch, {"from": "patch", "reader": f"NumPy {version('numpy')}"}, notes=(*stated, *notes))

    def _volume(self, takes: Takes) -> Found:
        with threadpool_limits(1):
            volume = ImageFile(self.path).read()
        axes = patient_like_axes(volume)
        turn = np.rint(np.linalg.inv(volume.affine[:3, :3] / volume.spacing_mm) @ axes).astype(int)
        order = [int(np.flatnonzero(turn[:, new])[0]) for new in range(3)]
        flips = tuple(slice(None, None, int(turn[old, new])) for new, old in enumerate(order))
        array = volume.array.transpose(order)[flips]
        first = [0 if turn[old, new] > 0 else volume.shape[old] - 1 for new, old in enumerate(order)]
        start = np.empty(3)
        start[order] = first
        affine = np.eye(4)
        affine[:3, :3] = axes * [volume.spacing_mm[old] for old in order]
        affine[:3, 3] = volume.to_mm(start)
        spacing = tuple(float(volume.spacing_mm[old]) for old in order)
        fits.check_spacing(str(self.path), spacing, takes)
        patch, notes = _whole_numbers(str(self.path), array, takes)
        notes = (*(self.anonymous(note) for note in volume.notes), *notes)
        image = {"from": "patch", "reader": f"SimpleITK {version('SimpleITK')}"}
        return Found(patch, image, spacing_mm=spacing, affine=affine, notes=notes)

    def anonymous(self, text: str) -> str:
        """Take the name of the file out of a message."""
        return without_names(text, [self.path])


def shapes_of(takes: Takes) -> list[tuple[int, ...]]:
    """Give the shapes of a patch: with its margin, without, and as the models see it."""
    return list(dict.fromkeys((takes.whole, takes.core, takes.sees)))


def _whole_numbers(
    where: str, array: np.ndarray, takes: Takes
) -> tuple[Int16[np.ndarray, "*patch"], tuple[str, ...]]:
    """Round values to whole numbers as `radreason prepare` does; what has no number is refused."""
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise InputError(found=f"{where}: {array.dtype} with values that are no numbers", expected="numbers")
    fits.check_values(where, array, takes)
    limits = np.iinfo(np.int16)
    whole = np.rint(array).clip(limits.min, limits.max).astype(np.int16)
    notes = ("values were rounded to whole numbers",) * bool((whole != array).any())
    return whole, notes
