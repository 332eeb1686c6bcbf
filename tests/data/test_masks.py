"""Masks from every kind of file, of a ball of known place and size; outlines filled point by point."""

from __future__ import annotations

import random
from contextlib import suppress
from fractions import Fraction

import highdicom
import numpy as np
import pydicom
import pytest
from pydicom.sr.codedict import codes

from radreason import InputError
from radreason.data.dicom import read_series
from radreason.data.dicom_index import quiet
from radreason.data.image_files import write_image
from radreason.data.masks import centre_mm, diameter_mm, read_mask
from radreason.data.outline_mask import agreement, centre_of_outlines_mm, fill, mask_of_outlines
from radreason.data.outline_size import pixels_inside
from radreason.data.reading import Outline
from radreason.data.synthetic import Ball, outlines_of, phantom_scan, write_series
from radreason.data.volume import Volume

A = np.radians(20)
OBLIQUE = np.array([[np.cos(A), -np.sin(A), 0], [np.sin(A), np.cos(A), 0], [0, 0, 1]])
BALL = Ball((3.2, -4.1, 2.4), 12)
OTHER = Ball((-8.0, 6.0, -5.0), 6)


def scan(turn=None):
    return phantom_scan([BALL, OTHER], (24, 60, 70), (1.5, 0.7, 0.7), turn)


def voxels_of(ball, scan):
    index = np.stack(np.meshgrid(*map(np.arange, scan.shape), indexing="ij"), -1)
    return np.linalg.norm(scan.to_mm(index) - ball.centre_mm, axis=-1) < ball.diameter_mm / 2


def within(x, y, polygon):
    """By definition: an odd number of sides to the right, and on none of them, in exact fractions."""
    odd = False
    for (x0, y0), (x1, y1) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        cross = (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)
        if cross == 0 and min(x0, x1) <= x <= max(x0, x1) and min(y0, y1) <= y <= max(y0, y1):
            return False
        if (y0 > y) != (y1 > y) and x < x0 + Fraction((x1 - x0) * (y - y0), y1 - y0):
            odd = not odd
    return odd


def test_filling_is_the_definition():
    for n in range(80):
        rng = random.Random(n)
        corners = [(rng.randint(-2, 11), rng.randint(-2, 11)) for _ in range(rng.randint(1, 7))]
        filled = fill(np.array(corners, float), (10, 9))
        expected = [[within(x, y, corners) for x in range(9)] for y in range(10)]
        assert filled.tolist() == expected, corners


def test_filling_counts_what_the_size_counts():
    for outline in outlines_of(BALL, scan()):
        assert fill(outline.xy, (60, 70)).sum() == pixels_inside(outline.xy)


@pytest.mark.parametrize("turn", [None, OBLIQUE], ids=["axial", "turned"])
def test_outlines_give_the_ball(turn):
    volume = scan(turn)
    outlines = outlines_of(BALL, volume)
    mask = mask_of_outlines(volume, outlines)
    assert centre_mm(mask) == pytest.approx(BALL.centre_mm, abs=0.2)
    assert diameter_mm(mask) == pytest.approx(12, abs=0.3)
    assert centre_of_outlines_mm(volume, outlines) == pytest.approx(BALL.centre_mm, abs=0.2)
    ball = voxels_of(BALL, volume)
    assert mask.array.sum() == pytest.approx(ball.sum(), rel=0.05)
    corner = tuple(np.rint(volume.to_index(mask.to_mm((0, 0, 0)))).astype(int).tolist())
    whole = np.zeros(volume.shape)
    whole[tuple(slice(c, c + n) for c, n in zip(corner, mask.shape, strict=True))] = mask.array
    assert 2 * (whole * ball).sum() / (whole.sum() + ball.sum()) > 0.96


def test_readers_agree_by_share():
    volume = scan()
    large, small = (outlines_of(Ball(BALL.centre_mm, d), volume) for d in (12, 8))
    share = agreement(volume, [large, large, small, small])
    assert set(np.unique(share.array)) == {0, 0.5, 1}
    assert np.cbrt(6 / np.pi * (share.array == 1).sum() * 1.5 * 0.7**2) == pytest.approx(8, abs=0.3)
    assert diameter_mm(share) == pytest.approx(12, abs=0.3)


def test_the_centre_of_shares_leans_to_where_more_readers_agree():
    share = Volume(np.array([[[0, 0.25, 0.75]]]), np.eye(4)[[2, 1, 0, 3]])
    assert centre_mm(share) == pytest.approx((1.75, 0, 0))


