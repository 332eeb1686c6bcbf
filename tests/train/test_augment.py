"""Augmentation against slices, numpy's quarter turns and scipy's interpolation and group of the cube."""

import itertools

import numpy as np
import pytest
import torch
from scipy.ndimage import affine_transform
from scipy.spatial.transform import Rotation

from radreason import InputError
from radreason.train.augment import Augmentation, Parameters, orientations


def parameters(n=1, mirror=(0, 0, 0), turn=0.0, shift=(0, 0, 0), degrees=(0, 0, 0), zoom=1.0):
    """Say the same for each of n cases."""
    return Parameters(
        torch.tensor([mirror] * n).bool(),
        torch.full((n,), turn, dtype=torch.float64),
        torch.tensor([shift] * n),
        torch.tensor([degrees] * n, dtype=torch.float64),
        torch.full((n,), zoom, dtype=torch.float64),
    )


def patch(*space, seed=0):
    """Give a patch whose voxels are all different."""
    values = np.random.default_rng(seed).permutation(int(np.prod(space)))
    return torch.from_numpy(values.reshape(space)).float()


def every_turn(augmentation, image):
    """Apply each of the turns that the core allows."""
    n = len(orientations(tuple(image.shape), augmentation.turns))
    return [
        augmentation.apply(image[None], parameters(turn=(k + 0.5) / n), tuple(image.shape))[0].numpy()
        for k in range(n)
    ]


def as_set(images):
    return {(image.shape, image.tobytes()) for image in images}


def test_the_turns_of_a_cube_are_its_24_rotations():
    found = {tuple(m.flatten().tolist()) for m in orientations((5, 5, 5), "cube")}
    group = Rotation.create_group("O").as_matrix().round().astype(int)
    assert found == {tuple(m.flatten().tolist()) for m in group}
    assert len(found) == 24


def test_every_turn_of_a_cube_is_some_quarter_turns_of_numpy():
    image = patch(4, 4, 4)
    turned = every_turn(Augmentation(turns="cube"), image)
    by_numpy = [
        np.rot90(np.rot90(np.rot90(image.numpy(), a, (0, 1)), b, (0, 2)), c, (1, 2))
        for a, b, c in itertools.product(range(4), repeat=3)
    ]
    assert as_set(turned) == as_set(np.ascontiguousarray(x) for x in by_numpy)
    assert len(as_set(turned)) == 24
    for found in turned:
        assert np.array_equal(np.sort(found.ravel()), np.sort(image.numpy().ravel()))
    assert np.array_equal(turned[0], image)


def test_turns_within_the_slice_leave_the_slices_in_order():
    image = patch(3, 4, 4)
    turned = every_turn(Augmentation(turns="plane"), image)
    wanted = [np.ascontiguousarray(np.rot90(image.numpy(), k, (1, 2))) for k in range(4)]
    assert as_set(turned) == as_set(wanted)


@pytest.mark.parametrize(("core", "n"), [((3, 4, 5), 4), ((3, 4, 4), 8), ((4, 4, 4), 24), ((4, 5), 2)])
def test_between_axes_of_different_length_there_are_half_turns_only(core, n):
    image = patch(*core)
    turned = every_turn(Augmentation(turns="cube"), image)
    assert len(as_set(turned)) == n
    assert {x.shape for x in turned} == {core}


@pytest.mark.parametrize("mirror", list(itertools.product([0, 1], repeat=3)))
def test_mirrored_axes_are_those_of_numpy(mirror):
    image = patch(4, 5, 6)
    found = Augmentation(flips="all").apply(image[None], parameters(mirror=mirror), (4, 5, 6))[0]
    assert np.array_equal(found, np.flip(image.numpy(), [axis for axis in range(3) if mirror[axis]]))


def test_each_mirror_is_drawn_for_half_of_the_cases():
    rows = range(1000)
    assert Augmentation().draw(0, 0, rows).mirror.sum() == 0
    shares = Augmentation(flips="all").draw(0, 0, rows).mirror.double().mean(dim=0)
    assert shares.tolist() == pytest.approx([0.5] * 3, abs=0.05)  # 3 standard errors
    last = Augmentation(flips="left-right").draw(0, 0, rows).mirror
    assert last[:, :2].sum() == 0
    assert torch.equal(last[:, 2], Augmentation(flips="all").draw(0, 0, rows).mirror[:, 2])


