"""The pictures of one run: both networks that it learned, and some cases with what it says of them."""

from __future__ import annotations

from pathlib import Path

from radreason.artefacts import DRAWING, PICTURE, read_network
from radreason.data.dataset import Dataset
from radreason.errors import InputError
from radreason.evaluate.predictions import read_predictions
from radreason.prob import BayesNet
from radreason.report.network_drawing import Drawing, DrawnEdge, draw
from radreason.report.sample_sheet import draw_sample_sheet
from radreason.report.training_text import kind
from radreason.run_folder import NETWORKS, PREDICTIONS, read_plan
from radreason.schema import Schema

SAMPLES = "samples.png"
TITLES = {
    "bn1": "BN-1, learned from ground truth and the evidence P0_B",
    "bn2": "BN-2, learned from ground truth and the fused beliefs",
}


def draw_run(run: Path, dataset: Dataset) -> list[Path]:
    """Draw all that a run shows; give the files."""
    plan = read_plan(run)
    if plan["data"]["fingerprint"] != dataset.fingerprint:
        raise InputError(
            found=f"{dataset.folder}: {dataset.fingerprint[:23]}...",
            expected=f"the dataset of the run, {plan['data']['fingerprint'][:23]}...",
        )
    drawn = []
    for name in NETWORKS.values():
        if (run / name).is_dir():
            net = BayesNet.from_dict(read_network(run / name), str(run / name))
            draw(_drawing(net, name, kind(plan["data"])), run / name / DRAWING, run / name / PICTURE)
            drawn.append(run / name / DRAWING)
    found = read_predictions(run / PREDICTIONS, Schema.from_dict(plan["schema"], str(run)))
    shown = found.of("testing") if "testing" in found.parts else found
    if shown.cases:
        draw_sample_sheet(dataset, shown, run / SAMPLES)
        drawn.append(run / SAMPLES)
    return drawn


def _drawing(net: BayesNet, name: str, data: str) -> Drawing:
    schema, compelled = net.schema, set(net.compelled_edges)
    edges = tuple(
        DrawnEdge(schema.position(parent), schema.position(child), compelled=(parent, child) in compelled)
        for parent, child in net.edges
    )
    return Drawing(schema.names, edges, schema.disease, TITLES[name], f"Learned within a training on {data}.")