def test_holes():
    square = np.array([[0, 0], [10, 0], [10, 10], [0, 10.0]])
    inner = square * 0.4 + 3
    volume = Volume(np.zeros((3, 20, 20), np.int16), np.diag([1.0, 1, 1, 1])[[2, 1, 0, 3]])
    whole = mask_of_outlines(volume, [Outline(1, square)])
    assert whole.array.sum() == 81
    for inside in (True, False):  # a curve in a curve, or one that is marked as a hole
        holed = mask_of_outlines(volume, [Outline(1, square), Outline(1, inner, inside)])
        assert holed.array.sum() == 81 - 9
        assert holed.shape == whole.shape


@pytest.mark.parametrize(
    ("outline", "said"),
    [
        (Outline(99, np.ones((3, 2))), "an outline at z = 99 mm"),
        (Outline(0, np.ones((3, 2))), "an outline at z = 0 mm"),
        (Outline(0.75, np.full((3, 2), 700.0)), "reaches column 700 and row 700"),
    ],
)
def test_outlines_of_another_series(outline, said):
    with pytest.raises(InputError, match=said):
        mask_of_outlines(scan(), [outline])


def test_no_outlines():
    with pytest.raises(InputError, match="without outlines"):
        agreement(scan(), [[]])


@pytest.mark.parametrize("ending", [".nii.gz", ".mha"])
def test_a_mask_image(tmp_path, ending):
    volume = scan(OBLIQUE)
    write_image(tmp_path / f"mask{ending}", Volume(voxels_of(BALL, volume), volume.affine))
    mask = read_mask(tmp_path / f"mask{ending}", volume)
    assert np.array_equal(mask.array, voxels_of(BALL, volume))
    assert centre_mm(mask) == pytest.approx(BALL.centre_mm, abs=0.1)
    assert diameter_mm(mask) == pytest.approx(12, abs=0.1)


def test_labels_of_an_image(tmp_path):
    volume = scan()
    labels = voxels_of(BALL, volume) * 1 + voxels_of(OTHER, volume) * 4
    write_image(tmp_path / "mask.mha", Volume(labels.astype(np.uint8), volume.affine))
    assert centre_mm(read_mask(tmp_path / "mask.mha", label="4")) == pytest.approx(OTHER.centre_mm, abs=0.1)
    with pytest.raises(InputError, match="2 labels: 1, 4"):
        read_mask(tmp_path / "mask.mha")
    with pytest.raises(InputError, match="unknown label"):
        read_mask(tmp_path / "mask.mha", label="2")


def test_images_that_are_no_mask(tmp_path):
    volume = scan()
    path = tmp_path / "mask.mha"
    write_image(path, Volume(voxels_of(BALL, volume), volume.affine * [1, 1, -1, 1]))
    with pytest.raises(InputError, match="as many voxels as the scan, but up to"):
        read_mask(path, volume)
    write_image(path, Volume(np.zeros((3, 3, 3), np.uint8), np.eye(4)))
    with pytest.raises(InputError, match="an empty mask"):
        read_mask(path)
    write_image(path, Volume(np.random.default_rng(0).normal(size=(3, 3, 3)), np.eye(4)))
    with pytest.raises(InputError, match="27 different values"):
        read_mask(path)
    with pytest.raises(InputError, match="no such file"):
        read_mask(tmp_path / "nowhere.mha")
    (tmp_path / "text.dcm").write_text("a text")
    with pytest.raises(InputError, match=r"text\.dcm: not DICOM"):
        read_mask(tmp_path / "text.dcm")


def segmentation(folder, balls, turn=None):
    """Made by highdicom; frames without a voxel are left out, as usual."""
    volume = scan(turn)
    write_series(folder / "series", volume)
    slices = [pydicom.dcmread(path) for path in (folder / "series").iterdir()]
    for dataset in slices:
        for keyword in ("PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID"):
            setattr(dataset, keyword, "")
        dataset.StudyDate = dataset.StudyTime = ""
    slices.sort(key=lambda d: float(d.ImagePositionPatient[2]))
    described = [
        highdicom.seg.SegmentDescription(
            n + 1, f"nodule {'ab'[n]}", codes.SCT.Tissue, codes.SCT.Nodule, "MANUAL"
        )
        for n in range(len(balls))
    ]
    made = highdicom.seg.Segmentation(
        slices,
        np.stack([voxels_of(ball, volume) for ball in balls], -1).astype(np.uint8),
        "BINARY",
        described,
        *("1.2.3.4", 1, "1.2.3.5", 1, "nobody", "nothing", "0", "0"),
    )
    made.save_as(folder / "mask.dcm")
    return read_series(folder / "series")