@pytest.mark.parametrize("space", [(10, 10, 10), (11, 9, 13)])
def test_a_shift_is_another_slice_of_the_patch(space):
    image, core = patch(*space), (6, 5, 6)
    corner = [(m - n) // 2 for m, n in zip(space, core, strict=True)]
    for shift in itertools.product((-2, 0, 1, 2), repeat=3):
        found = Augmentation(shift=2).apply(image[None], parameters(shift=shift), core)[0]
        starts = [a + s for a, s in zip(corner, shift, strict=True)]
        a, b, c = (slice(at, at + n) for at, n in zip(starts, core, strict=True))
        assert torch.equal(found, image[a, b, c])


@pytest.mark.parametrize("k", range(24))
def test_a_patch_is_shifted_first_turned_then_and_mirrored_last(k):
    image = patch(8, 8, 8)
    drawn = parameters(shift=(1, -1, 0), turn=(k + 0.5) / 24, mirror=(0, 0, 1))
    found = Augmentation(flips="left-right", turns="cube", shift=1).apply(image[None], drawn, (6, 6, 6))
    turned = every_turn(Augmentation(turns="cube"), image[2:8, 0:6, 1:7])[k]
    assert np.array_equal(found[0], np.flip(turned, 2))


def test_all_shifts_are_drawn_alike():
    drawn = Augmentation(shift=2).draw(0, 0, range(2000)).shift
    for axis in range(3):
        values, counts = drawn[:, axis].unique(return_counts=True)
        assert values.tolist() == [-2, -1, 0, 1, 2]
        assert counts.tolist() == pytest.approx([400] * 5, abs=60)  # 3 standard errors


@pytest.mark.parametrize(
    ("space", "core", "shift", "margin"), [((12, 12, 12), (8, 8, 8), 3, 2), ((12, 9, 12), (8, 8, 8), 1, 0)]
)
def test_a_shift_beyond_the_margin_is_refused(space, core, shift, margin):
    augmentation = Augmentation(shift=shift)
    with pytest.raises(InputError) as error:
        augmentation.apply(torch.zeros(1, *space), augmentation.draw(0, 0, [0]), core)
    assert str(error.value) == (
        f"a shift by up to {shift} voxels, with a margin of {margin}\n"
        f"  expected: no shift beyond the margin: patches of shape {space} around a core of {core} "
        "hold no more tissue\n"
        f"  try: shift={margin}, a smaller core, or a dataset prepared with a wider margin"
    )


def by_scipy(image, core, shift, degrees, zoom, order=1):
    """Interpolate at R (place from the centre of the core) / zoom + shift; a turn takes the lower axis up."""
    x, y, z = degrees
    rotation = Rotation.from_euler("XYZ", [x, -y, z], degrees=True).as_matrix()
    matrix = (rotation if image.ndim == 3 else rotation[1:, 1:]) / zoom
    corner = np.array([(m - n) // 2 for m, n in zip(image.shape, core, strict=True)])
    middle = (np.array(core) - 1) / 2
    offset = corner + middle + np.array(shift)[-image.ndim :] - matrix @ middle
    return affine_transform(image, matrix, offset, output_shape=core, order=order, mode="nearest")


@pytest.mark.parametrize("space", [(12, 12, 12), (13, 12, 10)])
@pytest.mark.parametrize(
    ("degrees", "zoom", "shift"),
    [
        ((7, 0, 0), 1.0, (0, 0, 0)),
        ((0, 7, 0), 1.0, (0, 0, 0)),
        ((0, 0, 7), 1.0, (0, 0, 0)),
        ((10, -20, 35), 1.0, (1, -2, 1)),
        ((0, 0, 0), 1.3, (0, 0, 0)),
        ((170, 60, -100), 0.8, (-1, 1, 2)),
    ],
)
def test_free_turns_and_zoom_are_those_of_scipy(space, degrees, zoom, shift):
    image, core = patch(*space).double(), (8, 8, 6)
    augmentation = Augmentation(degrees=180, scale=1.0, shift=2)
    found = augmentation.apply(image[None], parameters(degrees=degrees, zoom=zoom, shift=shift), core)[0]
    np.testing.assert_allclose(found, by_scipy(image.numpy(), core, shift, degrees, zoom), atol=1e-8)


def test_images_in_two_dimensions_turn_in_their_plane():
    image, core = patch(12, 11).double(), (8, 8)
    drawn = parameters(degrees=(20, 50, 50), zoom=1.1, shift=(9, 1, -1))
    found = Augmentation(degrees=90, scale=1.0, shift=1).apply(image[None], drawn, core)[0]
    wanted = by_scipy(image.numpy(), core, (1, -1), (20, 0, 0), 1.1)
    np.testing.assert_allclose(found, wanted, atol=1e-8)


@pytest.mark.parametrize("space", [(10, 10, 10), (11, 10, 13)])
def test_interpolating_at_no_angle_only_moves_voxels(space):
    """Two ways through the code that share nothing but the draws."""
    image = torch.stack([patch(*space, seed=n) for n in range(40)]).double()
    moves = Augmentation(flips="all", turns="cube", shift=2)
    turns = Augmentation(flips="all", turns="cube", shift=2, degrees=1e-12)
    drawn = moves.draw(3, 1, range(40))
    core = (6, 6, 6)
    np.testing.assert_allclose(turns.apply(image, drawn, core), moves.apply(image, drawn, core), atol=1e-8)


def test_angles_and_zooms_stay_within_what_was_asked_for():
    drawn = Augmentation(degrees=30, scale=0.25).draw(0, 0, range(2000))
    assert drawn.degrees.abs().max() <= 30
    assert drawn.degrees.mean(dim=0).tolist() == pytest.approx([0] * 3, abs=1.2)  # 3 standard errors
    assert 1 / 1.25 <= drawn.zoom.min() < 0.81
    assert 1.24 < drawn.zoom.max() <= 1.25
    assert drawn.zoom.log().mean().item() == pytest.approx(0, abs=0.01)


def fields(drawn):
    return {name: getattr(drawn, name) for name in ("mirror", "turn", "shift", "degrees", "zoom")}


EVERYTHING = Augmentation("all", "cube", degrees=20, shift=3, scale=0.2)


def test_what_is_drawn_for_a_case_does_not_depend_on_its_batch():
    together = EVERYTHING.draw(5, 2, [9, 0, 4, 9])
    for place, row in enumerate([9, 0, 4, 9]):
        alone = EVERYTHING.draw(5, 2, np.array([row]))
        for name, value in fields(alone).items():
            assert torch.equal(value[0], fields(together)[name][place])


@pytest.mark.parametrize("other", [(6, 2, 9), (5, 3, 9), (5, 2, 10)])
def test_seed_epoch_and_row_each_change_what_is_drawn(other):
    *rest, row = other
    one, another = EVERYTHING.draw(5, 2, [9]), EVERYTHING.draw(*rest, [row])
    assert not torch.equal(one.degrees, another.degrees)
    assert not torch.equal(one.turn, another.turn)


def test_experiments_that_differ_in_one_setting_share_all_other_draws():
    all_of_it = fields(EVERYTHING.draw(1, 2, range(9)))
    without = fields(Augmentation("none", "none", degrees=20, shift=0, scale=0.2).draw(1, 2, range(9)))
    assert all(torch.equal(without[name], all_of_it[name]) for name in ("turn", "degrees", "zoom"))


def test_without_settings_the_core_is_as_it_was_scanned():
    images = torch.stack([patch(9, 10, 12, seed=n) for n in range(5)])
    plain = Augmentation()
    found = plain.apply(images, plain.draw(0, 0, range(5)), (6, 6, 6))
    assert torch.equal(found, images[:, 1:7, 2:8, 3:9])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"degrees": 181}, "rotation by up to 181 degrees\n  expected: 0 to 180"),
        ({"degrees": float("nan")}, "rotation by up to nan degrees\n  expected: 0 to 180"),
        ({"shift": -1}, "a shift by up to -1 voxels\n  expected: 0 or more"),
        ({"scale": -0.1}, "augmentation with scale -0.1\n  expected: 0 or more: 0.1 is 10 %"),
    ],
)
def test_impossible_augmentation_is_refused(wrong, said):
    with pytest.raises(InputError) as error:
        Augmentation(**wrong)
    assert str(error.value) == said


def test_parameters_are_for_as_many_patches_as_there_are():
    with pytest.raises(InputError) as error:
        Augmentation().apply(torch.zeros(2, 4, 4, 4), parameters(3), (4, 4, 4))
    assert str(error.value) == "3 set(s) of parameters for 2 patch(es)\n  expected: one for each patch"


@pytest.mark.parametrize("core", [(5, 4, 4), (4, 4), (0, 4, 4)])
def test_a_core_lies_within_the_patch(core):
    with pytest.raises(InputError) as error:
        Augmentation().apply(torch.zeros(1, 4, 4, 4), parameters(), core)
    assert str(error.value) == (
        f"a core of shape {core} in patches of shape (4, 4, 4)\n"
        "  expected: one within them, of two or three dimensions as they are"
    )
