"""Make all pictures of the paper that fit the runs: of the first everything, of the others their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from radreason.data.dataset import Dataset
from radreason.diagnoser import Diagnoser, load
from radreason.errors import InputError
from radreason.explain.taught import Taught
from radreason.nn.gcn import GraphBranch
from radreason.nn.hybrid import HybridDiagnoser
from radreason.nn.packed import attributes_of, disease_of
from radreason.prob.bootstrap import EdgeStrengths
from radreason.report.case_page.known import known
from radreason.report.looks import keep
from radreason.report.network_drawing import draw
from radreason.report.paper_pictures.answers import Method, choose, read_methods
from radreason.report.paper_pictures.attribute_sheet import attribute_sheet
from radreason.report.paper_pictures.bars import bars
from radreason.report.paper_pictures.framework import Shapes, framework
from radreason.report.paper_pictures.importances import MOST_CASES, importances, measure
from radreason.report.paper_pictures.networks import drawings, strengths
from radreason.report.paper_pictures.radars import radars

Told = Callable[[str, int, int], None]


def pictures(
    runs: Sequence[Path],
    dataset: Dataset,
    out: Path,
    names: Sequence[str] = (),
    n_cases: int = 4,
    resamples: int = 100,
    told: Told = lambda what, done, of: None,
) -> list[Path]:
    """Draw into a folder, each picture as SVG and PNG; give the files."""
    methods = read_methods(runs, names)
    _check(methods, dataset)
    cases = choose(methods, dataset, n_cases)
    written = _kept(out, "attributes", attribute_sheet(dataset))
    written += _kept(out, "methods", _answers(dataset, methods, cases))
    try:
        run = load(runs[0])
    except InputError:  # a classic method has predictions, and no network to look into
        return written
    name = next(iter(run.models))
    written += _kept(out, "framework", framework(Shapes.of(run, name)))
    model = run.models[name]
    if isinstance(model, HybridDiagnoser) and isinstance(model.graph, GraphBranch):
        taught = known(run, name, dataset, lambda done, of: told("looking at the training cases", done, of))
        if taught is not None and taught.means is not None:
            written += _kept(out, "importance", _importance(run, name, taught, dataset))
    found: EdgeStrengths | None = None
    if run[name].networks and resamples:
        found = strengths(run, name, dataset, resamples, lambda done: told("resampling", done, resamples))
    for stage, drawing in drawings(run, name, found, resamples).items():
        paths = [out / f"{stage}.svg", out / f"{stage}.png"]
        draw(drawing, *paths)
        written += paths
    return written


def _check(methods: Sequence[Method], dataset: Dataset) -> None:
    for method in methods:
        for name in method.schema.names:
            if name not in dataset.schema or dataset.schema[name].states != method.schema[name].states:
                raise InputError(
                    found=f"{dataset.folder}: no {name!r} with the states of {method.name}",
                    expected="the dataset that the runs are of",
                )


def _answers(dataset: Dataset, methods: Sequence[Method], cases: Sequence[str]) -> Figure:
    """Bars where all attributes are there or not, radars where they are graded."""
    schema = methods[0].schema
    if all(schema[name].size == 2 for name in schema.names):
        return bars(dataset, methods, cases)
    return radars(dataset, methods, cases)


def _importance(run: Diagnoser, name: str, taught: Taught, dataset: Dataset) -> Figure:
    known_cases = {case.id for case in dataset.cases}
    tested = [case for case in run.plans[name]["cases"]["testing"] if case in known_cases]
    order = np.random.default_rng(0).permutation(len(tested))[:MOST_CASES]
    chosen = [tested[place] for place in sorted(order.tolist())]
    names, many = measure(run, name, taught, dataset, chosen)
    schema = run.schema
    assert tuple(names) == attributes_of(schema)
    few = chosen[:4]
    return importances(dataset, names, many, few, many[: len(few)], disease_of(schema))


def _kept(out: Path, name: str, figure: Figure) -> list[Path]:
    return keep(figure, out / name)
