"""Series of phantoms, tidy and not: each read right, or refused with the names of the files."""

from __future__ import annotations

import os
import random
import re
from contextlib import suppress

import highdicom
import numpy as np
import pydicom
import pytest
import SimpleITK

from radreason import InputError
from radreason.data.dicom import find_series, read_series
from radreason.data.dicom_index import quiet
from radreason.data.synthetic import Ball, Untidy, phantom_scan, write_series
from radreason.data.volume import Volume

A = np.radians(20)
OBLIQUE = np.array([[1, 0, 0], [0, np.cos(A), -np.sin(A)], [0, np.sin(A), np.cos(A)]]) @ np.array(
    [[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]]
)
SAGITTAL = np.array([[0, 0, 1], [1, 0, 0], [0, 1.0, 0]])


def scan(turn=None, shape=(12, 36, 32)):
    return phantom_scan([Ball((2, 1, 3), 8)], shape, (2.5, 0.7, 0.8), turn, noise_hu=30)


def refusal(folder, **how):
    with pytest.raises(InputError) as error:
        read_series(folder, **how)
    return str(error.value)


def at(folder, scan, k):
    """The files whose slice lies at place ``k`` of the scan."""
    found = []
    for path in sorted(folder.glob("*.dcm")):
        position = np.array(pydicom.dcmread(path).ImagePositionPatient, float)
        if np.linalg.norm(position - scan.to_mm((k, 0, 0))) < 0.1:
            found.append(path.name)
    return found


@pytest.mark.parametrize("turn", [None, OBLIQUE, SAGITTAL], ids=["axial", "oblique", "sagittal"])
def test_voxels_and_their_places(tmp_path, turn):
    volume = scan(turn)
    write_series(tmp_path, volume)
    read = read_series(tmp_path)
    assert read.array.dtype == np.int16
    assert np.array_equal(read.array, volume.array)
    assert read.affine == pytest.approx(volume.affine, abs=1e-6)
    assert read.notes == ()
    witness = highdicom.get_volume_from_series([pydicom.dcmread(path) for path in tmp_path.iterdir()])
    for k, pixels in enumerate(witness.array):
        place = read.to_index(witness.affine[:3, 0] * k + witness.affine[:3, 3])
        assert place == pytest.approx((round(place[0]), 0, 0), abs=1e-4)
        assert np.array_equal(pixels, read.array[round(place[0])])
    assert read.affine[:3, 1:3] == pytest.approx(witness.affine[:3, 1:3], abs=1e-6)


def test_slices_stored_from_head_to_foot_are_the_same_volume(tmp_path):
    volume = scan()
    affine = volume.affine.copy()
    affine[:3, 3] = volume.to_mm((11, 0, 0))
    affine[:3, 0] *= -1
    write_series(tmp_path, Volume(volume.array[::-1], affine))
    read = read_series(tmp_path)
    assert np.array_equal(read.array, volume.array)
    assert read.affine == pytest.approx(volume.affine)


@pytest.mark.parametrize("compression", ["implicit", "jpeg2000", "jpeg-ls", "rle"])
@pytest.mark.parametrize("intercept", [-1024, 0])
def test_compressed_pixels(tmp_path, compression, intercept):
    write_series(tmp_path, scan(), compression=compression, intercept=intercept)
    assert np.array_equal(read_series(tmp_path).array, scan().array)


def test_the_first_lossless_jpeg(tmp_path):
    volume = scan()
    write_series(tmp_path, volume, slope=2, intercept=-1024)
    for path in tmp_path.glob("*.dcm"):
        dataset = pydicom.dcmread(path)
        writer = SimpleITK.ImageFileWriter()
        writer.SetImageIO("GDCMImageIO")
        writer.SetFileName(str(tmp_path / "one.tmp"))
        writer.UseCompressionOn()
        writer.SetCompressor("JPEG")
        writer.Execute(SimpleITK.GetImageFromArray(dataset.pixel_array[None]))
        jpeg = pydicom.dcmread(tmp_path / "one.tmp")
        assert jpeg.file_meta.TransferSyntaxUID == "1.2.840.10008.1.2.4.70"
        dataset.PixelData = jpeg.PixelData
        dataset["PixelData"].is_undefined_length = True
        dataset.file_meta.TransferSyntaxUID = jpeg.file_meta.TransferSyntaxUID
        dataset.save_as(path)
    (tmp_path / "one.tmp").unlink()
    expected = np.rint((volume.array + 1024) / 2) * 2 - 1024
    assert np.array_equal(read_series(tmp_path).array, expected)


