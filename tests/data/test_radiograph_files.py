"""Radiographs as PNG, JPEG and NIfTI, written by other libraries, and what is wrong with some."""

from __future__ import annotations

import re

import nibabel
import numpy as np
import pytest
from PIL import Image

from radreason import InputError
from radreason.data.picture_scale import Box, part
from radreason.data.radiograph import Limits, frame_of
from radreason.data.radiograph_files import read_radiograph

RAMP = np.linspace(0, 1, 90)[:, None] * np.linspace(1, 0.5, 100)
RAMP[::2, ::2] = RAMP[::2, ::2] * 0.8 + 0.1  # no line is of one colour
EIGHT = np.rint(RAMP * 255).astype(np.uint8)
SIXTEEN = np.rint(RAMP * 65535).astype(np.uint16)


def saved(path, array, **how):
    Image.fromarray(array).save(path, **how)
    return path


def test_8_and_16_bit_pictures_have_the_range_of_their_format(tmp_path):
    assert read_radiograph(saved(tmp_path / "a.png", EIGHT)).grey == pytest.approx(EIGHT / 255, abs=1e-6)
    assert read_radiograph(saved(tmp_path / "b.PNG", SIXTEEN)).grey == pytest.approx(
        SIXTEEN / 65535, abs=1e-6
    )
    jpeg = read_radiograph(saved(tmp_path / "c.jpg", EIGHT, quality=98))
    assert jpeg.grey == pytest.approx(EIGHT / 255, abs=0.02)
    for mode in ("RGB", "RGBA", "LA", "P"):
        path = tmp_path / f"{mode}.png"
        Image.fromarray(EIGHT).convert(mode).save(path)
        assert read_radiograph(path).grey == pytest.approx(EIGHT / 255, abs=1e-6), mode


def test_a_picture_that_its_camera_laid_down_is_turned_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 3
    found = read_radiograph(saved(tmp_path / "x.png", EIGHT, exif=exif))
    assert found.grey == pytest.approx(EIGHT[::-1, ::-1] / 255, abs=1e-6)
    assert found.notes == ("turned upright as its file asks",)


def test_12_bits_in_16_are_named_and_not_stretched(tmp_path):
    path = saved(tmp_path / "x.png", (SIXTEEN >> 4))
    with pytest.raises(InputError) as caught:
        read_radiograph(path)
    assert re.fullmatch(
        rf"{re.escape(str(path))}: values from 0 to [34]\d\d\d\.?\d*, where the format has black at 0 and "
        r"white at 65535\n  expected: a picture that spans a quarter of that range\n  try: say what black "
        r"and white are: columns black and white in the table of cases",
        str(caught.value),
    )
    found = read_radiograph(path, Limits(0, 4095))
    assert found.grey == pytest.approx((SIXTEEN >> 4) / 4095, abs=1e-6)
    assert found.flags == found.notes == ()


def test_what_is_cut_off_is_flagged_with_its_share(tmp_path):
    cut = EIGHT.copy()
    cut[30:80, 20:90] = 255
    found = read_radiograph(saved(tmp_path / "x.png", cut))
    assert found.flags == ("clipped",)
    assert found.facts["white_share"] == pytest.approx((cut == 255).mean(), abs=1e-4)
    beyond = read_radiograph(saved(tmp_path / "y.png", EIGHT), Limits(30, 120))
    assert "pixels lie beyond the stated black and white" in beyond.notes
    assert beyond.grey == pytest.approx(np.clip((EIGHT.astype(float) - 30) / 90, 0, 1), abs=1e-6)
    assert read_radiograph(saved(tmp_path / "z.png", EIGHT)).flags == ()


def test_a_border_is_found_and_clipping_is_counted_within(tmp_path):
    grey = np.full((150, 160), 0, np.uint8)
    grey[20:110, 15:115] = np.maximum(EIGHT, 9)
    found = read_radiograph(saved(tmp_path / "x.png", grey))
    assert found.frame == Box(20, 15, 110, 115)
    assert found.notes == ("a border of one colour does not count as picture",)
    assert found.facts["black_share"] == 0
    assert frame_of(np.zeros((70, 70), np.float32)) == Box(0, 0, 70, 70)  # a picture of nothing has no border
    white = np.full((100, 100), 1, np.float32)
    white[5:, 3:-7] = np.random.default_rng(0).random((95, 90))
    assert frame_of(white) == Box(5, 3, 100, 93)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.stack([EIGHT, EIGHT, EIGHT // 2], -1), "% of the pixels are coloured"),
        (np.stack([EIGHT] * 3 + [EIGHT], -1), "pixels that one can look through"),
        (EIGHT[:40], "40 x 100 pixels"),
    ],
)
def test_pictures_that_are_refused(tmp_path, array, reason):
    with pytest.raises(InputError) as caught:
        read_radiograph(saved(tmp_path / "x.png", array))
    assert reason in caught.value.found


