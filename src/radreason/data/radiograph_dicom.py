"""Radiographs as DICOM: computed and digital radiography, and copies of them.

What the header says of grey (rescaling, window or table, presentation, which end is white), of place (which
way rows and columns run, spacing) and of the edge (shutters, padding) is done; what it says against itself is
noted; a view from the side, an image not made to be looked at, colours and films of several frames are
refused. Refusals and notes quote nothing of the header, for it may be a name.

Shape letters: H, W picture as stored; h, w as it hangs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from radreason.data.dicom_index import quiet, read_header
from radreason.data.dicom_pixels import decoded
from radreason.data.grey_scale import LookUp, Window
from radreason.data.radiograph import Limits, Radiograph, radiograph
from radreason.errors import InputError

if TYPE_CHECKING:
    from pydicom import Dataset

RADIOGRAPHS = {
    "1.2.840.10008.5.1.4.1.1.1": "computed radiography",
    "1.2.840.10008.5.1.4.1.1.1.1": "digital radiography for presentation",
    "1.2.840.10008.5.1.4.1.1.7": "secondary capture",
    "1.2.840.10008.5.1.4.1.1.7.2": "secondary capture",
    "1.2.840.10008.5.1.4.1.1.7.3": "secondary capture",
}
FOR_PROCESSING = "1.2.840.10008.5.1.4.1.1.1.1.1"

_WHAT = "a frontal radiograph of the chest (CR, DX) made to be looked at"
_SIDE_VIEWS = {"LL", "RL", "LLD", "RLD", "LATERAL", "LLO", "RLO"}
_ACROSS, _DOWN = {"L": 1, "R": -1}, {"F": 1, "H": -1}


@dataclass
class _Said:
    flags: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_dicom_radiograph(path: Path, limits: Limits | None = None) -> Radiograph:
    """Read a radiograph; with ``limits`` they hold for the rescaled values, and window and table do not."""
    header = read_header(path)
    if isinstance(header, str):
        raise InputError(found=f"{path}: {header}", expected=_WHAT)
    try:
        with quiet():
            _refuse_others(path, header)
            slope, intercept = _number(header, "RescaleSlope", 1.0), _number(header, "RescaleIntercept", 0.0)
    except InputError:
        raise
    except Exception:  # what a damaged element raises may quote it
        raise InputError(found=f"{path}: a damaged header", expected=_WHAT) from None
    dataset, raw = decoded(path, slope, intercept)
    if raw.ndim != 2:
        raise InputError(found=f"{path}: an image of {raw.ndim} dimensions", expected=_WHAT)
    said = _Said()
    try:
        with quiet():
            grey, range_, stated_by = _grey(dataset, raw, slope, intercept, limits, said)
            _stamp_out(grey, range_, _hidden(dataset, raw, said))
            grey, spacing_mm = _upright(dataset, grey, said)
    except InputError as error:
        raise InputError(f"{path}: {error.found}", error.expected, error.hint) from None
    except Exception:
        raise InputError(found=f"{path}: a damaged header", expected=_WHAT) from None
    return radiograph(
        grey,
        range_,
        str(path),
        stated_by=stated_by,
        spacing_mm=spacing_mm,
        flags=tuple(said.flags),
        notes=tuple(said.notes),
    )


def _refuse_others(path: Path, header: Dataset) -> None:
    kind = str(header.get("SOPClassUID", ""))
    view = str(header.get("ViewPosition", "") or "").strip().upper()
    reason, hint = "", ""
    if kind == FOR_PROCESSING or str(header.get("PresentationIntentType", "")).strip() == "FOR PROCESSING":
        reason, hint = "values of the detector, for processing", "export the image for presentation"
    elif kind not in RADIOGRAPHS:
        from pydicom.uid import UID

        reason = f"{UID(kind).name}" if kind.startswith("1.2.840.10008.") else "another kind of DICOM object"
    elif int(header.get("NumberOfFrames", 1) or 1) > 1:
        reason = "several frames"
    elif int(header.get("SamplesPerPixel", 1)) != 1 or header.get("PhotometricInterpretation") not in (
        "MONOCHROME1",
        "MONOCHROME2",
    ):
        reason = "a picture in colours"
    elif view in _SIDE_VIEWS:
        reason = "a view from the side"
    if reason:
        raise InputError(found=f"{path}: {reason}", expected=_WHAT, hint=hint)


def _grey(
    dataset: Dataset,
    raw: Shaped[np.ndarray, "H W"],
    slope: float,
    intercept: float,
    limits: Limits | None,
    said: _Said,
) -> tuple[Float64[np.ndarray, "H W"], Limits, str]:
    """Do what the header says of grey; also give what is black and white in the result, and who says so."""
    signed = bool(dataset.get("PixelRepresentation", 0))
    values: Shaped[np.ndarray, "H W"]
    if modality := _table(dataset, "ModalityLUTSequence", signed):
        values = modality(raw).astype(np.float64)
        ends = (0.0, float((1 << modality.bits) - 1))
    else:
        values = raw * np.float64(slope) + intercept
        bits = int(dataset.BitsStored)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        ends = (low * slope + intercept, high * slope + intercept)
    negative = dataset.get("PhotometricInterpretation") == "MONOCHROME1"
    shape = str(dataset.get("PresentationLUTShape", "") or "").strip()
    if shape in ("IDENTITY", "INVERSE") and (shape == "INVERSE") != negative:
        said.notes.append(
            "photometric interpretation and presentation shape contradict: the first is believed"
        )
    if limits is not None:
        return values, limits, "the table"
    shown = values
    if voi := _table(dataset, "VOILUTSequence", signed):
        shown, ends, stated_by = voi.share(values), (0.0, 1.0), "its look-up table"
    elif window := _window(dataset, said):
        shown, ends, stated_by = window(values), (0.0, 1.0), "its window"
    else:
        stated_by = "its number of bits"
    if presentation := _table(dataset, "PresentationLUTSequence", False):
        share = np.clip((shown - ends[0]) / (ends[1] - ends[0]), 0, 1)
        place = np.rint(share * (len(presentation.entries) - 1)) + presentation.first
        return presentation.share(place), Limits(0, 1), "its presentation table"
    return shown, Limits(*(ends[::-1] if negative else ends)), stated_by


def _table(dataset: Dataset, keyword: str, signed: bool) -> LookUp | None:
    items = dataset.get(keyword)
    if not items:
        return None
    item = items[0]
    data: Any = item.LUTData
    return LookUp.of(item.LUTDescriptor, data, signed)


def _window(dataset: Dataset, said: _Said) -> Window | None:
    centres, widths = (_all_of(dataset, f"Window{word}") for word in ("Center", "Width"))
    if not centres or not widths:
        return None
    if len(centres) > 1:
        said.notes.append(f"{len(centres)} windows: the first is taken")
    function = str(dataset.get("VOILUTFunction", "") or "LINEAR").strip().upper()
    return Window(centres[0], widths[0], function)


def _hidden(dataset: Dataset, raw: Shaped[np.ndarray, "H W"], said: _Said) -> Bool[np.ndarray, "H W"]:
    """Mark what is no picture: beyond a rectangular shutter, or padding."""
    rows, columns = (np.arange(1, n + 1) for n in raw.shape)
    hidden = np.zeros(raw.shape, bool)
    shapes = {str(shape).strip() for shape in _as_list(dataset.get("ShutterShape"))}
    if "RECTANGULAR" in shapes:
        left, right, upper, lower = (
            _number(dataset, f"Shutter{edge}Edge", np.nan)
            for edge in ("LeftVertical", "RightVertical", "UpperHorizontal", "LowerHorizontal")
        )
        hidden |= ((rows < upper) | (rows > lower))[:, None] | ((columns < left) | (columns > right))
    if shapes - {"RECTANGULAR"}:
        said.notes.append("a shutter that is no rectangle is not applied")
    padding = dataset.get("PixelPaddingValue")
    if isinstance(padding, int):
        other = dataset.get("PixelPaddingRangeLimit")
        ends = sorted({padding, other if isinstance(other, int) else padding})
        hidden |= (raw >= ends[0]) & (raw <= ends[-1])
    if hidden.any():
        said.notes.append(f"{hidden.mean():.0%} of the pixels are padding or behind the shutter: black")
    return hidden


def _stamp_out(grey: Float64[np.ndarray, "H W"], limits: Limits, hidden: Bool[np.ndarray, "H W"]) -> None:
    grey[hidden] = limits.black


def _upright(
    dataset: Dataset, grey: Float64[np.ndarray, "H W"], said: _Said
) -> tuple[Float64[np.ndarray, "h w"], tuple[float, float] | None]:
    """Turn the picture as it hangs on the viewing box: columns to the patient's left, rows to the feet."""
    if str(dataset.get("BurnedInAnnotation", "")).strip() == "YES":
        said.flags.append("burned-in text")
    body = str(dataset.get("BodyPartExamined", "") or "").upper()
    if body and not any(word in body for word in ("CHEST", "THORAX", "LUNG")):
        said.flags.append("another body part")
    spacing_mm = _spacing(dataset)
    letters = [str(word).strip().upper()[:1] for word in _as_list(dataset.get("PatientOrientation"))]
    if len(letters) != 2 or not all(letters):
        said.notes.append("states no orientation: the patient's right is taken to be at the left")
        return grey, spacing_mm
    if set(letters) & {"A", "P"}:
        raise InputError(found="a view from the side", expected=_WHAT)
    across, down = letters
    if across in _DOWN and down in _ACROSS:
        grey, across, down = grey.T, down, across
        spacing_mm = None if spacing_mm is None else (spacing_mm[1], spacing_mm[0])
        said.notes.append("turned upright as its orientation asks")
    if across not in _ACROSS or down not in _DOWN:
        raise InputError(found="rows and columns that run the same way", expected=_WHAT)
    if _ACROSS[across] < 0:
        said.notes.append("mirrored as its orientation asks")
    return grey[:: _DOWN[down], :: _ACROSS[across]], spacing_mm


def _spacing(dataset: Dataset) -> tuple[float, float] | None:
    for keyword in ("PixelSpacing", "ImagerPixelSpacing"):
        spacing = _all_of(dataset, keyword)
        if len(spacing) == 2 and all(0 < mm < np.inf for mm in spacing):
            return spacing[0], spacing[1]
    return None


def _as_list(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    return list(value) if not isinstance(value, str) and hasattr(value, "__iter__") else [value]


def _all_of(dataset: Dataset, keyword: str) -> list[float]:
    return [float(number) for number in _as_list(dataset.get(keyword))]


def _number(dataset: Dataset, keyword: str, otherwise: float) -> float:
    values = _all_of(dataset, keyword)
    return values[0] if values else otherwise