def test_slope_and_intercept(tmp_path):
    write_series(tmp_path / "a", scan(), slope=0.5, intercept=-1000.25)
    read = read_series(tmp_path / "a")
    assert read.array.dtype == np.float32
    assert np.abs(read.array - scan().array).max() <= 0.25
    write_series(tmp_path / "b", scan())
    path = next(iter(sorted((tmp_path / "b").iterdir())))
    dataset = pydicom.dcmread(path)
    dataset.RescaleIntercept = "-24"
    dataset.save_as(path)
    different = read_series(tmp_path / "b").array.astype(int) - scan().array
    assert sorted(different.reshape(12, -1).max(1).tolist()) == [0] * 11 + [1000]


def edited(folder, change, only=None):
    for path in sorted(folder.glob("*.dcm"))[:only]:
        dataset = pydicom.dcmread(path)
        change(dataset)
        dataset.save_as(path)


def test_padding_that_would_pass_for_tissue(tmp_path):
    volume = scan()
    volume.array[:, :3] = 0
    write_series(tmp_path, volume, intercept=0)
    assert read_series(tmp_path).array[:, :3].max() == 0
    edited(tmp_path, lambda d: d.add_new("PixelPaddingValue", "SS" if d.PixelRepresentation else "US", 0))
    read = read_series(tmp_path)
    assert (read.array[:, :3] == -2048).all()
    n = int((volume.array == 0).sum())
    assert read.notes == (f"{n:,} voxels marked as padding",)
    assert np.array_equal(read.array[volume.array != 0], volume.array[volume.array != 0])


def test_missing_slices(tmp_path):
    volume = scan()
    write_series(tmp_path, volume, untidy=Untidy(missing=(4, 5, 9)))
    (a,), (b,), (c,), (d,) = (at(tmp_path, volume, k) for k in (3, 6, 8, 10))
    assert refusal(tmp_path) == (
        f"{tmp_path}: 3 slice(s) missing: 2 between {a} and {b}; 1 between {c} and {d}\n"
        "  expected: a slice every 2.5 mm\n"
        "  try: fetch the series again; what is missing is not made up here"
    )


def test_slices_that_are_there_twice(tmp_path):
    volume = scan()
    write_series(tmp_path, volume, untidy=Untidy(twice=(4, 7)))
    read = read_series(tmp_path)
    assert np.array_equal(read.array, volume.array)
    (note,) = read.notes
    copies = [max(at(tmp_path, volume, k)) for k in (4, 7)]
    assert note == f"left out, copies of other slices: {', '.join(copies)}"


def test_two_different_slices_at_one_place(tmp_path):
    volume = scan()
    write_series(tmp_path, volume, untidy=Untidy(twice_unlike=(4, 7)))
    said = refusal(tmp_path)
    assert "2 place(s) with two slices that differ" in said
    assert all(name in said for name in at(tmp_path, volume, 4))


def test_mixed_orientations(tmp_path):
    volume = scan()
    write_series(tmp_path, volume, untidy=Untidy(turned=(4, 7)))
    names = ", ".join(sorted(at(tmp_path, volume, 4) + at(tmp_path, volume, 7)))
    assert f"2 of 12 slices differ in orientation: {names}" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("keyword", "value", "what"),
    [("PixelSpacing", ["0.7", "0.7"], "pixel spacing"), ("Rows", 23, "number of rows")],
)
def test_mixed_grids(tmp_path, keyword, value, what):
    write_series(tmp_path, scan())
    edited(tmp_path, lambda d: setattr(d, keyword, value), only=1)
    said = refusal(tmp_path)
    assert f"1 of 12 slices differ in {what}" in said
    assert "PHANTOM-1-0-000.dcm" in said


