"""Images of a dataset against slices of its file; batches against counting."""

import shutil
from collections import Counter

import numpy as np
import pytest
import torch

from radreason import InputError
from radreason.data.dataset import PATCHES, Dataset
from radreason.train import images as images_module
from radreason.train.augment import Augmentation
from radreason.train.images import Images, epoch_batches

MOVES = Augmentation("all", "cube", shift=2)
TURNS = Augmentation("all", "cube", degrees=20, shift=1, scale=0.1)


@pytest.fixture
def copy(dataset, tmp_path):
    return shutil.copytree(dataset.folder, tmp_path / "copy")


@pytest.fixture(params=[False, True], ids=["from disk", "kept"])
def keep(request):
    return request.param


def test_plain_images_are_the_middle_of_the_patches(dataset, keep):
    rows = [7, 0, 39, 7]
    file = np.load(dataset.folder / PATCHES)
    for core, at in (((8, 8, 8), slice(2, 10)), ((6, 6, 6), slice(3, 9)), ((12, 12, 12), slice(None))):
        found = Images(dataset, core, keep=keep).plain(rows)
        assert found.dtype == torch.float32
        assert np.array_equal(found[:, 0], file[rows][:, at, at, at])
    assert torch.equal(Images(dataset, keep=keep).plain(rows), Images(dataset, (8, 8, 8)).plain(rows))


def test_without_augmentation_training_images_are_the_plain_ones(dataset, keep):
    images = Images(dataset, (7, 8, 5), keep=keep)
    assert torch.equal(images.training([3, 1], Augmentation(), 0, 0), images.plain([3, 1]))


def test_training_images_are_the_patches_augmented_as_was_drawn_for_their_rows(dataset, keep):
    rows, file = [30, 2, 9], np.load(dataset.folder / PATCHES).astype(np.float32)
    found = Images(dataset, keep=keep).training(rows, MOVES, seed=4, epoch=6)
    drawn = MOVES.draw(4, 6, rows)
    assert torch.equal(found[:, 0], MOVES.apply(torch.from_numpy(file[rows]), drawn, (8, 8, 8)))
    assert not torch.equal(found, Images(dataset).plain(rows))


@pytest.mark.parametrize("augmentation", [MOVES, TURNS], ids=["moves", "turns"])
def test_images_do_not_depend_on_their_batch_and_on_where_they_are_kept(dataset, augmentation):
    read, kept = Images(dataset), Images(dataset, keep=True)
    together = read.training(np.arange(40), augmentation, seed=1, epoch=2)
    assert torch.equal(kept.training(np.arange(40), augmentation, seed=1, epoch=2), together)
    for row in (0, 17, 39):
        assert torch.equal(read.training([row], augmentation, seed=1, epoch=2)[0], together[row])
    assert not torch.equal(read.training([5], augmentation, seed=1, epoch=3)[0], together[5])


def test_all_patches_are_kept_however_many_are_read_at_once(dataset, monkeypatch):
    monkeypatch.setattr(images_module, "_READ_AT_ONCE", 7)
    assert np.array_equal(Images(dataset, (12,) * 3, keep=True).plain(range(40))[:, 0], dataset.patches)


def test_kept_patches_need_no_file_any_more(copy):
    images = Images(Dataset.open(copy), keep=True)
    before = images.plain(range(40))
    (copy / PATCHES).unlink()
    assert torch.equal(images.plain(range(40)), before)


def test_a_dataset_saved_by_columns_gives_the_same_images(dataset, copy, keep):
    np.save(copy / PATCHES, np.asfortranarray(np.load(copy / PATCHES)))
    found = Images(Dataset.open(copy), keep=keep).training([5, 3], MOVES, 0, 0)
    assert torch.equal(found, Images(dataset).training([5, 3], MOVES, 0, 0))


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([3, 39], "case-03, case-39"),
        (range(28, 40), ", ".join(f"case-{n}" for n in range(28, 38)) + " and 2 more"),
    ],
)
def test_images_that_the_disk_does_not_give_are_named(copy, rows, named):
    images = Images(Dataset.open(copy))
    (copy / PATCHES).write_bytes((copy / PATCHES).read_bytes()[:-1])
    for ask in (images.plain, lambda rows: images.training(rows, MOVES, 0, 0)):
        with pytest.raises(InputError) as error:
            ask(rows)
        assert str(error.value) == (
            f"{copy}: the images of {named} cannot be read: [Errno 5] the file ends before the patch does\n"
            "  expected: a dataset that stays readable for as long as a training takes\n"
            "  try: copy the dataset to a disk of this machine, or hold it in memory (keep=True)"
        )
    assert images.plain([38]).isfinite().all()


@pytest.mark.parametrize(
    ("rows", "said"),
    [([-1], "[-1]"), ([0, 40], "[0, 40]"), (np.array([0.5]), "[0.5]"), (np.zeros((1, 1), int), "[0]")],
)
def test_what_is_no_row_is_refused(dataset, rows, said):
    for ask in (Images(dataset).plain, lambda rows: Images(dataset).training(rows, MOVES, 0, 0)):
        with pytest.raises(InputError) as error:
            ask(rows)
        assert str(error.value) == f"rows {said}\n  expected: a list of whole numbers from 0 to 39"


def test_an_augmentation_that_leaves_the_patch_is_refused(dataset):
    with pytest.raises(InputError, match="a shift by up to 3 voxels, with a margin of 2"):
        Images(dataset).training([0], Augmentation(shift=3), 0, 0)


@pytest.mark.parametrize(("n", "size"), [(1, 2), (2, 2), (3, 2), (7, 2), (24, 8), (25, 8), (9, 100), (41, 6)])
def test_an_epoch_deals_every_case_once(n, size):
    for epoch in range(5):
        batches = epoch_batches(n, size, seed=1, epoch=epoch)
        assert Counter(np.concatenate(batches).tolist()) == Counter(range(n))
        sizes = sorted(map(len, batches))
        assert sizes[-1] - sizes[0] <= 1
        assert sizes[0] >= min(n, 2)
        assert sizes[-1] <= max(size, 3 if size == 2 else 0)


def test_as_few_batches_as_the_size_allows():
    assert [len(epoch_batches(n, 6, 0, 0)) for n in (1, 6, 7, 12, 13)] == [1, 1, 2, 2, 3]


def test_every_epoch_and_seed_deals_anew_and_the_same_again():
    def dealt(seed, epoch):
        return tuple(np.concatenate(epoch_batches(40, 6, seed, epoch)).tolist())

    assert len({dealt(seed, epoch) for seed in range(4) for epoch in range(4)}) == 16
    assert dealt(2, 3) == dealt(2, 3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((0, 2, 0, 0), "batches of 0 cases\n  expected: one case or more"),
        ((4, 1, 0, 0), "batches of size 1\n  expected: 2 or more: batch norm takes its statistics from them"),
        ((4, 2, -1, 0), "batches of seed -1, epoch 0\n  expected: 0 or more"),
        ((4, 2, 0, -1), "batches of seed 0, epoch -1\n  expected: 0 or more"),
    ],
)
def test_batches_that_cannot_be_are_refused(wrong, said):
    with pytest.raises(InputError) as error:
        epoch_batches(*wrong)
    assert str(error.value) == said
