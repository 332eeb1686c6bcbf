"""Hand-made features against loops over their definitions, and against scikit-image where it has them."""

from itertools import product

import numpy as np
import pytest
from scipy import ndimage

from radreason.classic import descriptors, segments
from radreason.classic.gradients import CELLS, axes, oriented_gradients
from radreason.classic.regions import bands, central, geometry, otsu
from radreason.classic.texture import LEVELS, binary_patterns, co_occurrence, haralick, levels

both = pytest.mark.parametrize("shape", [(14, 17), (9, 10, 11)], ids=["2-D", "3-D"])


@pytest.fixture
def image(shape):
    rng = np.random.default_rng(0)
    return np.clip(ndimage.gaussian_filter(rng.normal(0, 2, shape), 1), -1, 1)


@both
def test_gradients_are_binned_by_their_nearest_axis(image, shape):
    dims = len(shape)
    directions = axes(dims)
    slopes = np.gradient(image)
    found = np.zeros((*(CELLS[dims],) * dims, len(directions)))
    for place in np.ndindex(*shape):
        slope = np.array([s[place] for s in slopes])
        turned = [abs(float(slope @ d)) for d in directions]
        cell = tuple(int(p * CELLS[dims] / n) for p, n in zip(place, shape, strict=True))
        found[cell][int(np.argmax(turned))] += np.sqrt((slope**2).sum())
    wanted = found.ravel() / np.linalg.norm(found)
    for _ in range(2):
        wanted = np.minimum(wanted / np.linalg.norm(wanted), 0.2)
    np.testing.assert_allclose(oriented_gradients(image), wanted / np.linalg.norm(wanted), atol=1e-12)


def test_axes_are_of_length_one_and_no_two_are_opposite():
    for dims, count in ((2, 9), (3, 13)):
        directions = axes(dims)
        cosines = np.abs(directions @ directions.T)
        np.testing.assert_allclose(np.diag(cosines), 1)
        assert len(directions) == count
        assert (cosines - 2 * np.eye(count)).max() < 0.99


def test_a_ramp_has_one_direction_and_a_flat_image_none():
    ramp = np.repeat(np.linspace(-1, 1, 12)[:, None], 12, axis=1)
    found = oriented_gradients(ramp).reshape(-1, 9)
    along = int(np.abs(axes(2) @ [1, 0]).argmax())
    assert found[:, along].all()
    assert not np.delete(found, along, axis=1).any()
    assert not oriented_gradients(np.zeros((12, 12))).any()


@both
def test_patterns_are_counted_on_every_plane(image, shape):
    around = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
    dims = len(shape)
    wanted = []
    for normal in [None] if dims == 2 else range(3):
        first, second = [a for a in range(dims) if a != normal]
        kinds = []
        for place in np.ndindex(*shape):
            if any(not 0 < place[a] < shape[a] - 1 for a in (first, second)):
                continue
            bits = []
            for a, b in around:
                other = list(place)
                other[first] += a
                other[second] += b
                bits.append(image[tuple(other)] >= image[place])
            changes = sum(bits[n] != bits[n - 1] for n in range(8))
            kinds.append(sum(bits) if changes <= 2 else 9)
        wanted += [kinds.count(kind) / len(kinds) for kind in range(10)]
    np.testing.assert_allclose(binary_patterns(image), wanted)


@pytest.mark.parametrize("distance", [1, 2])
@both
def test_co_occurrence_counts_every_pair_both_ways(image, shape, distance):
    grey = levels(image)
    wanted = np.zeros((LEVELS, LEVELS))
    for place in np.ndindex(*shape):
        for step in product((-distance, 0, distance), repeat=len(shape)):
            other = tuple(p + s for p, s in zip(place, step, strict=True))
            if any(step) and all(0 <= o < n for o, n in zip(other, shape, strict=True)):
                wanted[grey[place], grey[other]] += 1
    np.testing.assert_allclose(co_occurrence(grey, distance), wanted / wanted.sum())


@pytest.mark.parametrize("shape", [(14, 17)])
def test_the_five_figures_are_those_of_scikit_image(image):
    feature = pytest.importorskip("skimage.feature")
    shares = co_occurrence(levels(image), 1)
    names = ("contrast", "homogeneity", "energy", "entropy", "correlation")
    wanted = [feature.graycoprops(shares[:, :, None, None], name)[0, 0] for name in names]
    np.testing.assert_allclose(haralick(shares), wanted)


