"""From a radiograph to an image, step by step, as in the paper's figure; here for phantoms, and called so."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from radreason.data.dataset import Dataset
from radreason.data.phantom_cxr.render import WHITE, Phantom, generator
from radreason.errors import InputError, unknown

ENDINGS: Final = (".png", ".pdf", ".svg")
TITLES: Final = ("radiograph", "lungs and their boxes", "side by side")
COLOURS: Final = ("#ff9d3a", "#5ab4ff")
WIDTH: Final = 400


def draw_steps(dataset: Dataset, path: Path, n_cases: int = 3) -> None:
    """Draw the phantoms with most findings: whole, with lungs and boxes, and as the dataset has them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if path.suffix.lower() not in ENDINGS:
        raise unknown(f"ending of {path}:", path.suffix, ENDINGS)
    shown = [_findings(dataset, row) for row in range(len(dataset))]
    rows = sorted(range(len(dataset)), key=lambda row: (-len(shown[row]), row))[:n_cases]
    figure = Figure((9, 3.15 * len(rows) + 0.4), dpi=110, facecolor="white")
    FigureCanvasAgg(figure)
    figure.suptitle("PHANTOMS, not images of patients", fontsize=10, weight="bold")
    axes = figure.subplots(len(rows), 3, squeeze=False)
    images = dataset.patches_at(rows)
    for line, row in enumerate(rows):
        case = dataset.cases[row]
        phantom = Phantom.draw(shown[row], generator(int(dataset.settings["seed"]), case.id))
        whole, lungs = phantom.whole(WIDTH)
        for at, image in enumerate((whole, whole, images[line])):
            axes[line, at].imshow(image, cmap="gray", vmin=0, vmax=WHITE)
            axes[line, at].set_axis_off()
            axes[line, at].set_title(TITLES[at], fontsize=8)
        for side, colour in enumerate(COLOURS):
            axes[line, 1].contour(lungs == side + 1, levels=[0.5], colors=colour, linewidths=0.9)
            left, top, right, bottom = ((place + 1) / 2 * WIDTH for place in phantom.anatomy.box(side))
            axes[line, 1].plot(
                [left, right, right, left, left],
                [top, top, bottom, bottom, top],
                color=colour,
                lw=0.9,
                ls="--",
            )
        axes[line, 0].text(
            0, WIDTH * 1.02, f"{case.id}: {', '.join(shown[row]) or 'nothing'}", fontsize=7, va="top"
        )
    try:
        figure.savefig(path, metadata={"Software": None} if path.suffix.lower() == ".png" else None)
    except OSError as error:
        raise InputError(
            found=f"{path}: cannot be written: {error.strerror}",
            expected="a place where files may be written",
        ) from None


def _findings(dataset: Dataset, row: int) -> tuple[str, ...]:
    shown = str(dataset.cases[row].extra["shown"])
    return tuple(shown.split()) if shown else ()
