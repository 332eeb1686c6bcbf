"""The framework as the paper's overview figure has it, with the shapes of this run.

Shapes are those of one image that goes through the model; a part that is off is not drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

from radreason.diagnoser import Diagnoser
from radreason.nn.gcn import GraphBranch
from radreason.nn.image_encoder import ImageEncoder
from radreason.nn.packed import disease_of
from radreason.prob import BayesNet
from radreason.report.looks import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, QUIET, SKY, VERMILION, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Shapes:
    """Shapes on the way of one image through a model, without the batch."""

    image: Shape
    backbone: str
    maps: tuple[Shape, ...]
    pooled: tuple[Shape, ...]
    has_pyramid: bool
    feature: int
    variables: int
    states: int
    nodes: Shape | None
    layers: int
    edges: tuple[tuple[str, int], ...]
    stages: tuple[str, ...]
    method: str
    disease: str

    @classmethod
    def of(cls, run: Diagnoser, name: str) -> Shapes:
        """Send an empty image through a model and note the shapes."""
        model, plan = run.models[name], run.plans[name]
        encoder = next(part for part in model.modules() if isinstance(part, ImageEncoder))
        maps: list[Shape] = []
        pooled: list[Shape] = []

        def note(to: list[Shape]) -> object:
            def hook(_: object, given: tuple[list[Tensor]]) -> None:
                to[:] = [tuple(x.shape[1:]) for x in given[0]]

            return hook

        handles = [encoder.pooling.register_forward_pre_hook(note(pooled))]  # type: ignore[arg-type]
        if encoder.pyramid is not None:
            handles.append(encoder.pyramid.register_forward_pre_hook(note(maps)))  # type: ignore[arg-type]
        try:
            with torch.no_grad():
                image = torch.zeros(1, 1, *run.patch)
                diagnosis = model(image)
        finally:
            for handle in handles:
                handle.remove()
        graph = model.graph
        nets = [
            (stage, getattr(model, place)) for stage, place in (("BN-1", "first_net"), ("BN-2", "second_net"))
        ]
        return cls(
            tuple(image.shape[1:]),
            str(plan["settings"]["model"]["backbone"]["name"]),
            tuple(maps or pooled),
            tuple(pooled),
            encoder.pyramid is not None,
            encoder.features,
            len(run.schema),
            run.schema.width,
            (len(run.schema), graph.head.linear.out_features // len(run.schema))
            if isinstance(graph, GraphBranch)
            else None,
            len(graph.layers) if isinstance(graph, GraphBranch) else 0,
            tuple((stage, len(net.edges)) for stage, net in nets if isinstance(net, BayesNet)),
            tuple(diagnosis.stages),
            str(plan["settings"]["model"]["method"]),
            disease_of(run.schema),
        )


def framework(shapes: Shapes) -> Figure:
    """Draw boxes from left to right, the two branches above each other."""
    edges = dict(shapes.edges)
    two = shapes.nodes is not None
    with styled(**{"font.size": 7.5}):
        figure = Figure((11.6, 3.5), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 11.6), ylim=(0, 3.5))
        axes.set_axis_off()
        top, low, middle = (2.5, 0.95, 1.75) if two else (1.75, 0.95, 1.75)
        _box(axes, 0.15, middle, "image", _by(shapes.image), GREY)
        pyramid = [f"backbone {shapes.backbone}", *map(_by, shapes.maps)]
        if shapes.has_pyramid:
            pyramid += ["feature pyramid", *map(_by, shapes.pooled)]
        _box(axes, 1.35, middle, "1  backbone", "\n".join(pyramid), BLUE, width=1.55)
        _box(axes, 3.2, middle, "F0", f"{shapes.feature}", BLUE, width=0.7)
        for a, b in ((1.15, 1.35), (2.9, 3.2)):
            _arrow(axes, (a, middle), (b, middle))
        packed = f"{shapes.variables} variables\n{shapes.states} states"
        _box(axes, 4.25, top, "evidence", packed, ORANGE)
        _arrow(axes, (3.9, middle), (4.25, top))
        end, at = 5.25, top
        if "BN-1" in edges:
            _box(axes, 5.55, top, "2  BN-1", f"{edges['BN-1']} edges\n{shapes.states} states", GREEN)
            _arrow(axes, (5.25, top), (5.55, top))
            end = 6.55
        if two and shapes.nodes is not None:
            _box(axes, 4.25, low, "nodes", _by(shapes.nodes), SKY)
            _box(axes, 5.55, low, "2  graph", f"{shapes.layers} layers\n{_by(shapes.nodes)}", SKY)
            _arrow(axes, (3.9, middle), (4.25, low))
            _arrow(axes, (5.25, low), (5.55, low))
            _arrow(axes, (6.05, top - 0.48), (6.05, low + 0.48), dashed=True)
            axes.text(6.12, middle, "attention", fontsize=6.5, color=QUIET, va="center")
            _box(axes, 7.25, middle, "fusion", f"{shapes.states} states", PURPLE)
            _arrow(axes, (end, top), (7.25, middle))
            _arrow(axes, (6.55, low), (7.25, middle))
            end, at = 8.25, middle
        elif "fusion" in shapes.stages and not edges and shapes.method != "hybrid":
            _box(axes, 5.55, top, shapes.method, f"{shapes.states} states", SKY)
            _arrow(axes, (5.25, top), (5.55, top))
            end = 6.55
        if "BN-2" in edges:
            _box(axes, end + 0.35, at, "3  BN-2", f"{edges['BN-2']} edges\n{shapes.states} states", GREEN)
            _arrow(axes, (end, at), (end + 0.35, at))
            end += 1.35
        _box(axes, end + 0.35, at, "answer", f"{shapes.disease}\nand every grade", VERMILION)
        _arrow(axes, (end, at), (end + 0.35, at))
        axes.text(
            0.15, 0.12, f"Stages that can be asked: {', '.join(shapes.stages)}.", fontsize=6.5, color=QUIET
        )
        return figure


def _box(axes: Axes, x: float, y: float, title: str, inside: str, colour: str, width: float = 1.0) -> None:
    lines = inside.count("\n") + 1
    high = 0.5 + 0.145 * lines
    axes.add_patch(
        FancyBboxPatch(
            (x, y - high / 2), width, high, boxstyle="round,pad=0,rounding_size=0.07",
            facecolor=f"{colour}22", edgecolor=colour, linewidth=1.4,
        )
    )  # fmt: skip
    axes.text(x + width / 2, y + high / 2 - 0.17, title, ha="center", va="center", weight="bold", color=INK)
    axes.text(
        x + width / 2, y - 0.13, inside, ha="center", va="center", fontsize=6.3, color=INK, linespacing=1.25
    )


def _arrow(axes: Axes, start: Sequence[float], end: Sequence[float], dashed: bool = False) -> None:
    style = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.0, "linestyle": "--" if dashed else "-"}
    axes.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=style)  # type: ignore[arg-type]


def _by(shape: Shape) -> str:
    return " x ".join(map(str, shape))