def test_files_that_are_none(tmp_path):
    (tmp_path / "x.png").write_bytes(b"no picture")
    (tmp_path / "cut.png").write_bytes(saved(tmp_path / "y.png", SIXTEEN).read_bytes()[:500])
    (tmp_path / "gif.png").write_bytes(saved(tmp_path / "g.gif", EIGHT).read_bytes())
    for name, reason in (
        ("x.png", "cannot be read: no PNG or JPEG"),
        ("gif.png", "cannot be read: no PNG or JPEG"),
        ("cut.png", "cannot be read"),
        ("none.png", "no such file"),
        (".", "a folder"),
    ):
        with pytest.raises(InputError) as caught:
            read_radiograph(tmp_path / name)
        assert reason in caught.value.found
    with pytest.raises(InputError, match="black at 3 and white at 3"):
        Limits(3, 3)


def nifti(path, array, affine):
    nibabel.save(nibabel.Nifti1Image(array, affine), path)
    return path


def test_nifti_hangs_as_its_axes_say(tmp_path):
    """In RAS the first axis runs to the patient's right, the third to the head; here the plane is coronal."""
    stored = RAMP.T[:, None, ::-1].astype(np.float32)  # columns, one slice, rows from the feet
    for name, sign, expected in (("left.nii.gz", -1, RAMP), ("right.nii.gz", 1, RAMP[:, ::-1])):
        affine = np.diag([sign * 0.2, 1.0, 0.4, 1.0])
        found = read_radiograph(nifti(tmp_path / name, stored, affine))
        assert found.grey == pytest.approx(expected, abs=1e-6)
        assert found.spacing_mm == pytest.approx((0.4, 0.2))
        assert found.notes == ()


@pytest.mark.parametrize("shape", [(100, 90), (100, 90, 1)])
def test_nifti_of_no_known_plane_stays_as_it_is(tmp_path, shape):
    found = read_radiograph(nifti(tmp_path / "x.nii", EIGHT.T.reshape(shape), np.diag([0.2, 0.4, 1.0, 1.0])))
    assert found.grey == pytest.approx(EIGHT / 255, abs=1e-6)
    assert found.notes == ("states no orientation: the patient's right is taken to be at the left",)
    assert found.spacing_mm == pytest.approx((0.4, 0.2))


def test_nifti_ranges(tmp_path):
    path = nifti(tmp_path / "x.nii", (SIXTEEN >> 6).T.astype(np.int16), np.eye(4))
    with pytest.raises(InputError, match="where a file of int16 has black at 0 and white at 32767"):
        read_radiograph(path)
    assert read_radiograph(path, Limits(0, 1023)).grey == pytest.approx((SIXTEEN >> 6) / 1023, abs=1e-6)
    floats = nifti(tmp_path / "f.nii", (RAMP.T * 255).astype(np.float32), np.eye(4))
    found = read_radiograph(floats)  # far beyond white
    assert "clipped" in found.flags
    assert "pixels lie beyond the stated black and white" in found.notes
    broken = RAMP.T.astype(np.float32)
    broken[3, 4] = np.nan
    with pytest.raises(InputError, match="pixels that are no numbers"):
        read_radiograph(nifti(tmp_path / "n.nii", broken, np.eye(4)))
    with pytest.raises(InputError, match="values of type int32"):
        read_radiograph(nifti(tmp_path / "i.nii", SIXTEEN.T.astype(np.int32), np.eye(4)))
    with pytest.raises(InputError, match="a picture in one plane"):
        read_radiograph(nifti(tmp_path / "v.nii", np.zeros((70, 70, 70), np.uint8), np.eye(4)))


def test_parts_against_loops_over_the_definition():
    rng = np.random.default_rng(0)
    picture, box, shape = rng.random((13, 17)), Box(-1.3, 2.2, 9.9, 18.6), (6, 21)
    found, outside = part(picture, box, shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            y = box.top + (i + 0.5) * (box.bottom - box.top) / shape[0]
            x = box.left + (j + 0.5) * (box.right - box.left) / shape[1]
            assert outside[i, j] == (not (0 <= y <= 13 and 0 <= x <= 17))
            total = weight = 0.0
            for a in range(13):
                for b in range(17):
                    w = max(0, 1 - abs(a + 0.5 - y) / max(1, 11.2 / 6)) * max(0, 1 - abs(b + 0.5 - x))
                    total, weight = total + w * picture[a, b], weight + w
            if weight:
                assert found[i, j] == pytest.approx(total / weight)
    mirrored, _ = part(picture[:, ::-1], Box(box.top, 17 - box.right, box.bottom, 17 - box.left), shape)
    assert mirrored == pytest.approx(found[:, ::-1])
    assert part(picture, Box(0, 0, 13, 17), (13, 17))[0] == pytest.approx(picture)
