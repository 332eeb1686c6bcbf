"""Two processes that share every batch against one that has it whole, in double precision."""

import json

import numpy as np
import pytest
from torch.testing import assert_close

from radreason import InputError, diagnoser
from radreason.run_folder import BEST, LOG, PLAN, PREDICTIONS, SUMMARY, read_weights
from radreason.train.training import Order, train

CHANGES = (
    "data.attributes=figure",
    "preset=recommended",
    "refit.every=1",
    "refit.warm_up=0",
    "train.epochs=3",
    "train.rate=0.01",
    "train.clip=1.0",
    "train.precision=64-true",
)


@pytest.fixture(scope="module")
def runs(dataset, experiment, tmp_path_factory):
    folders = {n: tmp_path_factory.mktemp(f"of-{n}") for n in (1, 2)}
    for n, folder in folders.items():
        train(Order(experiment(*CHANGES), dataset.folder, folder, fold=0, devices=n, accelerator="cpu"))
    return folders


def leaves(value, name=""):
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in leaves(item, f"{name}.{key}").items()}
    return {name: value}


@pytest.mark.slow
def test_the_log_is_the_same_within_rounding(runs):
    one, two = ([json.loads(line) for line in (runs[n] / LOG).read_text().splitlines()] for n in (1, 2))
    assert len(one) == len(two) == 3
    assert all(line["refit"] for line in one[:2])
    for here, there in zip(one, two, strict=True):
        here, there = leaves(here), leaves(there)
        assert here.keys() == there.keys()
        for name, value in here.items():
            assert there[name] == (pytest.approx(value, rel=1e-4) if isinstance(value, float) else value), (
                name
            )


@pytest.mark.slow
def test_weights_networks_and_predictions_are_the_same_within_rounding(runs):
    (one, state), (two, other) = (read_weights(runs[n] / BEST) for n in (1, 2))
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert_close(two[name], tensor, rtol=1e-5, atol=1e-7, msg=lambda told, name=name: f"{name}: {told}")
    nets = [diagnoser.load(runs[n]).networks for n in (1, 2)]
    for name, net in nets[0].items():
        assert nets[1][name].edges == net.edges
        for variable, table in net.tables.items():
            assert_close(nets[1][name].tables[variable], table, rtol=1e-5, atol=1e-7)
    assert state["epoch"] == other["epoch"]
    rows = [(runs[n] / PREDICTIONS).read_text().splitlines() for n in (1, 2)]
    assert rows[0][0] == rows[1][0]
    assert len(rows[0]) == len(rows[1]) > 10
    for here, there in zip(rows[0][1:], rows[1][1:], strict=True):
        assert here.split(",")[:2] == there.split(",")[:2]
        numbers = [[float(word) for word in row.split(",")[8:]] for row in (here, there)]
        np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_plans_differ_in_the_number_of_processes_alone(runs):
    plans = [leaves(json.loads((runs[n] / PLAN).read_text())) for n in (1, 2)]
    assert {k: (v, plans[1][k]) for k, v in plans[0].items() if v != plans[1][k]} == {".processes": (1, 2)}
    assert (runs[2] / SUMMARY).is_file()


@pytest.mark.slow
def test_what_one_of_several_refuses_comes_back_to_who_asked(dataset, experiment, tmp_path):
    settings = experiment(*CHANGES, "train.batch=3")
    with pytest.raises(InputError, match="cases for 2 processes"):
        train(Order(settings, dataset.folder, tmp_path / "run", fold=0, devices=2, accelerator="cpu"))
    assert not (tmp_path / "run" / PLAN).exists()
