"""Patches read from their file are those that NumPy maps, in whatever way they were saved."""

import io

import numpy as np
import pytest
from numpy.lib import format as npy

from radreason.train.patch_file import PatchFile

SHAPES = [(5, 4, 6, 7), (5, 4, 6), (1, 3, 3, 3), (7, 5, 5, 5)]


@pytest.fixture
def save(tmp_path):
    def saved(array, version=None):
        with (tmp_path / "patches.npy").open("wb") as stream:
            npy.write_array(stream, array, version)
        return tmp_path / "patches.npy"

    return saved


def patches(shape, order="C"):
    values = np.random.default_rng(0).integers(-(2**15), 2**15, shape).astype("<i2")
    return np.array(values, order=order)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_patches_are_those_that_numpy_maps(save, shape, order, version):
    path = save(patches(shape, order), version)
    mapped = np.load(path, mmap_mode="r")
    assert mapped.flags.c_contiguous == (order == "C")
    rows = [len(mapped) - 1, 0, 0, len(mapped) // 2]
    found = PatchFile(path).read(rows, shape[1:])
    assert found.dtype == np.int16
    assert np.array_equal(found, mapped[rows])


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_cut_is_the_middle_of_each_patch(save, order):
    path = save(patches((5, 8, 7, 6), order))
    found = PatchFile(path).read([3, 1], (4, 4, 5))
    assert np.array_equal(found, np.load(path)[[3, 1], 2:6, 1:5, 0:5])


def test_no_rows_are_no_patches(save):
    assert PatchFile(save(patches((5, 4, 4)))).read([], (2, 2)).shape == (0, 2, 2)


def test_what_was_read_may_be_changed_and_the_file_stays(save):
    path = save(patches((2, 3, 3)))
    before = path.read_bytes()
    PatchFile(path).read([1], (3, 3))[:] = 7
    assert path.read_bytes() == before


@pytest.mark.parametrize("missing", [1, 2 * 3 * 3])
def test_a_file_that_ends_before_the_patch_is_an_error_of_the_disk(save, missing):
    path = save(patches((4, 3, 3)))
    content = path.read_bytes()
    file = PatchFile(path)
    path.write_bytes(content[:-missing])
    assert np.array_equal(file.read([2], (3, 3))[0], np.load(io.BytesIO(content))[2])
    with pytest.raises(OSError, match="the file ends before the patch does"):
        file.read([3], (3, 3))


@pytest.mark.parametrize("length", [0, 5, 9, 40])
def test_a_file_without_its_header_is_an_error_of_the_disk(save, length):
    path = save(patches((4, 3, 3)))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(OSError, match="Errno 5"):
        PatchFile(path)


def test_a_disk_that_gives_less_than_was_asked_for_is_asked_again(save):
    path = save(patches((3, 4, 4)))

    class Slow(io.FileIO):
        def read(self, size=-1):
            return super().read(min(size, 5))

    with Slow(path) as stream:
        assert np.array_equal(PatchFile(path)._one(stream, 2), np.load(path)[2])
