"""Small made-up radiographs of known answers, as pictures and as DICOM: for tests and first trials.

They are phantoms: ellipses where lungs, heart and spine would be, in no patient. Whatever a header can say
of grey can be asked for, so that reading it can be tried.

Shape letters: H rows, W columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from radreason.data.picture_scale import Box

_KIND = {
    "CR": "1.2.840.10008.5.1.4.1.1.1",
    "DX": "1.2.840.10008.5.1.4.1.1.1.1",
    "for processing": "1.2.840.10008.5.1.4.1.1.1.1.1",
    "mammogram": "1.2.840.10008.5.1.4.1.1.1.2",
    "secondary capture": "1.2.840.10008.5.1.4.1.1.7",
}

Kind = Literal["CR", "DX", "for processing", "mammogram", "secondary capture"]


@dataclass(frozen=True, eq=False)
class PhantomChest:
    """A drawn chest: grey from 0 to 1, and the lungs, 1 at the left of the picture and 2 at its right."""

    grey: Float64[np.ndarray, "H W"]
    lungs: Int64[np.ndarray, "H W"]


def phantom_chest(
    shape: tuple[int, int] = (256, 256), shift: float = 0.0, noise: float = 0.02, seed: int = 0
) -> PhantomChest:
    """Draw lungs, heart, spine, ribs and shoulders; ``shift`` moves it across, in widths."""
    rows, columns = shape
    y = ((np.arange(rows) + 0.5) / rows)[:, None]
    x = ((np.arange(columns) + 0.5) / columns)[None, :] - shift
    body = _ellipse(y, x, Box(0.05, 0.02, 1.5, 0.98)) | (abs(x - 0.5) < 0.1) & (y < 0.3)
    right = _ellipse(y, x, Box(0.12, 0.14, 1.05, 0.46)) & (y < 0.78 + 1.2 * (x - 0.3) ** 2)
    left = _ellipse(y, x, Box(0.12, 0.54, 1.05, 0.86)) & (y < 0.8 + 1.2 * (x - 0.7) ** 2)
    heart = _ellipse(y, x, Box(0.46, 0.4, 0.84, 0.68))
    grey = np.where(body, 0.72, 0.04)
    for lung in (right, left):
        grey = np.where(lung, 0.3 + 0.1 * y, grey)
    ribs = 0.08 * (np.sin(2 * np.pi * (9 * y + 6 * (x - 0.5) ** 2)) > 0.5) * body
    grey = grey + ribs + 0.15 * (abs(x - 0.5) < 0.035) * body
    grey = np.where(heart, 0.85, grey)
    grey = grey + np.random.default_rng(seed).normal(0, noise, shape)
    lungs = np.where(right & ~heart, 1, np.where(left & ~heart, 2, 0)).astype(np.int64)
    return PhantomChest(np.clip(grey, 0, 1), lungs)


def write_radiograph(
    path: Path | str,
    stored: Shaped[np.ndarray, "H W"],
    *,
    kind: Kind = "DX",
    bits: int = 12,
    signed: bool = False,
    negative: bool = False,
    tables: Mapping[str, tuple[Sequence[int], Sequence[int] | Int64[np.ndarray, " n"]]] | None = None,
    **elements: Any,
) -> None:
    """Write stored values as DICOM. ``negative`` is MONOCHROME1; ``elements`` are others, by keyword.

    ``tables`` are look-up tables by the keyword of their sequence: the descriptor and the entries.
    """
    from pydicom import Dataset
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import UID, generate_uid

    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = UID("1.2.840.10008.1.2.1")
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = UID(_KIND[kind])
    instance = generate_uid(entropy_srcs=[f"radreason phantom radiograph {path}"])
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID = instance
    dataset.PatientID, dataset.Modality = "PHANTOM-1", "CR" if kind == "CR" else "DX"
    dataset.Rows, dataset.Columns = stored.shape
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME1" if negative else "MONOCHROME2"
    allocated = 8 if bits <= 8 else 16
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = allocated, bits, bits - 1
    dataset.PixelRepresentation = int(signed)
    dataset.PixelData = stored.astype(f"<{'i' if signed else 'u'}{allocated // 8}").tobytes()
    dataset["PixelData"].VR = "OW" if allocated == 16 else "OB"
    for keyword, (descriptor, entries) in (tables or {}).items():
        item = Dataset()
        item.add_new("LUTDescriptor", "SS" if signed and descriptor[1] < 0 else "US", list(descriptor))
        item.add_new("LUTData", "OW", np.asarray(entries, "<u2").tobytes())
        setattr(dataset, keyword, [item])
    for keyword, value in elements.items():
        setattr(dataset, keyword, value)
    dataset.save_as(Path(path), enforce_file_format=True)


def _ellipse(
    y: Float64[np.ndarray, "H 1"], x: Float64[np.ndarray, "1 W"], box: Box
) -> Bool[np.ndarray, "H W"]:
    inside: Bool[np.ndarray, "H W"] = (
        ((y - (box.top + box.bottom) / 2) / (box.height / 2)) ** 2
        + ((x - (box.left + box.right) / 2) / (box.width / 2)) ** 2
    ) <= 1
    return inside