@pytest.mark.parametrize("degrees", [2, 15])
def test_a_tilted_gantry(tmp_path, degrees):
    write_series(tmp_path, scan(), untidy=Untidy(tilt_degrees=degrees))
    assert f"the gantry was tilted by {degrees}.0 degrees" in refusal(tmp_path)


def test_thickness_unlike_spacing(tmp_path):
    write_series(tmp_path, scan(), untidy=Untidy(thickness_mm=5))
    read = read_series(tmp_path)
    assert read.spacing_mm[0] == pytest.approx(2.5)
    assert read.notes == ("slices of 5 mm thickness every 2.5 mm: the positions are believed",)


def test_spacing_that_changes_on_the_way(tmp_path):
    volume = scan()
    write_series(tmp_path, volume)

    def stretch(dataset):
        x, y, z = map(float, dataset.ImagePositionPatient)
        dataset.ImagePositionPatient = [x, y, z * 1.1 if z > 0 else z]

    edited(tmp_path, stretch)
    assert re.search(r"slices 2\.5 to 2\.75 mm apart: 2\.\d+ mm between PHANTOM", refusal(tmp_path))


def test_positions_that_drift_within_the_tolerance_of_each_step(tmp_path):
    """Steps of 2.45 and 2.55 mm pass one by one; in one run each they put the middle 0.3 mm off."""
    write_series(tmp_path, scan())

    def shift(dataset):
        x, y, z = map(float, dataset.ImagePositionPatient)
        dataset.ImagePositionPatient = [x, y, z + abs(z) * 0.02]

    edited(tmp_path, shift)
    assert "slices 2.45 to 2.55 mm apart" in refusal(tmp_path)


def test_rounded_positions_are_taken(tmp_path):
    write_series(tmp_path, phantom_scan([], (20, 8, 8), (0.625, 0.7, 0.7)))

    def rounded(dataset):
        x, y, z = map(float, dataset.ImagePositionPatient)
        dataset.ImagePositionPatient = [x, y, round(z, 1)]

    edited(tmp_path, rounded)
    assert read_series(tmp_path).spacing_mm[0] == pytest.approx(0.625, abs=0.01)


def test_strays_are_left_out_and_named(tmp_path):
    volume = scan()
    write_series(tmp_path, volume, untidy=Untidy(screenshot=True, scout=True, text_file=True))
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper/empty.dcm").touch()
    os.mkfifo(tmp_path / "deeper/pipe.dcm")
    read = read_series(tmp_path)
    assert np.array_equal(read.array, volume.array)
    index = find_series(tmp_path)
    assert [path.name for path, _ in index.strays] == ["readme.txt", "empty.dcm", "pipe.dcm"]
    (series,) = index.ct
    assert len(series.slices) == 12
    others = ", ".join(path.name for path in series.others)
    assert read.notes == (
        "left out, no DICOM images: readme.txt, empty.dcm, pipe.dcm",
        f"left out, no CT slices: {others}",
    )
    assert len(series.others) == 2


def test_two_series_in_one_folder(tmp_path):
    first = write_series(tmp_path, scan())
    second = write_series(tmp_path, scan(OBLIQUE), seed=1)
    said = refusal(tmp_path)
    assert f"2 series of CT slices: {first} (12 slices), {second} (12 slices)" in said
    assert read_series(tmp_path, second).affine == pytest.approx(scan(OBLIQUE).affine, abs=1e-6)
    assert "unknown series in" in refusal(tmp_path, series_uid="1.2.3")
    index = find_series(tmp_path)
    assert np.array_equal(read_series(index, first).array, read_series(index.series[first]).array)


def test_files_without_the_mark(tmp_path):
    write_series(tmp_path, scan(), untidy=Untidy(without_mark=True))
    assert np.array_equal(read_series(tmp_path).array, scan().array)


