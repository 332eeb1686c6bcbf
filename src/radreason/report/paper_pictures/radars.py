"""Grades as radar charts: the truth in grey behind each method's, and a cross where the two differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from radreason.data.dataset import Dataset
from radreason.nn.packed import disease_of
from radreason.report.looks import COLOURS, DASHES, INK, MARKERS, QUIET, VERMILION, styled
from radreason.report.paper_pictures.answers import Method, short_names, truth_of
from radreason.report.paper_pictures.slices import draw_slice
from radreason.schema import Schema


def radars(dataset: Dataset, methods: Sequence[Method], cases: Sequence[str], readers: bool = True) -> Figure:
    """Draw a row for each case: its slice, the truth with each reader's grades, then each method."""
    n, disease = len(methods), disease_of(methods[0].schema)
    shared = [name for name in methods[0].schema.names if all(name in m.schema for m in methods)]
    schema = methods[0].schema.subset(shared)
    with styled(**{"font.size": 7}):
        figure = Figure((1.75 * (n + 2), 1.95 * len(cases) + 0.5), facecolor="white")
        grid = figure.add_gridspec(len(cases), n + 2, left=0.03, right=0.97, top=0.93, bottom=0.07,
                                  hspace=0.45, wspace=0.35)  # fmt: skip
        for row, case in enumerate(cases):
            true = truth_of(dataset, case)
            draw_slice(figure.add_subplot(grid[row, 0]), dataset, case)
            chart = _axes(figure, grid[row, 1], schema)
            _fill(chart, schema, true)
            if readers:
                _readers(chart, schema, dataset, case)
            _title(chart, "truth and readers" if readers else "truth", _called(schema, true, disease))
            for place, method in enumerate(methods):
                chart = _axes(figure, grid[row, place + 2], schema)
                _fill(chart, schema, true)
                said = method.says(case)
                _line(chart, schema, said, place)
                for name in schema.names:
                    if name in true and said[name] != true[name]:
                        angle, radius = _at(schema, name, said[name])
                        chart.plot(angle, radius, "x", color=VERMILION, markersize=6, markeredgewidth=1.4)
                word = _called(schema, said, disease)
                right = disease not in true or said[disease] == true[disease]
                _title(chart, method.name, f"{word} {'✓' if right else '✗'}")
        short = short_names(schema.names)
        legend = ", ".join(f"{s} {n}" for n, s in short.items())
        what = "PHANTOMS, no images of patients. " if "phantom" in dataset.kind else ""
        figure.text(
            0.02, 0.005,
            f"{what}Grey: the truth, lowest state in the middle. Cross: a method says otherwise. {legend}",
            fontsize=6, color=QUIET, wrap=True,
        )  # fmt: skip
        return figure


def _axes(figure: Figure, place: object, schema: Schema) -> PolarAxes:
    chart = figure.add_subplot(place, projection="polar")  # type: ignore[call-overload]
    assert isinstance(chart, PolarAxes)
    chart.set_theta_offset(np.pi / 2)
    chart.set_theta_direction(-1)
    short = short_names(schema.names)
    chart.set_xticks([_angle(schema, name) for name in schema.names])
    chart.set_xticklabels([short[name] for name in schema.names], fontsize=5.5)
    chart.tick_params(axis="x", pad=-3)
    chart.set_ylim(0, 1.12)
    most = max(schema.sizes)
    chart.set_yticks([_radius(state, most) for state in range(most)])
    chart.set_yticklabels([])
    chart.grid(alpha=0.3, linewidth=0.5)
    chart.spines["polar"].set_visible(False)
    return chart


def _angle(schema: Schema, name: str) -> float:
    return 2 * np.pi * schema.position(name) / len(schema)


def _radius(state: int, size: int) -> float:
    """The lowest state is not in the very middle: spokes must be told apart there."""
    return 0.15 + 0.85 * state / (size - 1)


def _at(schema: Schema, name: str, state: int) -> tuple[float, float]:
    return _angle(schema, name), _radius(state, schema[name].size)


def _ring(schema: Schema, states: Mapping[str, int]) -> tuple[list[float], list[float]]:
    points = [_at(schema, name, states[name]) for name in schema.names if name in states]
    points.append(points[0])
    return [angle for angle, _ in points], [radius for _, radius in points]


def _fill(chart: PolarAxes, schema: Schema, true: Mapping[str, int]) -> None:
    if any(name in true for name in schema.names):
        angles, radii = _ring(schema, true)
        chart.fill(angles, radii, facecolor="#c9ced6", edgecolor=QUIET, linewidth=1.0)


def _line(chart: PolarAxes, schema: Schema, said: Mapping[str, int], place: int) -> None:
    angles, radii = _ring(schema, said)
    at = place % len(COLOURS)
    chart.plot(angles, radii, color=COLOURS[at], linestyle=DASHES[at], marker=MARKERS[at], markersize=2.8,
               linewidth=1.3)  # fmt: skip


def _readers(chart: PolarAxes, schema: Schema, dataset: Dataset, case: str) -> None:
    readings = next(c.readings for c in dataset.cases if c.id == case)
    for reading in readings:
        said = {
            name: schema[name].index(state)
            for name, state in reading.items()
            if name in schema and state is not None
        }
        if said:
            angles, radii = _ring(schema, said)
            chart.plot(angles, radii, color=INK, linewidth=0.5, linestyle=":", marker=".", markersize=2)


def _called(schema: Schema, states: Mapping[str, int], disease: str) -> str:
    return schema[disease].states[states[disease]] if disease in states else "not known"


def _title(chart: PolarAxes, name: str, said: str) -> None:
    chart.set_title(f"{name}\n{said}", fontsize=7, pad=7)