@pytest.mark.parametrize("turn", [None, OBLIQUE], ids=["axial", "turned"])
def test_a_segmentation(tmp_path, turn):
    with quiet():
        volume = segmentation(tmp_path, [BALL, OTHER], turn)
    for label, ball in (("nodule a", BALL), ("2", OTHER)):
        mask = read_mask(tmp_path / "mask.dcm", volume, label)
        assert mask.array.sum() == voxels_of(ball, volume).sum()
        assert centre_mm(mask) == pytest.approx(ball.centre_mm, abs=0.1)
    with pytest.raises(InputError, match="2 labels: nodule a, nodule b"):
        read_mask(tmp_path / "mask.dcm", volume)
    with pytest.raises(InputError, match=r"unknown label[\s\S]*nodule a"):
        read_mask(tmp_path / "mask.dcm", volume, "nodule")


def structures(path, volume, rings):
    """Circles in planes of the scan: name of structure, ball, plane by plane."""
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.481.3"
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    dataset.Modality = "RTSTRUCT"
    dataset.StructureSetROISequence, dataset.ROIContourSequence = [], []
    normal, down, across = (volume.affine[:3, :3] / volume.spacing_mm).T
    for number, (name, balls) in enumerate(rings, 7):
        roi, drawn = pydicom.Dataset(), pydicom.Dataset()
        roi.ROINumber, roi.ROIName, drawn.ReferencedROINumber = number, name, number
        drawn.ContourSequence = []
        for ball in balls:
            for k in range(volume.shape[0]):
                height = (volume.to_mm((k, 0, 0)) - ball.centre_mm) @ normal
                square = (ball.diameter_mm / 2) ** 2 - height**2
                if square <= 0:
                    continue
                turn = np.linspace(0, 2 * np.pi, 200, endpoint=False)[:, None]
                ring = ball.centre_mm + height * normal
                ring = ring + np.sqrt(square) * (np.cos(turn) * across + np.sin(turn) * down)
                contour = pydicom.Dataset()
                contour.ContourGeometricType = "CLOSED_PLANAR"
                contour.NumberOfContourPoints = len(ring)
                contour.ContourData = [f"{number:.6f}" for number in ring.ravel().tolist()]
                drawn.ContourSequence.append(contour)
        dataset.StructureSetROISequence.append(roi)
        dataset.ROIContourSequence.append(drawn)
    dataset.save_as(path, enforce_file_format=True)


@pytest.mark.parametrize("turn", [None, OBLIQUE], ids=["axial", "turned"])
def test_structures(tmp_path, turn):
    volume = scan(turn)
    shell = [BALL, Ball(BALL.centre_mm, 6)]
    structures(tmp_path / "rt.dcm", volume, [("GTV", [BALL]), ("shell", shell)])
    mask = read_mask(tmp_path / "rt.dcm", volume, "GTV")
    ball, hole = voxels_of(BALL, volume), voxels_of(shell[1], volume)
    assert (mask.array != ball).sum() <= 0.001 * ball.sum()
    assert (read_mask(tmp_path / "rt.dcm", volume, "8").array != (ball & ~hole)).sum() <= 0.001 * ball.sum()
    with pytest.raises(InputError, match="2 labels: GTV, shell"):
        read_mask(tmp_path / "rt.dcm", volume)
    with pytest.raises(InputError, match="no grid of their own"):
        read_mask(tmp_path / "rt.dcm")
    elsewhere = Volume(
        volume.array, volume.affine + np.array([[0, 0, 0, 0]] * 2 + [[0, 0, 0, 0.7]] + [[0] * 4])
    )
    with pytest.raises(InputError, match="a curve from slice"):
        read_mask(tmp_path / "rt.dcm", elsewhere, "GTV")


def test_damaged_structures(tmp_path):
    volume = scan()
    path = tmp_path / "rt.dcm"
    structures(path, volume, [("GTV", [OTHER])])
    whole = path.read_bytes()
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            damaged[random.randrange(132, 1200)] = random.randrange(256)
        path.write_bytes(damaged)
        with suppress(InputError):
            read_mask(path, volume)


def test_dicom_of_another_kind(tmp_path):
    write_series(tmp_path, phantom_scan([], (2, 8, 8)))
    with pytest.raises(InputError, match="DICOM of modality CT"):
        read_mask(tmp_path / "PHANTOM-1-0-000.dcm")


@pytest.mark.parametrize("nothing", [0.0, np.nan, np.inf])
@pytest.mark.parametrize("ending", [".nii.gz", ".mha"])
def test_what_is_no_number_is_not_in_a_mask(tmp_path, nothing, ending):
    array = np.full((4, 5, 6), nothing, np.float32)
    array[1, 2, 3] = 1
    write_image(tmp_path / f"mask{ending}", Volume(array, np.eye(4)))
    assert np.argwhere(read_mask(tmp_path / f"mask{ending}").array).tolist() == [[1, 2, 3]]
