"""The network for lungs on phantoms: it learns, tells sides apart, goes on where it was, counts right."""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from radreason import InputError
from radreason.data.lung_boxes import Lungs, box_of, lungs_of
from radreason.data.picture_scale import Box
from radreason.data.synthetic_radiograph import phantom_chest
from radreason.lungs import run, training
from radreason.lungs.figures import figures, summary
from radreason.lungs.finder import WEIGHTS, LungFinder, write_net
from radreason.lungs.pairs import read_pairs, sides
from radreason.lungs.run import train_lungs
from radreason.lungs.training import Settings, deal, examined, lung_loss, train_net
from radreason.nn.lung_net import LungNet
from radreason.run_folder import read_weights, write_weights

SMALL = (4, 8, 8)
DEEP = (4, 8, 16, 16, 16)  # sees enough of a picture to know its sides


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight phantoms of six patients, in a table."""
    folder = tmp_path_factory.mktemp("pairs")
    with (folder / "pairs.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["image", "mask", "drawing", "patient", "source", "licence"])
        for n in range(8):
            chest = phantom_chest((96, 112), shift=(n - 4) / 60, seed=n)
            Image.fromarray(np.rint(chest.grey * 255).astype(np.uint8)).save(folder / f"{n}.png")
            Image.fromarray(((chest.lungs > 0) * 255).astype(np.uint8)).save(folder / f"{n}m.png")
            row = [f"{n}.png", f"{n}m.png", ["clear", "behind heart"][n % 2], f"p{min(n, 5)}"]
            writer.writerow([*row, "phantoms" if n < 6 else "", "CC0"])
    return folder


@pytest.fixture(scope="module")
def pairs(folder):
    return read_pairs(folder / "pairs.csv", 64)


def test_a_pair_is_a_picture_and_two_lungs_by_their_side(pairs):
    chest = phantom_chest((96, 112), shift=-4 / 60, seed=0)
    assert pairs[0].grey.shape == (64, 64)
    assert np.array_equal(pairs[0].lungs, chest.lungs)
    small = pairs[0].small
    zoomed = ndimage.zoom(chest.lungs, (64 / 96, 64 / 112), order=0, grid_mode=True, mode="nearest")
    assert (small == zoomed).mean() > 0.98
    assert set(np.unique(small)) == {0, 1, 2}
    assert [pair.patient for pair in pairs] == ["p0", "p1", "p2", "p3", "p4", "p5", "p5", "p5"]


def test_sides_of_a_mask_are_told_apart_by_place_and_swap_in_a_mirror():
    mask = np.zeros((40, 60), bool)
    mask[5:30, 5:25], mask[8:35, 30:55], mask[36:38, 20:22] = True, True, True
    found = sides(mask)
    assert set(np.unique(found[:, :25])) == {0, 1}
    assert set(np.unique(found[:, 30:])) == {0, 2}
    assert found[36, 20] == 1  # a speck goes with the nearer lung
    assert np.array_equal(sides(mask[:, ::-1])[:, ::-1], np.array([0, 2, 1])[found])
    for one in (np.zeros((9, 9), bool), mask & (np.arange(60) < 28)):
        with pytest.raises(InputError, match="two lungs that do not touch"):
            sides(one)


def test_tables_that_make_no_sense(folder, tmp_path):
    good = f"{folder}/0.png,{folder}/0m.png"
    for header, row, reason in (
        ("image,mask", good, "unknown column in .*: 'drawing'"),
        ("image,mask,drawing", f"{good},both", "line 2: unknown drawing 'both'"),
        ("image,mask,drawing", f"{folder}/0.png,,clear", "line 2: no image or no mask"),
        ("image,mask,drawing", "", "a header and no rows"),
    ):
        (tmp_path / "pairs.csv").write_text(f"{header}\n{row}\n")
        with pytest.raises(InputError, match=reason):
            read_pairs(tmp_path / "pairs.csv")


def test_folds_keep_patients_together_and_test_everyone_once(pairs):
    dealt = deal(pairs, 3, seed=1)
    assert sorted(np.concatenate(dealt).tolist()) == list(range(8))
    for fold in dealt:
        inside = {pairs[row].patient for row in fold}
        assert not inside & {pairs[row].patient for row in range(8) if row not in fold}
    with pytest.raises(InputError, match="7 folds of 6 patients"):
        deal(pairs, 7, seed=0)


def test_the_loss_against_its_definition():
    torch.manual_seed(0)
    logits, truth = torch.randn(2, 3, 4, 4), torch.randint(0, 3, (2, 4, 4))
    beliefs = logits.softmax(1)
    surprise, overlap = [], []
    for b in range(2):
        for i in range(4):
            for j in range(4):
                surprise.append(-float(beliefs[b, truth[b, i, j], i, j].log()))
    for side in (1, 2):
        both = sum(float(beliefs[b, side, i, j]) for b in range(2) for i in range(4) for j in range(4)
                   if truth[b, i, j] == side)  # fmt: skip
        either = float(beliefs[:, side].sum()) + int((truth == side).sum())
        overlap.append(2 * both / either)
    expected = np.mean(surprise) + 1 - np.mean(overlap)
    assert float(lung_loss(logits, truth)) == pytest.approx(expected, rel=1e-5)


def test_mirrored_pictures_have_their_lungs_swapped(pairs):
    """The lung that is number one is at the left, whatever was done to the picture."""
    room = training._ROOM
    grey = np.stack([np.pad(p.grey, room, mode="edge") for p in pairs])
    lungs = np.stack([np.pad(p.small, room, mode="edge") for p in pairs])
    _, truth = training._changed(grey, lungs, 0, 0, np.arange(8))
    drawn = training._AUGMENTATION.draw(0, 0, np.arange(8))
    assert drawn.mirror[:, 2].any()
    assert not drawn.mirror[:, 2].all()
    for n in range(8):
        centres = [np.nonzero(truth[n].numpy() == number)[1].mean() for number in (1, 2)]
        assert centres[0] < centres[1]


def test_neither_side_is_preferred():
    torch.manual_seed(3)
    net = LungNet(SMALL).eval()
    grey, asked = torch.rand(2, 32, 32), torch.tensor([0.0, 1.0])
    beliefs = net.beliefs(grey, asked)
    mirrored = net.beliefs(grey.flip(2), asked)
    assert torch.allclose(mirrored, beliefs[:, [0, 2, 1]].flip(3), atol=1e-6)
    assert not torch.allclose(mirrored, beliefs.flip(3), atol=1e-3)
    assert torch.allclose(beliefs.sum(1), torch.ones(2, 32, 32))
    other = net.beliefs(grey, 1 - asked)
    assert not torch.allclose(other, beliefs)
    brighter = net(grey * 0.5 + 0.2, asked)
    assert torch.allclose(brighter, net(grey, asked), atol=1e-4)  # exposure does not matter
    with pytest.raises(InputError, match="multiples of 4"):
        net(torch.rand(1, 30, 32), asked[:1])


def test_figures_against_counting():
    drawn = np.zeros((40, 40), int)
    drawn[10:30, 4:16], drawn[10:30, 24:36] = 1, 2
    where = np.zeros((40, 40), int)
    where[12:30, 4:16], where[10:30, 22:36] = 1, 2
    found = Lungs(where, (box_of(where == 1), box_of(where == 2)))
    row = figures(drawn, found, found, pad=0.0)
    assert row["dice"] == pytest.approx((2 * 18 / 38 + 2 * 240 / 520) / 2)
    assert row["lost"] == row["lost_padded"] == pytest.approx(2 * 12 / 480)
    assert row["edge"] == pytest.approx((2 / 40 + 2 / 40) * 256 / 8)
    assert row["edge_worst"] == pytest.approx(2 / 40 * 256)
    assert row["missed"] == 0
    assert figures(drawn, found, found, pad=0.2)["lost_padded"] == 0
    half = Lungs(where, (None, found.boxes[1]))
    assert figures(drawn, half, half, 0.0)["lost"] == pytest.approx(0.5)
    assert figures(drawn, half, half, 0.0)["missed"] == 1
    told = summary([row, row | {"dice": 0.5}])
    assert told["dice"] == pytest.approx((row["dice"] + 0.5) / 2, abs=1e-5)
    assert told["pictures"] == 2


@pytest.mark.slow
def test_it_learns_phantoms_and_tells_their_sides(pairs, tmp_path):
    pairs = [replace(pair, drawing="clear") for pair in pairs]
    net = train_net(pairs[:6], tmp_path, Settings(60, 3, 1e-2, channels=DEEP), "phantoms")
    rows = examined(net, pairs[6:])
    assert min(row["dice"] for row in rows) > 0.85
    write_net(tmp_path / "w.safetensors", net, DEEP, 64, "clear")
    chest = phantom_chest((300, 280), shift=0.01, seed=77)
    whole = Box(0.0, 0.0, 300.0, 280.0)
    finder = LungFinder(tmp_path / "w.safetensors")
    found = finder(chest.grey.astype(np.float32), whole)
    for number, box in enumerate(found.boxes, 1):
        truth = box_of(chest.lungs == number)
        ours, theirs = ([b.top, b.left, b.bottom, b.right] for b in (box, truth))
        assert np.abs(np.subtract(ours, theirs)).max() < 0.06
    mirrored = finder(np.ascontiguousarray(chest.grey[:, ::-1], np.float32), whole)
    assert (mirrored.where != np.array([0, 2, 1])[found.where][:, ::-1]).mean() < 1e-3


def test_interrupted_it_ends_in_the_same_weights(pairs, tmp_path):
    settings = Settings(3, 4, channels=SMALL)
    whole = train_net(pairs, tmp_path / "one", settings, "x")

    def stop(epoch, loss):
        if epoch == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_net(pairs, tmp_path / "two", settings, "x", stop)
    again = train_net(pairs, tmp_path / "two", settings, "x")
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name
    with pytest.raises(InputError, match="a training with other pairs"):
        train_net(pairs, tmp_path / "two", settings, "y")
    with pytest.raises(InputError, match="a training with other settings"):
        train_net(pairs, tmp_path / "two", Settings(4, 4, channels=SMALL), "x")


def test_a_whole_run_leaves_weights_figures_and_a_card(folder, tmp_path):
    settings = Settings(1, 4, channels=SMALL)
    out = tmp_path / "out"
    told = []
    found = train_lungs(folder / "pairs.csv", out, settings, 2, lambda *what: told.append(what[0]))
    assert told == ["fold 1 of 2", "fold 2 of 2", "all pairs"]
    assert found["figures"]["all"]["pictures"] == 8
    assert set(found["figures"]) == {"phantoms", "unnamed", "all"}
    card = (out / "lungs.md").read_text()
    assert "- 6 pictures: phantoms, CC0" in card
    assert "- 2 pictures: unnamed, CC0" in card
    assert found["bytes"] < 5_000_000
    assert json.loads((out / "summary.json").read_text())["folds"] == 2
    LungFinder(out / "lungs.safetensors")(
        np.random.rand(90, 80).astype(np.float32), Box(0.0, 0.0, 90.0, 80.0)
    )
    told.clear()
    again = train_lungs(folder / "pairs.csv", out, settings, 2, lambda *what: told.append(what[0]))
    assert again == found
    assert told == []
    (tmp_path / "other").mkdir()
    (tmp_path / "other/letter.txt").write_text("")
    with pytest.raises(InputError, match=r"other holds letter\.txt"):
        train_lungs(folder / "pairs.csv", tmp_path / "other", settings, 0)


def test_a_doubted_mask_is_tested_by_itself_and_never_trained_on(folder, tmp_path, monkeypatch):
    with (folder / "pairs.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for n, row in enumerate(rows):
        row |= {"doubt": "drawn on another picture" if n in (1, 6) else ""}
        row |= {name: str(folder / row[name]) for name in ("image", "mask")}
    for name, some in (("pairs", rows), ("doubted", rows[1:2])):
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(some)
    trained = []
    monkeypatch.setattr(
        run,
        "train_net",
        lambda pairs, *rest: trained.append([p.name for p in pairs]) or train_net(pairs, *rest),
    )
    found = train_lungs(tmp_path / "pairs.csv", tmp_path / "out", Settings(1, 4, channels=SMALL), 2)
    doubted = {rows[1]["image"], rows[6]["image"]}
    assert not doubted & {name for names in trained for name in names}
    assert len(trained[-1]) == found["trained_on"] == 6
    figures = found["figures"]
    assert figures["doubted masks"]["pictures"] == 2
    assert figures["all but these"]["pictures"] == 6
    assert figures["all"]["pictures"] == 8
    assert figures["phantoms"]["pictures"] == 5
    assert "- not on 2: drawn on another picture" in (tmp_path / "out/lungs.md").read_text()
    with pytest.raises(InputError, match="every mask is doubted"):
        train_lungs(tmp_path / "doubted.csv", tmp_path / "none", Settings(1, 4, channels=SMALL), 0)


def test_what_is_given_is_the_running_mean_of_the_weights(pairs, tmp_path):
    """With the whole training at hand step by step, the mean by its definition."""
    seen = []
    follow = training._follow

    def watch(mean, net, step):
        follow(mean, net, step)
        seen.append((step, net.edges[0].weight.detach().clone()))

    torch.manual_seed(0)
    first = LungNet(SMALL).edges[0].weight.detach().clone()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_follow", watch)
        given = train_net(pairs, tmp_path, Settings(3, 4, channels=SMALL), "x")
    assert [step for step, _ in seen] == list(range(6))
    expected = first
    for step, weight in seen:
        memory = min(0.99, (2 + step) / (11 + step))
        expected = memory * expected + (1 - memory) * weight
    assert torch.allclose(given.edges[0].weight, expected, atol=1e-6)
    assert not torch.allclose(given.edges[0].weight, seen[-1][1], atol=1e-5)


def test_a_training_of_an_older_version_is_not_gone_on_with(pairs, tmp_path):
    settings = Settings(1, 4, channels=SMALL)
    train_net(pairs, tmp_path, settings, "x")
    tensors, state = read_weights(tmp_path / training.LAST)
    write_weights(
        tmp_path / training.LAST, {n: t for n, t in tensors.items() if not n.startswith("mean.")}, state
    )
    with pytest.raises(InputError, match="older version"):
        train_net(pairs, tmp_path, settings, "x")


def test_the_card_in_the_package_is_of_its_weights():
    content = WEIGHTS.read_bytes()
    assert len(content) < 5_000_000
    assert hashlib.sha256(content).hexdigest() in WEIGHTS.with_name("lungs.md").read_text(encoding="utf-8")


def test_weights_of_something_else_are_refused(tmp_path):
    net = LungNet(SMALL)
    write_net(tmp_path / "w.safetensors", net, (4, 8), 64, "clear")
    with pytest.raises(InputError, match="expected: weights that `radreason train-lungs` wrote"):
        LungFinder(tmp_path / "w.safetensors").to_dict()
    write_net(tmp_path / "v.safetensors", net, SMALL, 64, "sideways")
    with pytest.raises(InputError, match="weights of something else"):
        LungFinder(tmp_path / "v.safetensors").to_dict()


def test_beliefs_of_a_drawing_give_the_drawing_back():
    drawn = phantom_chest((64, 64)).lungs
    beliefs = np.stack([(drawn == n) * 0.8 + 0.1 for n in range(3)])
    found = lungs_of(beliefs, (64, 64))
    assert (found.where == drawn).mean() > 0.99
