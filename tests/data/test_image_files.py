"""Image files against nibabel, which has its own idea of which way x and y go."""

from __future__ import annotations

import random
from contextlib import suppress

import nibabel
import numpy as np
import pytest

from radreason import InputError
from radreason.data.image_files import read_image, write_image
from radreason.data.synthetic import phantom_scan
from radreason.data.volume import Volume

A = np.radians(25)
TURN = np.array([[1, 0, 0], [0, np.cos(A), -np.sin(A)], [0, np.sin(A), np.cos(A)]])


def scan():
    volume = phantom_scan([], (4, 5, 6), (2.5, 0.7, 0.8), TURN)
    return Volume(np.arange(120, dtype=np.int16).reshape(4, 5, 6), volume.affine)


@pytest.mark.parametrize("ending", [".nii", ".nii.gz", ".mha", ".mhd", ".nrrd"])
def test_there_and_back(tmp_path, ending):
    volume = scan()
    write_image(tmp_path / f"scan{ending}", volume)
    again = read_image(tmp_path / f"scan{ending}")
    assert np.array_equal(again.array, volume.array)
    assert again.array.dtype == np.int16
    assert again.affine == pytest.approx(volume.affine, abs=1e-4)
    assert again.notes == ()


@pytest.mark.parametrize("flips", [(1, 1, 1), (-1, 1, 1), (1, -1, -1)])
def test_every_voxel_lies_where_nibabel_has_it(tmp_path, flips):
    ras = np.eye(4)
    ras[:3, :3] = TURN * np.array([0.8, 0.7, 2.5]) * flips
    ras[:3, 3] = (-7, 8, 9)
    array = np.arange(120, dtype=np.int16).reshape(6, 5, 4)
    nibabel.save(nibabel.Nifti1Image(array, ras), tmp_path / "scan.nii.gz")
    volume = read_image(tmp_path / "scan.nii.gz")
    for index in np.ndindex(array.shape):
        x, y, z = nibabel.affines.apply_affine(ras, index)
        place = np.rint(volume.to_index((-x, -y, z))).astype(int)
        assert volume.array[tuple(place)] == array[index]
        assert volume.to_mm(place) == pytest.approx((-x, -y, z), abs=1e-4)


def test_values_are_rescaled_as_the_file_says(tmp_path):
    image = nibabel.Nifti1Image(np.arange(24, dtype=np.int16).reshape(2, 3, 4), np.eye(4))
    image.header.set_slope_inter(2, -1024)
    nibabel.save(image, tmp_path / "scan.nii")
    expected = nibabel.load(tmp_path / "scan.nii").get_fdata().transpose()
    assert read_image(tmp_path / "scan.nii").array == pytest.approx(expected)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8"])
@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
def test_a_voxel_without_a_number_is_none_and_not_water(tmp_path, dtype, ending):
    array = np.random.default_rng(0).normal(-800, 50, (70, 60, 80)).astype(dtype)  # more than one piece
    array[1, 2, 3], array[69, 59, 79], array[5, 5, 5] = np.nan, np.nan, np.inf
    header = nibabel.Nifti1Header(endianness=dtype[0])
    header.set_data_dtype(dtype)
    nibabel.save(nibabel.Nifti1Image(array, np.eye(4), header), tmp_path / f"scan{ending}")
    read = read_image(tmp_path / f"scan{ending}").array.transpose()
    assert np.argwhere(np.isnan(read)).tolist() == [[1, 2, 3], [5, 5, 5], [69, 59, 79]]
    rest = np.isfinite(array)
    assert np.array_equal(read[rest], array[rest])


def test_a_file_without_orientation_says_so(tmp_path):
    image = nibabel.Nifti1Image(np.zeros((2, 3, 4), np.int16), None)
    image.header["pixdim"][1:4] = (0.7, 0.7, 2.0)
    image.set_qform(None, code=0)
    image.set_sform(None, code=0)
    nibabel.save(image, tmp_path / "scan.nii")
    assert read_image(tmp_path / "scan.nii").notes == (
        "scan.nii: states no orientation; columns are taken to run to the right, rows to the front",
    )


