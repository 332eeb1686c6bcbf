"""Radiographs as pictures: PNG and JPEG, 8 to 16 bit, grey or grey written as colours."""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from radreason.data.radiograph import Limits, Radiograph, radiograph
from radreason.errors import InputError
from radreason.input_files import read_bytes

ENDINGS = (".png", ".jpg", ".jpeg")

MAX_BYTES = 512 << 20
MAX_PIXELS = 100_000_000

_WHAT = "a grey radiograph as PNG or JPEG"
_EIGHT, _SIXTEEN = Limits(0, 255), Limits(0, 65535)


def read_picture(path: Path, limits: Limits | None = None) -> Radiograph:
    """Read a picture; without ``limits`` black and white are the least and the largest its format has."""
    values, own, notes = _values(path)
    stated_by = "the format" if limits is None else "the table"
    return radiograph(values, limits or own, str(path), stated_by=stated_by, notes=notes)


def read_mask(path: Path) -> Shaped[np.ndarray, "H W"]:
    """Read a drawn mask: what is not black is inside."""
    return _values(path)[0] > 0


def _values(path: Path) -> tuple[Shaped[np.ndarray, "H W"], Limits, tuple[str, ...]]:
    from PIL import Image, ImageOps

    content = read_bytes(path, MAX_BYTES, _WHAT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(BytesIO(content), formats=("PNG", "JPEG")) as picture:
                if picture.width * picture.height > MAX_PIXELS:
                    raise InputError(
                        found=f"{path}: {picture.width} x {picture.height} pixels",
                        expected=f"at most {MAX_PIXELS:,} pixels",
                    )
                n_pictures = getattr(picture, "n_frames", 1)
                if n_pictures != 1:
                    raise InputError(found=f"{path}: {n_pictures} pictures in one file", expected=_WHAT)
                picture.load()
                turned = picture.getexif().get(0x0112, 1) != 1
                upright = ImageOps.exif_transpose(picture) if turned else picture
    except InputError:
        raise
    except Exception as error:  # a damaged file raises what its bytes happen to mean
        reason = " ".join(str(error).split()).replace(repr(error), "")
        short = "no PNG or JPEG" if "cannot identify" in reason else reason[:100]
        raise InputError(found=f"{path}: cannot be read: {short}", expected=_WHAT) from None
    notes = ("turned upright as its file asks",) if turned else ()
    if upright.mode in ("I;16", "I;16B", "I;16L", "I"):
        return np.asarray(upright).astype(np.int64), _SIXTEEN, notes
    if upright.mode in ("1", "L"):
        return np.asarray(upright.convert("L")).astype(np.int64), _EIGHT, notes
    if upright.mode not in ("LA", "P", "PA", "RGB", "RGBA"):
        raise InputError(found=f"{path}: a picture of the kind {upright.mode}", expected=_WHAT)
    return _grey_of_colours(path, np.asarray(upright.convert("RGBA"))), _EIGHT, notes


def _grey_of_colours(path: Path, colours: Shaped[np.ndarray, "H W 4"]) -> Shaped[np.ndarray, "H W"]:
    """Take the one channel that three repeat."""
    if (colours[..., 3] < 255).any():
        raise InputError(found=f"{path}: pixels that one can look through", expected=_WHAT)
    channels = colours[..., :3].astype(np.int64)
    coloured = float((np.ptp(channels, axis=2) > 0).mean())
    if coloured:
        raise InputError(
            found=f"{path}: {coloured:.1%} of the pixels are coloured",
            expected=_WHAT,
            hint="a copy without marks and colours: what was drawn on a radiograph is no part of it",
        )
    return channels[..., 0]
