"""Images in one file: NIfTI, MetaImage and NRRD, with the orientation that the file states."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64

from radreason.data.volume import Volume
from radreason.errors import InputError, unknown

if TYPE_CHECKING:
    import SimpleITK

READERS = {
    ".nii": "NiftiImageIO",
    ".nii.gz": "NiftiImageIO",
    ".mha": "MetaImageIO",
    ".mhd": "MetaImageIO",
    ".nrrd": "NrrdImageIO",
}
"""What reads a file, by the end of its name: what is inside has no say in it."""

MAX_VOXELS = 1 << 31

_FLOATS = ("16", "64")
_HEADER_BYTES = (348, 540)
"""How NIfTI says that voxels are floats, and how its headers begin: with their own length."""

_WHAT = "one three-dimensional image in one channel, as NIfTI, MetaImage or NRRD"


def is_image_file(path: Path | str) -> bool:
    """Say whether the name is one of an image file."""
    return _ending(Path(path)) in READERS


def read_image(path: Path | str, flat: bool = False) -> Volume:
    """Read an image file; values stay as they are, which for a CT scan should be HU.

    ``flat`` also takes a file of two dimensions, as one slice, whose orientation does not count.
    """
    import SimpleITK

    path = Path(path)
    ending = _ending(path)
    if ending not in READERS:
        raise unknown(f"ending of {path}:", ending, READERS)
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no such file"
        raise InputError(found=f"{path}: {kind}", expected=_WHAT)
    reader = SimpleITK.ImageFileReader()
    reader.SetImageIO(READERS[ending])
    reader.SetFileName(str(path))
    try:
        reader.ReadImageInformation()
        _refuse_other_shapes(path, reader, 2 if flat else 3)
        no_number = _without_number(path, reader) if ending.startswith(".nii") else None
        image = reader.Execute()
    except RuntimeError as error:
        raise InputError(found=f"{path}: cannot be read: {_reason(error)}", expected=_WHAT) from None
    array = SimpleITK.GetArrayFromImage(image)
    if no_number is not None and len(no_number):
        array.flat[no_number] = np.nan
    if array.ndim == 2:
        across_mm, down_mm = image.GetSpacing()
        return Volume(
            array[None], np.array([[0, 0, across_mm, 0], [0, down_mm, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1.0]])
        )
    return Volume(array.reshape(array.shape[-3:]), _affine_of(image), _notes(path, reader))


def write_image(path: Path | str, volume: Volume) -> None:
    """Write a volume where any viewer can open it."""
    import SimpleITK

    array = volume.array.astype(np.uint8) if volume.array.dtype == bool else volume.array
    image = SimpleITK.GetImageFromArray(array)
    image.SetSpacing(volume.spacing_mm[::-1])
    image.SetOrigin(volume.affine[:3, 3].tolist())
    image.SetDirection((volume.affine[:3, :3] / volume.spacing_mm)[:, ::-1].ravel().tolist())
    try:
        SimpleITK.WriteImage(image, str(path))
    except RuntimeError as error:
        raise InputError(
            found=f"{path}: cannot be written: {_reason(error)}",
            expected="a place where files may be written, and a name that ends in .nii.gz or .mha",
        ) from None


def _ending(path: Path) -> str:
    name = path.name.lower()
    return ".nii.gz" if name.endswith(".nii.gz") else path.suffix.lower()


def _refuse_other_shapes(path: Path, reader: SimpleITK.ImageFileReader, least: int = 3) -> None:
    size, channels = reader.GetSize(), reader.GetNumberOfComponents()
    if len(size) < least or any(length > 1 for length in size[3:]) or channels > 1:
        shape = " x ".join(map(str, size)) + (
            f" voxels of {channels} channels" if channels > 1 else " voxels"
        )
        raise InputError(found=f"{path}: {shape}", expected=_WHAT)
    if np.prod(size, dtype=float) > MAX_VOXELS:
        raise InputError(
            found=f"{path}: {' x '.join(map(str, size))} voxels", expected=f"at most {MAX_VOXELS:,} voxels"
        )


def _without_number(path: Path, reader: SimpleITK.ImageFileReader) -> Int64[np.ndarray, " n"]:
    """Find the voxels of a NIfTI file that are NaN or infinite, which ITK would read as 0: as water.

    A file that ends early or is damaged inside is refused: ITK would read that without a word, too.
    """
    bits, start = (int(float(reader.GetMetaData(key))) for key in ("bitpix", "vox_offset"))
    needed = start + int(np.prod(reader.GetSize(), dtype=float)) * bits // 8
    is_float = reader.GetMetaData("datatype").strip() in _FLOATS
    places = []
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            head = stream.read(start)
            order = "<" if int.from_bytes(head[:4], "little") in _HEADER_BYTES else ">"
            found = len(head)
            while chunk := stream.read(1 << 20):
                if is_float:
                    size = bits // 8
                    numbers = np.frombuffer(chunk[: len(chunk) // size * size], f"{order}f{size}")
                    places.append(np.flatnonzero(~np.isfinite(numbers)) + (found - start) // size)
                found += len(chunk)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(found=f"{path}: cannot be read: {error}", expected=_WHAT) from None
    if found < needed:
        raise InputError(
            found=f"{path}: cannot be read: ends after {found:,} bytes",
            expected=f"{needed:,}, as its header says",
        )
    voxels = int(np.prod(reader.GetSize(), dtype=float))
    without = np.concatenate([np.empty(0, np.int64), *places])
    return without[without < voxels]


def _affine_of(image: SimpleITK.Image) -> np.ndarray:
    n: int = image.GetDimension()
    affine = np.eye(4)
    direction = np.array(image.GetDirection()).reshape(n, n)[:3, :3]
    affine[:3, :3] = (direction * image.GetSpacing()[:3])[:, ::-1]
    affine[:3, 3] = image.GetOrigin()[:3]
    return affine


def _notes(path: Path, reader: SimpleITK.ImageFileReader) -> tuple[str, ...]:
    codes = [reader.GetMetaData(key) for key in ("qform_code", "sform_code") if reader.HasMetaDataKey(key)]
    if codes and not any(code.strip() not in {"", "0", "NIFTI_XFORM_UNKNOWN"} for code in codes):
        return (
            f"{path.name}: states no orientation; columns are taken to run to the right, rows to the front",
        )
    return ()


def _reason(error: RuntimeError) -> str:
    """Take the sentence that says what is wrong out of ITK's account of where in ITK it was noticed."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[-1].removeprefix("ITK ERROR: ") if lines else "unknown format"
    return re.sub(r"\w+\(0x[0-9a-f]+\): ", "", said)[:200]  # addresses differ from run to run
