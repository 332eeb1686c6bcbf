"""A DICOM series of CT slices as a volume in HU: read right, or refused naming the files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped

from radreason.data.dicom_geometry import Slice, affine_of, in_one_geometry, names_of, without_duplicates
from radreason.data.dicom_index import MULTIFRAME_CT, Series, SeriesIndex, find_series, quiet, read_header
from radreason.data.dicom_pixels import decoded
from radreason.data.volume import AIR_HU, NO_TISSUE_HU, Volume
from radreason.errors import InputError, unknown

if TYPE_CHECKING:
    from pydicom import FileDataset

__all__ = ["Series", "SeriesIndex", "find_series", "read_series"]

_TAGS = [
    "SOPClassUID",
    "ImagePositionPatient",
    "ImageOrientationPatient",
    "PixelSpacing",
    "Rows",
    "Columns",
    "SliceThickness",
    "SamplesPerPixel",
    "PhotometricInterpretation",
    "RescaleSlope",
    "RescaleIntercept",
    "RescaleType",
]
_WHAT = "a series of CT slices"


def read_series(source: Path | str | SeriesIndex | Series, series_uid: str | None = None) -> Volume:
    """Read a series, or the one series of CT slices in a folder, in HU.

    ``notes`` of the volume say what was left out (copies of slices, scouts, screenshots) and what is
    unusual (slices thicker or thinner than their spacing).
    """
    series, strays = (source, ()) if isinstance(source, Series) else choose_series(source, series_uid)
    slices, scales, notes = _headers_of(series)
    if strays:
        notes.append(f"left out, no DICOM images: {names_of(path for path, _ in strays)}")
    in_one_geometry(slices)
    kept, copies = without_duplicates(slices, lambda a, b: _same_pixels(a, b, scales))
    affine = affine_of(kept)
    if series.others:
        notes.append(f"left out, no CT slices: {names_of(series.others)}")
    if copies:
        notes.append(f"left out, copies of other slices: {names_of(s.path for s in copies)}")
    spacing = float(np.linalg.norm(affine[:3, 0]))
    unlike = {
        s.thickness_mm for s in kept if s.thickness_mm and abs(s.thickness_mm - spacing) > 0.05 * spacing
    }
    if unlike:
        thick = ", ".join(f"{thickness:g}" for thickness in sorted(unlike))
        notes.append(f"slices of {thick} mm thickness every {spacing:g} mm: the positions are believed")

    whole = all(number.is_integer() for scale in scales.values() for number in scale)
    array = np.empty((len(kept), *kept[0].shape), np.int16 if whole else np.float32)
    padded = 0
    for n, one in enumerate(kept):
        values, padding = _hu(one, *scales[one.path])
        padded += padding
        array[n] = np.clip(values, -32768, 32767) if whole else values
    if padded:
        notes.append(f"{padded:,} voxels marked as padding")
    return Volume(array, affine, tuple(notes))


def choose_series(
    source: Path | str | SeriesIndex, series_uid: str | None
) -> tuple[Series, tuple[tuple[Path, str], ...]]:
    """Take the series that is meant, and the strays that lay beside it if a folder was given."""
    index = source if isinstance(source, SeriesIndex) else find_series(source)
    strays = () if isinstance(source, SeriesIndex) else index.strays
    if series_uid is not None:
        if series_uid not in index.series:
            raise unknown(f"series in {index.folder}:", series_uid, index.series)
        return index.series[series_uid], strays
    if len(index.ct) == 1:
        return index.ct[0], strays
    if index.ct:
        listed = ", ".join(f"{series.uid} ({len(series.slices)} slices)" for series in index.ct[:5])
        raise InputError(
            found=f"{index.folder}: {len(index.ct)} series of CT slices: {listed}",
            expected="one series, or the UID of the one that is meant",
        )
    if index.series:
        return next(iter(index.series.values())), strays  # its refusal says why
    n = len(index.strays)
    names = f": {names_of(path for path, _ in index.strays)}" if n else ""
    raise InputError(found=f"{index.folder}: {n} file(s), none of them CT in DICOM{names}", expected=_WHAT)


def _headers_of(series: Series) -> tuple[list[Slice], dict[Path, tuple[float, float]], list[str]]:
    if not series.slices:
        header = read_header(series.others[0], ["SOPClassUID"])
        multiframe = not isinstance(header, str) and header.get("SOPClassUID") in MULTIFRAME_CT
        raise InputError(
            found=f"{series.others[0]}: {'CT with many frames in one file' if multiframe else 'no CT slice'} "
            f"(modality {series.modality or 'not stated'})",
            expected=f"{_WHAT}, one file for each",
            hint="convert it to NIfTI, for instance with dcm2niix" if multiframe else "",
        )
    slices, scales, wrong, units = [], {}, [], set()
    for path in series.slices:
        header = read_header(path, _TAGS)
        if isinstance(header, str):
            wrong.append((path, header))
            continue
        try:
            with quiet():
                one, scale, unit = _slice_of(path, header)
        except _UnusableError as error:
            wrong.append((path, str(error)))
            continue
        except Exception:  # what a damaged element raises may quote it
            wrong.append((path, "a damaged header"))
            continue
        slices.append(one)
        scales[path] = scale
        units.add(unit)
    if wrong:
        reasons = dict.fromkeys(reason for _, reason in wrong)
        said = "; ".join(f"{reason}: {names_of(p for p, r in wrong if r == reason)}" for reason in reasons)
        raise InputError(
            found=f"{series.slices[0].parent}: {len(wrong)} of {len(series.slices)} slices: {said}",
            expected="position, orientation, pixel spacing and rescaling to HU in every slice",
        )
    odd = units - {"HU", ""}
    notes = [f"stated unit {', '.join(sorted(odd))} is taken for HU"] if odd else []
    return slices, scales, notes


class _UnusableError(Exception):
    """What is wrong with a header, in words that quote nothing of it."""


def _slice_of(path: Path, header: FileDataset) -> tuple[Slice, tuple[float, float], str]:
    if header.get("SamplesPerPixel", 1) != 1 or header.get("PhotometricInterpretation") != "MONOCHROME2":
        raise _UnusableError("no grey image in which high means bright")
    unit = str(header.get("RescaleType", "")).strip().upper()
    if not unit.startswith(("HU", "US")) and unit:
        raise _UnusableError("values in another unit than HU")
    x, y, z = _numbers(header, "ImagePositionPatient", 3)
    xr, yr, zr, xc, yc, zc = _numbers(header, "ImageOrientationPatient", 6)
    down, across = _numbers(header, "PixelSpacing", 2)
    rows, columns = (int(*_numbers(header, keyword, 1)) for keyword in ("Rows", "Columns"))
    (slope,), (intercept,) = (_numbers(header, f"Rescale{word}", 1) for word in ("Slope", "Intercept"))
    if not (down > 0 and across > 0 and rows > 0 and columns > 0 and slope != 0):
        raise _UnusableError("a spacing, size or slope of zero")
    try:
        thickness = _numbers(header, "SliceThickness", 1)[0]
    except _UnusableError:
        thickness = None
    place = Slice(path, (x, y, z), (xr, yr, zr), (xc, yc, zc), (down, across), (rows, columns), thickness)
    return place, (slope, intercept), unit


def _numbers(header: FileDataset, keyword: str, count: int) -> list[float]:
    try:
        value: Any = header.get(keyword)
        numbers = [float(number) for number in (value if count > 1 else [value])]
    except Exception:
        raise _UnusableError(f"no usable {keyword}") from None
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise _UnusableError(f"no usable {keyword}")
    return numbers


def _same_pixels(a: Slice, b: Slice, scales: dict[Path, tuple[float, float]]) -> bool:
    return bool(np.array_equal(_hu(a, *scales[a.path])[0], _hu(b, *scales[b.path])[0]))


def _hu(one: Slice, slope: float, intercept: float) -> tuple[Shaped[np.ndarray, "rows columns"], int]:
    """Decode a slice; also count the pixels that are padding and would have passed for tissue."""
    dataset, raw = decoded(one.path, slope, intercept)
    if raw.shape != one.shape:
        raise InputError(
            found=f"{one.path}: {' x '.join(map(str, raw.shape))} pixels",
            expected=f"{one.shape[0]} x {one.shape[1]}, as its header says",
        )
    values = raw * np.float64(slope) + intercept
    padding = dataset.get("PixelPaddingValue")
    if not isinstance(padding, int) or padding * slope + intercept <= AIR_HU:
        return values, 0
    marked = (raw.astype(np.int64) - padding) % 65536 == 0  # its sign is often written wrongly
    values[marked] = 2 * NO_TISSUE_HU
    return values, int(marked.sum())
