"""With equal steps a part of the training cases is shown as often as it takes to be as long as the whole."""

from collections import Counter

import pytest

from radreason.train.images import Images
from radreason.train.training import Order, train
from radreason.train.watch import Watcher


class Counted(Watcher):
    """Count the steps of every epoch."""

    def __init__(self):
        self.steps = Counter()

    def batch(self, epoch, done, of, loss):
        self.steps[epoch] += 1
        assert done == self.steps[epoch] <= of


@pytest.fixture
def shown(monkeypatch):
    """Note which image is drawn how: every showing of a case has a draw of its own."""
    draws = Counter()
    original = Images.training

    def noting(self, rows, augmentation, seed, epoch):
        draws.update((int(row), epoch) for row in rows)
        return original(self, rows, augmentation, seed, epoch)

    monkeypatch.setattr(Images, "training", noting)
    return draws


@pytest.mark.parametrize(("fraction", "times"), [("1.0", 1), ("0.25", 4), ("0.5", 2)])
def test_every_case_is_shown_as_often_as_its_share_is_small(
    dataset, experiment, tmp_path, shown, fraction, times
):
    settings = experiment(
        f"data.fraction={fraction}", "train.equal_steps=true", "train.epochs=2", "data.validation=0.0"
    )
    counted = Counted()
    plan = train(Order(settings, dataset.folder, tmp_path / "run", fold=0, accelerator="cpu"), counted)
    assert plan is not None
    per_case = Counter(row for row, _ in shown)
    assert set(per_case.values()) == {2 * times}
    assert set(shown.values()) == {1}  # never the same draw twice
    assert counted.steps[0] == counted.steps[1] >= times
