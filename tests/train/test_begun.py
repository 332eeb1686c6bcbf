"""What a training finds in its folder, and what it may take away there; what it must not write down."""

from dataclasses import replace

import pytest
import torch

from radreason import InputError
from radreason.data.splits import Splits
from radreason.run_folder import PLAN
from radreason.train import loop
from radreason.train.folder_lock import locked
from radreason.train.task import make_task
from radreason.train.training import Order, new_model, train


@pytest.fixture
def order(dataset, experiment, tmp_path):
    settings = experiment("train.batch=40", "train.epochs=1", "data.validation=0.0")
    return Order(settings, dataset.folder, tmp_path / "run", accelerator="cpu")


def test_a_folder_that_another_training_holds_is_left_as_it_is(order):
    """Also the draft of a file that the other one is writing at this moment."""
    order.folder.mkdir()
    draft = order.folder / ".last.safetensors.x.part"
    draft.write_text("half")
    for resume in (False, True):
        with locked(order.folder), pytest.raises(InputError, match="another process is at work"):
            train(replace(order, resume=resume))
    assert [*order.folder.iterdir()] == [draft]


def test_nothing_is_taken_away_from_a_folder_that_is_refused(order):
    order.folder.mkdir()
    files = [order.folder / name for name in (".film.mp4.part", "letter.txt")]
    for file in files:
        file.write_text("somebody's")
    with pytest.raises(InputError, match="not a run's"):
        train(order)
    assert all(file.read_text() == "somebody's" for file in files)


def test_weights_that_are_no_numbers_are_not_written_down(order, monkeypatch):
    """The last step spoils them, and nothing looks at them then: no case validates, and no epoch follows."""

    def spoil(model, scale):
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.fill_(torch.nan)
        return {}

    monkeypatch.setattr(loop, "gradient_norms", spoil)
    with pytest.raises(InputError, match=r"epoch 0: \d+ weights, such as .* are no finite numbers"):
        train(order)
    assert (order.folder / PLAN).is_file()
    assert not [*order.folder.glob("*.safetensors")]


@pytest.mark.parametrize("balanced", [False, True])
def test_the_prior_is_that_of_the_beliefs_that_the_loss_asks_for(dataset, experiment, balanced):
    """The distribution of least loss that does not look at the image: found by descent, not by counting."""
    settings = experiment(
        "preset=recommended", "data.targets=readers", f"loss.balance={str(balanced).lower()}"
    )
    task = make_task(settings, dataset, Splits.read(dataset), 0, 0)
    prior = new_model(settings, task).first_evidence.log_prior.exp()
    for v, at in enumerate(task.schema.slices().values()):
        rows = [row for row in task.rows.training if task.targets.known[row, v]]
        labels = task.targets.beliefs[rows][:, at].double()
        times = len(rows) / len(labels.T) / labels.sum(dim=0) if balanced else torch.ones(len(labels.T))
        logits = torch.zeros(len(labels.T), dtype=torch.float64, requires_grad=True)
        descent = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")

        def loss(labels=labels, times=times, logits=logits, descent=descent):
            descent.zero_grad()
            total = logits.new_zeros(())
            for label in labels:
                weight = sum(p * w for p, w in zip(label, times, strict=True))
                total = total - weight * (label * logits.log_softmax(dim=0)).sum()
            total.backward()
            return total

        descent.step(loss)
        torch.testing.assert_close(prior[at].double(), logits.softmax(dim=0).detach(), atol=1e-3, rtol=0)