def test_a_file_of_zeros_is_not_searched(tmp_path, monkeypatch):
    (tmp_path / "broken.dcm").write_bytes(bytes(1 << 20))
    monkeypatch.setattr("pydicom.dcmread", lambda *args, **options: pytest.fail("searched"))
    assert find_series(tmp_path).strays == ((tmp_path / "broken.dcm", "not DICOM"),)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("ImagePositionPatient"), "no usable ImagePositionPatient"),
        (lambda d: setattr(d, "PixelSpacing", ["0.7"]), "no usable PixelSpacing"),
        (lambda d: d.pop("RescaleSlope"), "no usable RescaleSlope"),
        (lambda d: setattr(d, "RescaleSlope", "0"), "a spacing, size or slope of zero"),
        (
            lambda d: setattr(d, "PhotometricInterpretation", "MONOCHROME1"),
            "no grey image in which high means bright",
        ),
        (lambda d: setattr(d, "RescaleType", "Z_EFF"), "values in another unit than HU"),
    ],
)
def test_what_every_slice_must_say(tmp_path, change, said):
    write_series(tmp_path, scan())
    edited(tmp_path, change, only=2)
    assert f"2 of 12 slices: {said}: PHANTOM-1-0-000.dcm, PHANTOM-1-0-001.dcm" in refusal(tmp_path)


def test_directions_at_no_right_angle(tmp_path):
    write_series(tmp_path, scan())
    edited(tmp_path, lambda d: setattr(d, "ImageOrientationPatient", [1, 0, 0, 0.1, 1, 0]))
    assert "not at right angles" in refusal(tmp_path)


def test_pixels_that_end_early(tmp_path):
    write_series(tmp_path, scan())
    path = tmp_path / "PHANTOM-1-0-003.dcm"
    path.write_bytes(path.read_bytes()[:-100])
    assert f"{path}: pixels cannot be decoded" in refusal(tmp_path)


def test_no_series(tmp_path):
    assert "0 file(s), none of them CT in DICOM" in refusal(tmp_path)
    (tmp_path / "a.txt").write_text("a text")
    assert "1 file(s), none of them CT in DICOM: a.txt" in refusal(tmp_path)
    assert "no such folder" in refusal(tmp_path / "nowhere")
    assert "a.txt: a file" in refusal(tmp_path / "a.txt")
    write_series(tmp_path / "one", scan(shape=(1, 8, 8)))
    assert "a single slice" in refusal(tmp_path / "one")


@pytest.mark.parametrize(("sop", "said"), [("2.1", "CT with many frames in one file"), ("4", "no CT slice")])
def test_series_of_another_kind(tmp_path, sop, said):
    write_series(tmp_path, scan(shape=(2, 8, 8)))
    edited(tmp_path, lambda d: setattr(d, "SOPClassUID", f"1.2.840.10008.5.1.4.1.1.{sop}"))
    assert said in refusal(tmp_path)


def test_no_identity_is_told(tmp_path, recwarn, caplog):
    write_series(tmp_path, scan())

    def named(dataset):
        dataset.PatientName, dataset.PatientBirthDate, dataset.PatientID = "Doe^Jane", "1950-13-77", "JANE77"

    with quiet():
        edited(tmp_path, named)
    edited(tmp_path, lambda d: setattr(d, "RescaleType", "Jane"), only=1)
    index = find_series(tmp_path)
    told = repr(index) + refusal(tmp_path) + "".join(str(w.message) for w in recwarn) + caplog.text
    assert not re.search(r"(?i)doe|jane|1950", told)
    assert next(iter(index.series.values())).patient == "JANE77"


@pytest.mark.parametrize("compression", ["none", "implicit", "jpeg2000", "rle"])
def test_damage_is_refused_or_read_never_more(tmp_path, compression):
    write_series(tmp_path, scan(shape=(3, 32, 32)), compression=compression)
    paths = sorted(tmp_path.glob("*.dcm"))
    whole = [path.read_bytes() for path in paths]
    for _ in range(25):
        for path, content in zip(paths, whole, strict=True):
            damaged = bytearray(content)
            for _ in range(random.randint(0, 3)):
                damaged[random.randrange(len(damaged))] = random.randrange(256)
            path.write_bytes(damaged[: random.choice([len(damaged), random.randrange(len(damaged))])])
        with suppress(InputError):
            read_series(tmp_path)
