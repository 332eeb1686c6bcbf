"""Whether an image is one that a run can be asked about: kind, size, spacing and values.

What no radiologist would take for a CT in HU, or for a radiograph in the grey of a dataset, is refused with
what was found. What a run has merely not seen the like of is noted: rare is not wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Shaped

from radreason.data.dataset import Dataset
from radreason.data.radiograph import GREY_MAX
from radreason.data.volume import AIR_HU, Volume
from radreason.errors import InputError
from radreason.given.takes import Takes
from radreason.train.intensities import figures_of

MOST_APART = 0.05
"""The share by which the spacing of a patch may differ from the run's: headers are rounded."""

LEAST_MM, MOST_MM = 0.1, 20.0
"""Between these lies the spacing of any CT; beyond them it is in another unit than mm."""

FARTHEST = 0.5
"""By how much of the window a figure may lie beyond those of all training cases."""

MOST_FAR = 1
"""How many figures may lie farther: one is what a rare place does, two are what another unit does."""

_MOST_VALUES = 1 << 20
_HU = "CT in HU: air at -1000, water at 0"
_GREY = f"grey from 0, black, to {GREY_MAX}, white, as `prepare cxr` writes it"


def check_dataset(dataset: Dataset, takes: Takes) -> tuple[str, ...]:
    """Refuse a dataset of other images than the run's; note what else is different."""
    if len(dataset.core) != len(takes.core):
        raise InputError(
            found=f"{dataset.folder}: a dataset of {_kind(len(dataset.core) == 3)} ({dataset.kind})",
            expected=f"{_kind(takes.is_ct)}: the run was trained on {takes.kind}",
        )
    if any(n < m for n, m in zip(dataset.core, takes.sees, strict=True)):
        raise InputError(
            found=f"{dataset.folder}: images of {_by(dataset.core)}",
            expected=f"{_by(takes.sees)} or larger, as the run sees them",
            hint="prepare the dataset with a larger --size",
        )
    if takes.is_ct and takes.spacing_mm is not None:
        edge = dataset.settings.get("cut", dataset.settings).get("spacing_mm")
        if edge is not None:
            check_spacing(str(dataset.folder), (edge,) * 3, takes)
    if dataset.kind != takes.kind:
        return (f"the run was trained on {takes.kind}, and this is {dataset.kind}",)
    return ()


def check_spacing(where: str, spacing_mm: tuple[float, ...], takes: Takes) -> None:
    """Refuse a patch whose voxels are larger or smaller than those of the run."""
    edge = takes.spacing_mm
    if edge is None or all(abs(mm - edge) <= MOST_APART * edge for mm in spacing_mm):
        return
    raise InputError(
        found=f"{where}: a patch of voxels of {_by(spacing_mm)} mm",
        expected=f"voxels of {edge:g} mm, as the run was trained on",
        hint="give the scan itself with the place of the lesion (--at): it is cut as the run's were",
    )


def check_units(where: str, volume: Volume) -> None:
    """Refuse a scan whose spacing can be none of CT in millimetres."""
    if not all(LEAST_MM <= mm <= MOST_MM for mm in volume.spacing_mm):
        raise InputError(
            found=f"{where}: a spacing of {_by(volume.spacing_mm)} mm",
            expected=f"a scan whose voxels measure {LEAST_MM:g} to {MOST_MM:g} mm",
            hint="the file may state metres or micrometres: correct its header",
        )


def check_values(where: str, values: Shaped[np.ndarray, "*any"], takes: Takes, patch: bool = True) -> None:
    """Refuse values that are no HU, or no grey of a dataset; of a ``patch`` also one that shows nothing."""
    seen = values.reshape(-1)[:: max(1, values.size // _MOST_VALUES) | 1]
    seen = seen[np.isfinite(seen)]
    if not seen.size:
        raise InputError(found=f"{where}: no finite value", expected=_HU if takes.is_ct else _GREY)
    low, high = (float(q) for q in np.quantile(seen, (0.001, 0.999)))
    wrong = (_no_hu if takes.is_ct else _no_grey)(low, high, float(seen.min()), patch)
    if wrong:
        raise InputError(
            found=f"{where}: values from {low:g} to {high:g}: {wrong[0]}",
            expected=_HU if takes.is_ct else _GREY,
            hint=wrong[1],
        )


def check_seen(
    where: str, patch: Shaped[np.ndarray, "*patch"], takes: Takes
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Compare figures of a patch with those of the training cases, where the plan has them.

    What is far from all of them in more than one figure is refused, what is outside of them is noted.
    """
    known: Mapping[str, Any] | None = takes.intensities
    if known is None:
        return {}, ("the plan does not say what values the training cases had: they were not compared",)
    found = figures_of(middle(patch, takes.core))
    beyond = {
        name: max(known[name][0] - value, value - known[name][1], 0.0)
        for name, value in found.items()
        if name in known
    }
    apart = FARTHEST * (takes.window[1] - takes.window[0])
    far = [name for name, by_how_much in beyond.items() if by_how_much > apart]
    if len(far) > MOST_FAR:
        raise InputError(
            found=f"{where}: of its values the " + ", the ".join(f"{name} {found[name]:g}" for name in far),
            expected=", ".join(f"{known[name][0]:g} to {known[name][1]:g}" for name in far)
            + ", as in every training case, or not far from it",
            hint="the values may be in another unit, or the place may be wrong",
        )
    return found, tuple(
        f"the {name} of the values is {found[name]:g}; in training cases {known[name][0]:g} to "
        f"{known[name][1]:g}"
        for name, by_how_much in beyond.items()
        if by_how_much > 0
    )


def middle(patch: Shaped[np.ndarray, "*patch"], shape: tuple[int, ...]) -> np.ndarray:
    """Cut to the middle, where a patch is larger."""
    kept = [min(n, m) for n, m in zip(patch.shape, shape, strict=True)]
    starts = [(n - m) // 2 for n, m in zip(patch.shape, kept, strict=True)]
    return patch[tuple(slice(a, a + n) for a, n in zip(starts, kept, strict=True))]


def _no_hu(low: float, high: float, least: float, patch: bool) -> tuple[str, str] | None:
    if high == low:
        return "one value everywhere, and no image", "another place"
    if patch and high < 0.9 * AIR_HU:
        return "nothing but air", "another place: this one lies outside of the body"
    if high - low <= 10:
        return "scaled to a small range", "the values before they were scaled"
    if least >= 0 and high <= 255:
        return "8-bit grey", "the scan itself: a picture in a window cannot be turned back into HU"
    if low >= 0:
        return (
            "no air, and nothing below water",
            "the rescaling of the scanner may be missing (slope and intercept), or this is no CT",
        )
    return None


def _no_grey(low: float, high: float, least: float, patch: bool) -> tuple[str, str] | None:
    if least < 0 or high > GREY_MAX:
        return "beyond black and white", "the radiograph itself (DICOM, PNG, JPEG or NIfTI)"
    if high == low:
        return "one value everywhere, and no image", ""
    if high <= 1:
        return "scaled to 0..1", "the radiograph itself (DICOM, PNG, JPEG or NIfTI)"
    if high <= 255:
        return "8-bit grey", "the radiograph itself (DICOM, PNG, JPEG or NIfTI)"
    return None


def _kind(is_ct: bool) -> str:
    return "CT" if is_ct else "radiographs"


def _by(numbers: tuple[float, ...]) -> str:
    return " x ".join(f"{n:g}" for n in numbers)
