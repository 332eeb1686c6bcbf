"""Patches against ITK, which resamples whole scans, and against scans whose every value says where it is."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
import SimpleITK

from radreason import InputError
from radreason.data.patch import cut_mask, cut_patch
from radreason.data.resample import resample
from radreason.data.synthetic import Ball, phantom_scan
from radreason.data.volume import Volume

A = np.radians(20)
OBLIQUE = np.array([[np.cos(A), -np.sin(A), 0], [np.sin(A), np.cos(A), 0], [0, 0, 1]])
TURNS = {"axial": np.eye(3), "oblique": OBLIQUE}


def noise(shape=(30, 40, 50), turn=OBLIQUE, spacing=(2.5, 0.7, 0.9)):
    """Bounded noise at every scale, so that a sample at the wrong place has another value."""
    scan = phantom_scan([], shape, spacing, turn)
    return Volume(np.random.default_rng(0).integers(-900, 900, shape).astype(np.int16), scan.affine)


def as_itk(volume):
    image = SimpleITK.GetImageFromArray(volume.array.astype(float))
    image.SetSpacing(volume.spacing_mm[::-1])
    image.SetDirection((volume.affine[:3, :3] / volume.spacing_mm)[:, ::-1].ravel().tolist())
    image.SetOrigin(volume.affine[:3, 3].tolist())
    return image


def by_itk(volume, patch, how=SimpleITK.sitkBSpline, outside=-1000.0):
    """Resample all of the scan's spline; ITK, too, mirrors it at the border."""
    grid = SimpleITK.Image(patch.array.shape[::-1], SimpleITK.sitkFloat64)
    spacing = np.linalg.norm(patch.affine[:3, :3], axis=0)
    grid.SetSpacing(spacing[::-1].tolist())
    grid.SetDirection((patch.affine[:3, :3] / spacing)[:, ::-1].ravel().tolist())
    grid.SetOrigin(patch.affine[:3, 3].tolist())
    return SimpleITK.GetArrayFromImage(
        SimpleITK.Resample(as_itk(volume), grid, SimpleITK.Transform(), how, outside)
    )


