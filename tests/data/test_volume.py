"""Indices and millimetres: what goes there comes back, and no geometry is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from radreason import InputError
from radreason.data.volume import Volume

TURN = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])  # a rotation in plain fractions


def oblique():
    affine = np.eye(4)
    affine[:3, :3] = TURN * np.array([2.5, 0.7, 0.8])
    affine[:3, 3] = (-10, 20, 30)
    return Volume(np.arange(4 * 5 * 6).reshape(4, 5, 6), affine, ("a note",))


def test_positions_are_the_affine_times_the_index():
    volume = oblique()
    for index in np.ndindex(volume.shape):
        by_hand = [
            sum(volume.affine[r, c] * index[c] for c in range(3)) + volume.affine[r, 3] for r in range(3)
        ]
        assert volume.to_mm(index) == pytest.approx(by_hand)
    some = np.array([[[1.5, 2.0, -3.0]], [[0.0, 0.0, 0.0]]])
    assert volume.to_index(volume.to_mm(some)) == pytest.approx(some)
    assert volume.spacing_mm == pytest.approx((2.5, 0.7, 0.8))


def test_a_crop_stays_where_it_was():
    volume = oblique()
    crop = volume.crop((1, 2, 3), (3, 99, 5))
    assert crop.shape == (2, 3, 2)
    assert crop.notes == ("a note",)
    assert np.shares_memory(crop.array, volume.array)
    for index in np.ndindex(crop.shape):
        there = tuple(np.rint(volume.to_index(crop.to_mm(index))).astype(int).tolist())
        assert crop.array[index] == volume.array[there]


def test_a_voxel_reaches_half_a_spacing_around_its_centre():
    volume = oblique()
    assert volume.holds(volume.to_mm((-0.49, 4.49, 5.49)))
    assert not volume.holds(volume.to_mm((-0.51, 0, 0)))
    assert not volume.holds(volume.to_mm((0, 4.51, 0)))


@pytest.mark.parametrize("column", [(0, 0, 0), (0.36, -0.8, 0.48), (np.nan, 0, 0)])
def test_an_affine_that_spans_no_volume(column):
    affine = np.eye(4)
    affine[:3, :3] = TURN
    affine[:3, 1] = column
    with pytest.raises(InputError, match="geometry is no volume"):
        Volume(np.zeros((2, 2, 2)), affine)


def test_an_image_without_voxels():
    with pytest.raises(InputError, match="3 x 0 x 2 voxels"):
        Volume(np.zeros((3, 0, 2)), np.eye(4))