def test_real_nodules(shared_data):
    for path in sorted((shared_data / "lidc-voi/images").iterdir())[:5]:
        volume, witness = read_image(path), nibabel.load(path)
        ras = np.diag([-1, -1, 1, 1]) @ witness.affine
        assert volume.affine[:, [2, 1, 0, 3]] == pytest.approx(ras, abs=1e-4)
        assert np.array_equal(volume.array, np.asarray(witness.dataobj).transpose())


def test_a_fourth_axis_of_one(tmp_path):
    nibabel.save(nibabel.Nifti1Image(np.zeros((2, 3, 4, 1), np.int16), np.eye(4)), tmp_path / "scan.nii")
    assert read_image(tmp_path / "scan.nii").shape == (4, 3, 2)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((2, 3, 4, 5), np.int16), "2 x 3 x 4 x 5 voxels"),
        (np.zeros((2, 3), np.int16), "2 x 3 voxels"),
        (np.zeros((2, 3, 4), [("R", "u1"), ("G", "u1"), ("B", "u1")]), "2 x 3 x 4 voxels of 3 channels"),
    ],
)
def test_other_shapes(tmp_path, array, said):
    nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), tmp_path / "scan.nii")
    with pytest.raises(InputError, match=said):
        read_image(tmp_path / "scan.nii")


def test_a_header_that_promises_too_much(tmp_path):
    write_image(tmp_path / "scan.mha", scan())
    content = (tmp_path / "scan.mha").read_bytes()
    (tmp_path / "scan.mha").write_bytes(content.replace(b"DimSize = 6 5 4", b"DimSize = 60000 50000 4000"))
    with pytest.raises(InputError, match=r"60000 x 50000 x 4000 voxels\n  expected: at most"):
        read_image(tmp_path / "scan.mha")


def test_no_image(tmp_path):
    for name, said in {
        "scan.png": "unknown ending",
        "nowhere.nii": "no such file",
        "folder.nii": "a folder",
        "text.nii": "cannot be read",
        "text.mha": "cannot be read",
        "text.nii.gz": "cannot be read",
    }.items():
        if name.startswith("folder"):
            (tmp_path / name).mkdir()
        elif name.startswith("text"):
            (tmp_path / name).write_text("a text")
        with pytest.raises(InputError, match=said) as error:
            read_image(tmp_path / name)
        assert "sitk::" not in str(error.value)


@pytest.mark.parametrize("ending", [".nii", ".nii.gz", ".mha", ".nrrd"])
def test_a_file_that_ends_early(tmp_path, ending):
    write_image(tmp_path / f"scan{ending}", scan())
    content = (tmp_path / f"scan{ending}").read_bytes()
    (tmp_path / f"scan{ending}").write_bytes(content[:-40])
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / f"scan{ending}")


@pytest.mark.parametrize("ending", [".nii", ".mha", ".nrrd"])
def test_damage_is_refused_or_read_never_more(tmp_path, ending):
    path = tmp_path / f"scan{ending}"
    write_image(path, scan())
    whole = path.read_bytes()
    for _ in range(100):
        content = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            content[random.randrange(min(400, len(content)))] = random.randrange(256)
        path.write_bytes(content)
        with suppress(InputError):
            read_image(path)


def test_damage_inside_a_packed_file(tmp_path):
    volume = phantom_scan([], (9, 40, 40), noise_hu=100)
    write_image(tmp_path / "scan.nii.gz", volume)
    content = bytearray((tmp_path / "scan.nii.gz").read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / "scan.nii.gz").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / "scan.nii.gz")


def test_nowhere_to_write(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        write_image(tmp_path / "no/folder/scan.nii", scan())
