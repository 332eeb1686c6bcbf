"""The stored values of one DICOM image, decoded, or the reason why not in words that quote no header."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped

from radreason.data.dicom_index import quiet
from radreason.errors import InputError

if TYPE_CHECKING:
    from pydicom import FileDataset

BY_ITK = tuple(f"1.2.840.10008.1.2.4.{n}" for n in (50, 51, 57, 70))
"""Transfer syntaxes of the first JPEG, which SimpleITK decodes and pydicom's free decoders do not."""


def decoded(
    path: Path, slope: float = 1.0, intercept: float = 0.0
) -> tuple[FileDataset, Shaped[np.ndarray, ...]]:
    """Give a file and the values that are stored in it; the rescaling of its header is not applied."""
    import pydicom
    from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian

    try:
        with quiet():
            dataset = pydicom.dcmread(path, force=True)
            if "TransferSyntaxUID" not in dataset.file_meta:
                dataset.file_meta.TransferSyntaxUID = (
                    ImplicitVRLittleEndian if dataset.original_encoding[0] else ExplicitVRLittleEndian
                )
            by_itk = dataset.file_meta.TransferSyntaxUID in BY_ITK
            raw = _decoded_by_itk(path, slope, intercept) if by_itk else dataset.pixel_array
            if by_itk and dataset.get("PhotometricInterpretation") == "MONOCHROME1":
                raw = (1 << int(dataset.BitsStored)) - 1 - raw  # ITK has turned the negative round
    except Exception as error:  # decoders raise whatever the damage brings about
        kind = "not enough memory" if isinstance(error, MemoryError) else " ".join(str(error).split())[:160]
        raise InputError(
            found=f"{path}: pixels cannot be decoded: {kind or type(error).__name__}",
            expected="one whole image, not compressed or as JPEG, JPEG-LS, JPEG 2000 or RLE",
        ) from None
    return dataset, raw


def _decoded_by_itk(path: Path, slope: float, intercept: float) -> Shaped[np.ndarray, "rows columns"]:
    """Give the stored values: ITK rescales while it decodes, which is undone here."""
    import SimpleITK

    SimpleITK.ProcessObject.SetGlobalWarningDisplay(False)
    image = SimpleITK.ReadImage(str(path), imageIO="GDCMImageIO")
    rescaled = SimpleITK.GetArrayFromImage(image)[0]
    stored: Shaped[np.ndarray, "rows columns"] = np.rint((rescaled - np.float64(intercept)) / slope)
    return stored.astype(np.int32)
