"""Many cases on one page, as a person should see them before a network does: slices, outlines, grades.

Every case is shown in three planes through its centre: from below with the front on top, from the
front, and from the patient's left, as radiologists are used to. The outline is that of the mask. A
radiograph is shown whole, from black to white.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped

from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.data.radiograph import GREY_MAX
from radreason.errors import InputError, unknown
from radreason.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LUNG_WINDOW_HU = (-1350.0, 150.0)
"""From black to white: the window in which lungs are read."""

ENDINGS = (".png", ".pdf", ".svg")
COLUMNS = 4
OUTLINE = "#ff9d3a"
LINE, LINES = 78, 2
_GAP = 3
TILE_WIDTH_IN = 3.6


def draw_contact_sheet(dataset: Dataset, path: Path | str, n_cases: int = 24, seed: int = 0) -> list[int]:
    """Draw some cases of every state of the disease as one picture; give their rows."""
    rows = choose(dataset, n_cases, seed)
    texts = [describe(dataset.cases[row], dataset.schema) for row in rows]
    draw_cases(dataset, rows, texts, Path(path), title_of(dataset, len(rows)), _caption(dataset))
    return rows


def draw_cases(
    dataset: Dataset,
    rows: Sequence[int],
    texts: Sequence[Sequence[str]],
    path: Path,
    title: str,
    caption: str,
) -> None:
    """Draw cases with some lines of text below each."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if path.suffix.lower() not in ENDINGS:
        raise unknown(f"ending of {path}:", path.suffix, ENDINGS)
    n_texts = max([4, *(len(text) for text in texts)])
    planes_in, tile_in = 1.21, 1.21 + 0.185 * n_texts
    lines = -(-len(rows) // COLUMNS)
    width, height = COLUMNS * TILE_WIDTH_IN, lines * tile_in + 0.7
    figure = Figure((width, height), dpi=110, facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.01, 1 - 0.14 / height, title, va="top", fontsize=10, weight="bold")
    figure.text(0.01, 1 - 0.36 / height, caption, va="top", fontsize=8, color="#444444")
    patches = dataset.patches_at(rows)
    masks = None if dataset.masks is None else dataset.masks_at(rows)
    for place, text in enumerate(texts):
        line, column = divmod(place, COLUMNS)
        left = (column + 0.02) / COLUMNS
        bottom = 1 - (0.6 + line * tile_in + planes_in + 0.04) / height
        axes = figure.add_axes((left, bottom, 0.96 / COLUMNS, planes_in / height))
        _draw_planes(axes, patches[place], None if masks is None else masks[place], dataset.kind)
        below = "\n".join(_short(said, 90) for said in text)
        figure.text(left, bottom - 0.04 / height, below, va="top", fontsize=6.2, linespacing=1.25)
    try:
        figure.savefig(path, metadata={"Software": None} if path.suffix.lower() == ".png" else None)
    except OSError as error:
        raise InputError(
            found=f"{path}: cannot be written: {error.strerror}",
            expected="a place where files may be written",
        ) from None


def choose(dataset: Dataset, n_cases: int, seed: int) -> list[int]:
    """Take cases of every state of the disease in turn, so that the rare ones are seen, too."""
    disease = dataset.schema.disease
    by_state: dict[int, list[int]] = defaultdict(list)
    for row in np.random.default_rng(seed).permutation(len(dataset)).tolist():
        by_state[_state(dataset.cases[row], disease)].append(row)
    chosen: list[int] = []
    while len(chosen) < min(n_cases, len(dataset)):
        for state in sorted(by_state):
            if by_state[state] and len(chosen) < n_cases:
                chosen.append(by_state[state].pop(0))
    return sorted(chosen, key=lambda row: (_state(dataset.cases[row], disease), row))


def describe(case: Case, schema: Schema) -> list[str]:
    """Say in a few lines what is known of a case: which it is, the disease and the size, the grades."""
    known = [
        *([f"{case.diameter_mm:.1f} mm"] if case.diameter_mm else []),
        *([f"{len(case.readings)} reader{'s' * (len(case.readings) != 1)}"] if case.readings else []),
        *([f"{case.padding_share:.0%} padding"] if case.padding_share >= 0.005 else []),
        *case.flags,
    ]
    disease = [_graded(case, schema, schema.disease)] if schema.disease else []
    grades = [_graded(case, schema, name) for name in schema.names if name != schema.disease]
    return [_short(case.id, 60), "  ".join([*disease, *known]), *laid_out(grades)]


def planes(patch: Shaped[np.ndarray, "*patch"]) -> list[Shaped[np.ndarray, "rows columns"]]:
    """Cut a patch through its centre; one that is flat already is shown as it is."""
    if patch.ndim == 2:
        return [patch]
    middle = [length // 2 for length in patch.shape[-3:]]
    axial, coronal, sagittal = patch[middle[0]], patch[:, middle[1]], patch[:, :, middle[2]]
    return [axial, coronal[::-1], sagittal[::-1]]


def _draw_planes(
    axes: Axes,
    patch: Shaped[np.ndarray, "*patch"],
    mask: Shaped[np.ndarray, "*patch"] | None,
    kind: str,
) -> None:
    words = kind.split("-")
    grey = (0, GREY_MAX) if "cxr" in words else np.percentile(patch, (1, 99))
    low, high = LUNG_WINDOW_HU if "ct" in words else grey
    axes.set_axis_off()
    start = 0
    shown = planes(patch)
    outlined = planes(mask) if mask is not None else [None] * len(shown)
    for image, outline in zip(shown, outlined, strict=True):
        n_rows, n_columns = image.shape
        extent = (start, start + n_columns, n_rows, 0)
        axes.imshow(image, cmap="gray", vmin=low, vmax=max(high, low + 1), extent=extent, aspect="equal")
        if outline is not None and outline.any():
            where = (start + np.arange(n_columns) + 0.5, np.arange(n_rows) + 0.5)
            axes.contour(*where, outline, levels=[0.5], colors=OUTLINE, linewidths=0.7)
        start += n_columns + _GAP
    axes.set_xlim(0, start - _GAP)
    axes.set_ylim(max(image.shape[0] for image in shown), 0)


def _graded(case: Case, schema: Schema, name: str) -> str:
    """Say the likeliest state, and its share where there are others."""
    label = case.labels.get(name)
    if label is None:
        return f"{_short(name, 20)} -"
    state = int(np.argmax(label))
    share = "" if label[state] == 1 else f" ({label[state]:.0%})"
    return f"{_short(name, 20)} {schema[name].states[state]}{share}"


def laid_out(grades: list[str], lines: int = LINES) -> list[str]:
    """Lay grades out in as many lines as there is room for; what does not fit is counted."""
    found = [""]
    for number, grade in enumerate(grades):
        if len(found[-1]) + 2 + len(grade) > LINE and found[-1]:
            if len(found) == lines:
                return [*found[:-1], f"{found[-1]}  and {len(grades) - number} more"]
            found.append("")
        found[-1] += ("  " if found[-1] else "") + grade
    return found


def _state(case: Case, disease: str | None) -> int:
    label = case.labels.get(disease) if disease else None
    return -1 if label is None else int(np.argmax(label))


def title_of(dataset: Dataset, n_shown: int) -> str:
    """Say whose images these are; phantoms are called phantoms."""
    n_patients = dataset.counts.get("patients", 0)
    if "phantom" in dataset.kind:
        return f"PHANTOMS, not images of patients: {n_shown} of {len(dataset):,}"
    kind = {"ct": "CT", "cxr": "Radiographs"}.get(dataset.kind, dataset.kind)
    return f"{kind}: {n_shown} of {len(dataset):,} cases of {n_patients:,} patients"


def _caption(dataset: Dataset) -> str:
    planes = "axial, coronal, sagittal" if dataset.patches.ndim == 4 else "whole"
    window = (
        f"; {LUNG_WINDOW_HU[0]:.0f} to {LUNG_WINDOW_HU[1]:.0f} HU" if "ct" in dataset.kind.split("-") else ""
    )
    return f"{_short(dataset.source, 120)}; {planes}{window}; {dataset.fingerprint[:19]}"


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