@pytest.mark.parametrize("spacing_mm", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("turn", TURNS)
def test_the_spline_is_the_one_of_the_whole_scan(turn, spacing_mm):
    scan = noise(turn=TURNS[turn])
    patch = cut_patch(scan, scan.to_mm((14.3, 18.9, 25.2)), 12, spacing_mm, margin=2)
    assert patch.padding_share == 0
    expected = by_itk(scan, patch)
    assert np.abs(patch.array - expected).max() <= 0.51  # whole HU, and what lies beyond the halo
    assert np.abs(patch.cube - expected[2:-2, 2:-2, 2:-2]).max() <= 0.51


@pytest.mark.parametrize("turn", TURNS)
def test_air_is_where_the_scan_is_not(turn):
    scan = noise(turn=TURNS[turn])
    patch = cut_patch(scan, scan.to_mm((0.2, 38, 25.2)), 16, 1.0, margin=3)
    expected = by_itk(scan, patch)
    inside = [[[scan.holds(at) for at in row] for row in plane] for plane in _positions(patch)]
    outside = ~np.array(inside)
    assert (patch.array[outside] == -1000).all()
    assert np.abs(patch.array - expected)[~outside].max() <= 0.51
    assert patch.padding_share == pytest.approx(outside[3:-3, 3:-3, 3:-3].mean())
    assert 0.5 < patch.padding_share < 1


def _positions(patch):
    index = np.stack(np.meshgrid(*map(np.arange, patch.array.shape), indexing="ij"), -1)
    return index @ patch.affine[:3, :3].T + patch.affine[:3, 3]


@pytest.mark.parametrize("axes", list(permutations(range(3))))
def test_however_the_voxels_are_stored_the_patch_is_the_same(axes):
    scan = phantom_scan([Ball((3, -4, 5), 9)], (40, 60, 60), (1.5, 0.7, 0.8))
    first = cut_patch(scan, (3, -4, 5), 16, margin=4)
    for signs in product((1, -1), repeat=3):
        affine = np.eye(4)
        affine[:3, :3] = scan.affine[:3, axes] * signs
        lengths = np.array(scan.shape)[list(axes)] - 1
        corner = np.where(np.array(signs) < 0, lengths, 0)
        affine[:3, 3] = scan.affine[:3, 3] + scan.affine[:3, axes] @ corner
        stored = Volume(scan.array.transpose(axes)[tuple(slice(None, None, s) for s in signs)], affine)
        again = cut_patch(stored, (3, -4, 5), 16, margin=4)
        assert np.array_equal(first.array, again.array)
        assert first.affine == pytest.approx(again.affine)


@pytest.mark.parametrize("turn", TURNS)
def test_axes_run_to_head_back_and_left(turn):
    patch = cut_patch(noise(turn=TURNS[turn]), (0.0, 0.0, 0.0), 8, 0.5, margin=2)
    towards = patch.affine[:3, :3] / 0.5
    assert towards == pytest.approx(TURNS[turn][:, ::-1])
    assert (np.diag(towards[::-1]) > 0.9).all()
    middle = patch.affine[:3, :3] @ np.full(3, 5.5) + patch.affine[:3, 3]
    assert middle == pytest.approx((0, 0, 0))


@pytest.mark.parametrize("turn", TURNS)
def test_a_ball_lies_in_the_middle_with_its_size(turn):
    ball = Ball((4.2, -3.1, 6.7), 12)
    scan = phantom_scan([ball], (48, 90, 90), (1.5, 0.7, 0.7), TURNS[turn])
    cube = cut_patch(scan, ball.centre_mm, 32).cube.astype(float)
    weight = np.clip((cube + 850) / 890, 0, 1)
    centre = np.array([np.average(g, weights=weight) for g in np.indices(cube.shape)])
    assert centre == pytest.approx(np.full(3, 15.5), abs=0.05)
    assert np.cbrt(6 / np.pi * weight.sum()) == pytest.approx(12, rel=0.02)


def test_what_the_scanner_did_not_see_is_air_and_is_counted():
    scan = phantom_scan([], (20, 60, 60), (2.0, 1.0, 1.0))
    array = scan.array.copy()
    array[:, :, 35:] = -3024
    patch = cut_patch(Volume(array, scan.affine), (0.0, 0.0, 0.0), 20, margin=0)
    unseen = _positions(patch)[..., 0] > scan.to_mm((0, 0, 34.5))[0]
    assert set(np.unique(patch.array[unseen])) == {-1000}
    assert patch.array[~unseen].min() > -1000  # no trace of -3024 beside it
    assert patch.padding_share == pytest.approx(unseen.mean())
    broken = array.astype(np.float32)
    broken[array == -3024] = np.nan
    assert np.array_equal(
        cut_patch(Volume(broken, scan.affine), (0.0, 0.0, 0.0), 20, margin=0).array, patch.array
    )


def test_a_scan_of_one_slice_and_values_beyond_int16():
    flat = Volume(np.full((1, 9, 9), 40_000.0), np.eye(4)[:, [2, 1, 0, 3]] * [3, 1, 1, 1])
    patch = cut_patch(flat, flat.to_mm((0, 4, 4)), 5, margin=0)
    assert set(np.unique(patch.array)) == {32767, -1000}
    assert patch.padding_share == pytest.approx(2 / 5)


@pytest.mark.parametrize("turn", TURNS)
def test_a_mask_is_cut_as_itk_cuts_it(turn):
    ball = Ball((1.0, 2.0, 3.0), 9)
    scan = phantom_scan([ball], (30, 60, 60), (2.5, 0.7, 0.8), TURNS[turn])
    patch = cut_patch(scan, ball.centre_mm, 20, margin=2)
    mask = Volume(scan.array > -400, scan.affine)
    cut = cut_mask(mask, patch)
    expected = by_itk(mask, patch, SimpleITK.sitkLinear, 0.0)
    sure = np.abs(expected - 0.5) > 1e-6
    assert np.array_equal(cut[sure], expected[sure] > 0.5)
    assert np.cbrt(6 / np.pi * cut.sum()) == pytest.approx(9, rel=0.05)
    small = mask.crop((10, 15, 15), (25, 45, 45))  # a grid of its own
    assert np.array_equal(cut_mask(small, patch), cut)


def test_a_share_of_readers_is_a_threshold():
    share = np.zeros((5, 5, 5), np.float32)
    share[2, 2, 1:4] = (0.25, 0.5, 1.0)
    volume = Volume(share, np.eye(4))
    patch = cut_patch(Volume(np.zeros((5, 5, 5), np.int16), np.eye(4)), (2, 2, 2), 5, margin=0)
    assert [int(cut_mask(volume, patch, s).sum()) for s in (0.2, 0.5, 0.6)] == [3, 2, 1]


def test_the_nearest_voxel_for_labels():
    labels = Volume(np.arange(27).reshape(3, 3, 3), np.eye(4))
    affine = np.eye(4) * [0.5, 0.5, 0.5, 1]
    values, outside = resample(labels, affine, (5, 5, 5), order=0)
    assert not outside.any()
    for index in np.ndindex(5, 5, 5):
        nearest = tuple(int(i / 2 + 0.5) for i in index)
        assert values[index] == labels.array[nearest]


def test_a_grid_far_from_the_volume_is_all_outside():
    affine = np.eye(4)
    affine[:3, 3] = 1e6
    for turned in (
        affine,
        affine @ np.block([[OBLIQUE, np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]]),
    ):
        for order in (0, 1, 3):
            assert resample(noise(), turned, (4, 4, 4), order)[1].all()


def test_a_centre_outside_the_scan():
    scan = Volume(np.zeros((10, 20, 20), np.int16), phantom_scan([], (10, 20, 20), (1, 1, 1)).affine + 0)
    moved = scan.affine.copy()
    moved[:3, 3] += (100, 50, 0)
    with pytest.raises(InputError) as error:
        cut_patch(Volume(scan.array, moved), (-100.0, -50.0, 0.0))
    assert "lies outside of the scan; the same with x and y negated does not" in str(error.value)
    assert "x from 90.5 to 109.5 mm, y from 40.5 to 59.5 mm, z from -4.5 to 4.5 mm" in str(error.value)


@pytest.mark.parametrize(
    "setting", [{"size": 0}, {"spacing_mm": 0.0}, {"margin": -1}, {"spacing_mm": float("nan")}]
)
def test_settings_that_make_no_patch(setting):
    with pytest.raises(InputError, match="a patch of size"):
        cut_patch(noise(), (0.0, 0.0, 0.0), **setting)


@pytest.mark.parametrize(("order", "how"), [(3, SimpleITK.sitkBSpline), (1, SimpleITK.sitkLinear)])
def test_grids_at_an_angle(order, how):
    scan = noise(turn=np.eye(3))
    patch = cut_patch(noise(), (0.5, 1.0, -2.0), 14, margin=0)
    values, outside = resample(scan, patch.affine, patch.array.shape, order)
    assert not outside.any()
    assert np.abs(values - by_itk(scan, patch, how)).max() < 0.01
