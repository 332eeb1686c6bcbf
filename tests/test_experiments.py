"""The experiments that come with the project: each can be read, and makes a model."""

from pathlib import Path

import pytest
import torch

from radreason import Schema, Variable, build, config
from radreason.artefacts import write_network
from radreason.nn.losses import class_balance, pack_targets
from radreason.prob import Labels

ROOT = Path(__file__).parents[1] / "experiments"
FILES = sorted(ROOT.rglob("*.toml"))
PLACES = "first_net", "second_net"
TINY = ["model.backbone.name=compact", "model.backbone.width=2", "model.backbone.conv1_stride=1"]


def test_there_are_experiments_to_load():
    assert len(FILES) >= 2


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_every_experiment_builds_a_model_and_its_loss(path, tmp_path):
    settings = config.load(path, TINY)
    attributes = [Variable(name, ("1", "2", "3")) for name in config.PAPER_FIGURE]
    schema = Schema((*attributes, Variable("malignancy", ("no", "yes"))), "malignancy")
    truth = {name: torch.randint(2, (30,)) for name in schema.names}
    labels = Labels.of({name: codes.numpy() for name, codes in truth.items()}, schema)
    if path.stem in ("network-given", "tb-real-padchest"):
        given = write_network(tmp_path, build.network(config.Network(), labels).to_dict())
        settings = config.load(path, [*TINY, *(f"model.{place}.given={given}" for place in PLACES)])
    chosen = {place: getattr(settings.model, place) for place in PLACES}
    nets = {place: build.network(net, labels) for place, net in chosen.items() if net}
    if settings.model.method in config.WITHOUT_WEIGHTS:
        made = build.forest if settings.model.method.startswith("oracle") else build.classic
        assert made(settings.model, schema, 0) is not None
        return
    model = build.model(settings.model, schema, 3, settings.data.window, **nets)
    diagnosis = model(torch.zeros(2, 1, 8, 8, 8))
    assert [stage in diagnosis.stages for stage in ("bn1", "gcn_out", "bn2")] == [
        bool(part) for part in (settings.model.first_net, settings.model.graph, settings.model.second_net)
    ]
    targets = pack_targets(schema, {name: codes[:2] for name, codes in truth.items()})
    loss = build.loss(settings.loss, schema, class_balance(schema, targets))
    assert loss(diagnosis, targets).total.isfinite()
