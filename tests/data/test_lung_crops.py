"""Boxes and crops of lungs that were drawn by us, so that every place is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from radreason import InputError
from radreason.data.case import Case
from radreason.data.lesion import Lesion
from radreason.data.lung_boxes import FINE, Lungs, box_of, lungs_of, settled
from radreason.data.lung_crops import LungCrops, is_negative
from radreason.data.picture_scale import Box
from radreason.data.radiograph import Limits, Radiograph, radiograph
from radreason.data.synthetic_radiograph import phantom_chest

LEFT, RIGHT = Box(0.1, 0.15, 0.8, 0.45), Box(0.2, 0.55, 0.9, 0.9)
LESION = Lesion(Case("c", "p", "s", {}))


@dataclass(frozen=True)
class Told:
    """A finder that was told what to find."""

    boxes: tuple[Box | None, Box | None] = (LEFT, RIGHT)

    def __call__(self, grey, frame):
        where = np.zeros((FINE, FINE), np.int64)
        for number, box in enumerate(self.boxes, 1):
            if box is not None:
                b = box.times(FINE, FINE)
                where[round(b.top) : round(b.bottom), round(b.left) : round(b.right)] = number
        return Lungs(where, self.boxes)

    def to_dict(self):
        return {}


def film(values=None):
    rng = np.random.default_rng(0)
    values = rng.random((200, 240)) if values is None else values
    return radiograph(values, Limits(0, 1), "film", stated_by="test", spacing_mm=(0.2, 0.3))


def bare(values):
    """A film without a search for a border, which a ramp would seem to have."""
    return Radiograph(values.astype(np.float32), Box(0, 0, 200, 240))


def beliefs(where, seed=0):
    noisy = np.random.default_rng(seed).uniform(0, 0.2, (3, *where.shape))
    for number in range(3):
        noisy[number] += where == number
    return noisy / noisy.sum(0)


def test_boxes_are_those_of_the_pixels():
    where = np.zeros((64, 64), int)
    where[10:50, 8:28], where[12:52, 34:60] = 1, 2
    where[2:4, 2:4] = 1  # a speck
    where[20:23, 12:15] = 0  # a hole
    found = lungs_of(beliefs(where), (64, 64))
    assert found.boxes == (Box(10 / 64, 8 / 64, 50 / 64, 28 / 64), Box(12 / 64, 34 / 64, 52 / 64, 60 / 64))
    assert (found.where[20:23, 12:15] == 1).all()
    assert found.where[2, 2] == 0
    ys, xs = np.nonzero(found.where == 2)
    ends = (ys.min(), xs.min(), ys.max() + 1, xs.max() + 1)
    assert edges(box_of(found.where == 2).times(64, 64)) == ends
    finer = lungs_of(beliefs(where)).boxes
    for coarse, fine in zip(found.boxes, finer, strict=True):
        assert np.abs(np.subtract(edges(fine), edges(coarse))).max() < 0.5 / 64


def edges(box):
    return box.top, box.left, box.bottom, box.right


def test_a_bubble_is_no_lung():
    where = np.zeros((64, 64), int)
    where[10:50, 8:28], where[40:46, 40:46] = 1, 2
    assert lungs_of(beliefs(where)).boxes[1] is None


@pytest.mark.parametrize(
    ("boxes", "expected", "flags"),
    [
        ((LEFT, RIGHT), (LEFT, RIGHT), ()),
        ((LEFT, None), (LEFT, Box(0.1, 0.55, 0.8, 0.85)), ("one lung",)),
        ((None, RIGHT), (Box(0.2, 0.1, 0.9, 0.45), RIGHT), ("one lung",)),
        ((LEFT, Box(0.2, 0.6, 0.4, 0.8)), (LEFT, Box(0.1, 0.55, 0.8, 0.85)), ("one lung",)),
        ((Box(0.2, 0.2, 0.4, 0.3), RIGHT), (Box(0.2, 0.1, 0.9, 0.45), RIGHT), ("one lung",)),
        ((None, None), (Box(0, 0, 1, 0.5), Box(0, 0.5, 1, 1)), ("no lung",)),
    ],
)
def test_what_stands_in_for_a_lung_that_was_not_found(boxes, expected, flags):
    left, right, said = settled(boxes)
    assert edges(left) == pytest.approx(edges(expected[0]))
    assert edges(right) == pytest.approx(edges(expected[1]))
    assert said == flags
    mirrored = settled(tuple(None if b is None else b.mirrored() for b in boxes[::-1]))
    assert edges(mirrored[0]) == pytest.approx(edges(right.mirrored()))
    assert edges(mirrored[1]) == pytest.approx(edges(left.mirrored()))


def cut(image, finder=None, **how):
    settings = {"rows": 64, "columns": 64, "margin": 0, "pad": 0.0} | how
    return LungCrops(finder or Told(), **settings).cut(LESION, image)


def test_each_half_is_its_box_brought_to_size():
    """In a picture whose grey is its own column (or row), the crop says where it was taken."""
    columns = np.broadcast_to((np.arange(240) + 0.5) / 240, (200, 240))
    rows = np.broadcast_to(((np.arange(200) + 0.5) / 200)[:, None], (200, 240))
    across, down = (cut(bare(picture))[1] / 4095 for picture in (columns, rows))
    for half, box in ((slice(0, 32), LEFT), (slice(32, 64), RIGHT)):
        expected = box.left + (np.arange(32) + 0.5) / 32 * box.width
        assert across[:, half] == pytest.approx(np.broadcast_to(expected, (64, 32)), abs=2e-3)
        expected = box.top + (np.arange(64) + 0.5) / 64 * box.height
        assert down[:, half] == pytest.approx(np.broadcast_to(expected[:, None], (64, 32)), abs=2e-3)


def test_a_margin_shows_what_is_around_and_leaves_the_core_alone():
    image = film()
    plain, wide = cut(image)[1], cut(image, margin=8)[1]
    assert wide.shape == (80, 80)
    assert np.array_equal(wide[8:-8, 8:-8], plain)
    columns = np.broadcast_to((np.arange(240) + 0.5) / 240, (200, 240))
    grey = cut(bare(columns), margin=8)[1][40] / 4095
    step = LEFT.width / 32
    assert grey[0] == pytest.approx(LEFT.left - 7.5 * step, abs=2e-3)
    assert grey[39] == pytest.approx(LEFT.right - 0.5 * step, abs=2e-3)  # no margin at the seam
    assert grey[40] == pytest.approx(RIGHT.left + 0.5 * RIGHT.width / 32, abs=2e-3)


def test_what_lies_beyond_the_picture_is_black_and_counted():
    case, patch, _, _ = cut(film(np.full((200, 240), 0.6) + film().grey * 0.4), pad=0.25)
    beyond = (patch == 0).mean()
    assert case.padding_share == pytest.approx(beyond)
    assert 0.05 < case.padding_share < 0.12
    assert cut(film())[0].padding_share == 0


def test_the_mirror_image_gives_the_mirror_image():
    image = film()
    mirrored = film(np.ascontiguousarray(image.grey[:, ::-1]))
    _, patch, mask, _ = cut(image, margin=4)
    told = Told((RIGHT.mirrored(), LEFT.mirrored()))
    _, other, other_mask, _ = cut(mirrored, told, margin=4)
    assert np.abs(other.astype(int) - patch[:, ::-1]).max() <= 1
    assert np.array_equal(other_mask, mask[:, ::-1])
    assert not np.array_equal(patch, patch[:, ::-1])


def test_boxes_are_shares_of_the_picture_within_its_border():
    bordered = np.zeros((260, 300))
    bordered[40:240, 30:270] = film().grey
    inside, outside = cut(film()), cut(film(bordered))
    assert np.abs(outside[1].astype(int) - inside[1]).max() <= 1
    key = "right lung (top left bottom right)"
    assert inside[0].extra[key] == "20.0 36.0 160.0 108.0"
    assert outside[0].extra[key] == "60.0 66.0 200.0 138.0"
    assert outside[0].extra["picture"] == "260 x 300"
    assert (inside[0].extra["row_mm"], inside[0].extra["column_mm"]) == (0.2, 0.3)


def test_masks_are_of_the_own_lung_only():
    _, _, mask, _ = cut(film(), Told((Box(0.1, 0.1, 0.8, 0.5), Box(0.1, 0.5, 0.8, 0.9))), pad=0.25)
    inner = slice(round(64 * 0.25 / 1.5) + 1, -round(64 * 0.25 / 1.5) - 1)
    assert mask[inner, 7:25].all()
    assert not mask[:, 29:35].any()  # where each shows a strip of the other
    assert mask[inner, 40:57].all()


def test_flags_and_notes_say_what_was_not_found():
    case, _, mask, notes = cut(film(), Told((None, None)))
    assert case.flags == ("no lung",)
    assert mask is None
    assert notes == ("no lung was found: the halves of the picture stand in for boxes",)
    case, _, mask, notes = cut(film(), Told((LEFT, None)))
    assert case.flags == ("one lung",)
    assert mask is not None
    assert notes == ("one lung was found: the box of the other is its mirror image",)


def test_a_negative_is_noticed():
    chest = phantom_chest()
    lungs = Lungs(chest.lungs, tuple(box_of(chest.lungs == n) for n in (1, 2)))
    assert not is_negative(film(chest.grey), lungs)
    assert is_negative(film(1 - chest.grey), lungs)


@pytest.mark.parametrize(
    "how", [{"rows": 1}, {"columns": 63}, {"margin": -1}, {"pad": -0.1}, {"pad": 1.5}, {"columns": 0}]
)
def test_settings_that_make_no_sense(how):
    with pytest.raises(InputError):
        LungCrops(Told(), **how)