@both
def test_geometry_is_measured_voxel_by_voxel(shape):
    rng = np.random.default_rng(1)
    label = rng.integers(0, 4, shape)
    found = geometry(label, 3)
    dims = len(shape)
    for number in (1, 2, 3):
        places = np.argwhere(label == number)
        centred = (places - (np.array(shape) - 1) / 2) / np.array(shape)
        assert found.volume[number - 1] == len(places)
        assert found.offset[number - 1] == pytest.approx(np.linalg.norm(centred.mean(axis=0)))
        spread = np.cov(centred.T, bias=True) + np.diag(1 / (12 * np.array(shape) ** 2.0))
        wanted = np.sqrt(np.sort(np.linalg.eigvalsh(spread))[::-1])
        np.testing.assert_allclose(found.axes[number - 1], wanted)
        faces = 0
        for place in places:
            for axis, step in product(range(dims), (-1, 1)):
                other = place.copy()
                other[axis] += step
                inside = all(0 <= o < n for o, n in zip(other, shape, strict=True))
                faces += not inside or label[tuple(other)] != number
        assert found.surface[number - 1] == pytest.approx(faces / (2 * dims * len(places) ** (1 - 1 / dims)))


def test_a_cube_has_the_surface_of_a_cube_and_a_plate_more():
    label = np.zeros((12, 12, 12), np.int64)
    label[3:7, 3:7, 3:7] = 1
    label[9, :, :] = 2
    found = geometry(label, 2)
    assert found.surface[0] == pytest.approx(1)
    assert found.surface[1] > 1.5
    assert found.axes[1, 2] < 0.2 * found.axes[1, 0]


@both
def test_bands_are_connected_of_one_level_and_large_enough(image, shape):
    label, count = bands(image, 8, 5)
    smooth = ndimage.gaussian_filter(image, 1.0, mode="nearest")
    level = np.clip(np.floor((smooth + 1) / 2 * 8), 0, 7)
    assert count == label.max() >= 2
    for number in range(1, count + 1):
        assert (label == number).sum() >= 5
        assert len(np.unique(level[label == number])) == 1
        assert ndimage.label(label == number)[1] == 1
    pieces = sum((ndimage.sum_labels(np.ones(shape), *_numbered(level == n)) >= 5).sum() for n in range(8))
    assert count == pieces


def _numbered(mask):
    label, count = ndimage.label(mask)
    return label, np.arange(1, count + 1)


def test_otsu_is_that_of_scikit_image_and_the_middle_is_found():
    filters = pytest.importorskip("skimage.filters")
    rng = np.random.default_rng(2)
    image = rng.normal(-0.8, 0.1, (20, 20, 20))
    image[8:13, 8:13, 8:13] += 1.0  # around the middle
    image[:3, :3, :3] += 1.2  # brighter, in a corner
    assert otsu(image) == pytest.approx(filters.threshold_otsu(image, 64), abs=0.05)
    wanted = np.zeros(image.shape, bool)
    wanted[8:13, 8:13, 8:13] = True
    np.testing.assert_array_equal(central(image), wanted)
    image[8:13, 8:13, 8:13] -= 1.0
    assert central(image)[0, 0, 0]  # nothing holds the middle: what is nearest to it


@both
def test_both_descriptions_are_finite_and_of_one_length_even_of_nothing(image, shape):
    flat = [np.full(shape, value) for value in (-1.0, 0.0, 1.0)]
    assert len({len(descriptors.describe(one)) for one in (image, *flat)}) == 1
    for one in (image, *flat):
        assert np.isfinite(descriptors.describe(one)).all()
        pieces = segments.describe(one)
        assert pieces.shape[1] == segments.LOOKS + 2 + len(shape)
        assert np.isfinite(pieces).all()


@both
def test_looks_of_pieces_are_measured_piece_by_piece(image, shape):
    label, count = bands(image, segments.LEVELS, segments.SMALLEST)
    found = segments.describe(image)
    blob = np.abs(ndimage.gaussian_laplace(image, 2.0, mode="nearest"))
    for number in range(1, count + 1):
        piece = image[label == number]
        wanted = [piece.mean(), piece.std(), blob[label == number].mean(), np.log(piece.size)]
        np.testing.assert_allclose(found[number - 1, [0, 1, 4, 5]], wanted, atol=1e-9)
