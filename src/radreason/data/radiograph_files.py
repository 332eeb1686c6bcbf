"""A radiograph from whatever file it is in: DICOM, PNG, JPEG or NIfTI.

Shape letters: H, W picture as stored; h, w as it hangs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from radreason.data.radiograph import Limits, Radiograph, radiograph
from radreason.data.radiograph_pictures import ENDINGS, read_picture
from radreason.errors import InputError

_WHAT = "a radiograph as DICOM, PNG, JPEG or NIfTI"
_ALONG = 0.9


def read_radiograph(path: Path | str, limits: Limits | None = None) -> Radiograph:
    """Read a radiograph; ``limits`` say what is black and white, whatever the file says.

    A file is known by the end of its name; without a known one it counts as DICOM, which often has none.
    """
    path = Path(path)
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no such file"
        raise InputError(found=f"{path}: {kind}", expected=_WHAT)
    name = path.name.lower()
    if name.endswith(ENDINGS):
        return read_picture(path, limits)
    if name.endswith((".nii", ".nii.gz")):
        return _read_nifti(path, limits)
    from radreason.data.radiograph_dicom import read_dicom_radiograph

    return read_dicom_radiograph(path, limits)


def _read_nifti(path: Path, limits: Limits | None) -> Radiograph:
    """Read a picture in one plane; black and white are those of its type, or 0 and 1 for floats."""
    from radreason.data.image_files import read_image

    volume = read_image(path, flat=True)
    if volume.array.dtype.kind == "f":
        own, stated_by = Limits(0, 1), "a file of floats"
    elif volume.array.dtype.itemsize <= 2:
        own = Limits(0, int(np.iinfo(volume.array.dtype).max))
        stated_by = f"a file of {volume.array.dtype}"
    elif limits is None:
        raise InputError(
            found=f"{path}: values of type {volume.array.dtype}",
            expected="8 or 16 bit, or floats from 0 to 1",
            hint="say what black and white are: columns black and white in the table of cases",
        )
    flat = [axis for axis in range(3) if volume.array.shape[axis] == 1]
    if not flat:
        raise InputError(
            found=f"{path}: {' x '.join(map(str, volume.array.shape))} voxels",
            expected="a picture in one plane",
        )
    kept = [axis for axis in range(3) if axis != flat[0]]
    picture = np.squeeze(volume.array, flat[0])
    directions = (volume.affine[:3, :3] / volume.spacing_mm)[:, kept]
    picture, order, notes = _upright(picture, directions)
    spacing = [volume.spacing_mm[kept[axis]] for axis in order]
    return radiograph(
        picture,
        limits or own,
        str(path),
        stated_by="the table" if limits else stated_by,
        spacing_mm=(spacing[0], spacing[1]),
        notes=notes,
    )


def _upright(
    picture: Shaped[np.ndarray, "H W"], directions: Shaped[np.ndarray, "3 2"]
) -> tuple[Shaped[np.ndarray, "h w"], tuple[int, int], tuple[str, ...]]:
    """Turn a picture that lies in the plane of the chest as it hangs on the viewing box.

    Any other plane is what programs write that know nothing of a patient: such a picture stays as it is.
    """
    across, down = directions[0], directions[2]
    for order in ((0, 1), (1, 0)):
        rows, columns = order
        if abs(down[rows]) >= _ALONG and abs(across[columns]) >= _ALONG:
            turned = picture if order == (0, 1) else picture.T
            flips = (
                slice(None, None, -1 if down[rows] > 0 else 1),
                slice(None, None, -1 if across[columns] < 0 else 1),
            )
            return turned[flips], order, ()
    return picture, (0, 1), ("states no orientation: the patient's right is taken to be at the left",)
