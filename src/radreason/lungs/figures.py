"""How well lungs were found: overlap with what was drawn, and what the boxes lose or miss.

Shape letters: H, W picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from jaxtyping import Int64

from radreason.data.lung_boxes import Lungs, box_of
from radreason.data.picture_scale import Box

PIXELS = 256
"""Errors of edges are in pixels of a picture with so many rows and columns."""


def figures(drawn: Int64[np.ndarray, "H W"], found: Lungs, boxes: Lungs, pad: float) -> dict[str, float]:
    """Compare one picture: ``found`` as this picture is drawn, ``boxes`` as the product takes them.

    dice        mean over both lungs; 0 for one that was not found
    lost        share of drawn lung beyond the box of its side, by the boxes as found
    lost_padded the same by the boxes as crops take them, widened
    edge, edge_worst  mean and largest distance of the eight edges of both boxes, in pixels of 256
    missed      lungs that were not found
    """
    total = int((drawn > 0).sum())
    dice, lost, padded, edges, missed = [], 0.0, 0.0, [], 0
    for number in (1, 2):
        truth, guess = drawn == number, found.where == number
        dice.append(2 * (truth & guess).sum() / max(1, truth.sum() + guess.sum()))
        box, own = boxes.boxes[number - 1], found.boxes[number - 1]
        missed += box is None
        lost += float(truth.sum()) if box is None else _outside(truth, box)
        padded += float(truth.sum()) if box is None else _outside(truth, box.widened(pad))
        if own is not None:
            ours, theirs = (np.array([b.top, b.left, b.bottom, b.right]) for b in (own, box_of(truth)))
            edges += (np.abs(ours - theirs) * PIXELS).tolist()
    return {
        "dice": float(np.mean(dice)),
        "lost": lost / total,
        "lost_padded": padded / total,
        "edge": fmean(edges) if edges else float("nan"),
        "edge_worst": max(edges, default=float("nan")),
        "missed": missed,
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Average over pictures, with the worst beside where a mean hides it."""

    def column(name: str) -> list[float]:
        return [row[name] for row in rows if np.isfinite(row[name])]

    def rounded(value: float) -> float:
        return round(float(value), 5)

    return {
        "pictures": len(rows),
        "dice": rounded(fmean(column("dice"))),
        "dice_5th_percentile": rounded(np.quantile(column("dice"), 0.05)),
        "lost": rounded(fmean(column("lost"))),
        "lost_padded": rounded(fmean(column("lost_padded"))),
        "lost_padded_worst": rounded(max(column("lost_padded"))),
        "edge": rounded(fmean(column("edge") or [0.0])),
        "edge_95th_percentile": rounded(np.quantile(column("edge_worst") or [0.0], 0.95)),
        "missed": int(sum(column("missed"))),
    }


def _outside(truth: np.ndarray, box: Box) -> float:
    height, width = truth.shape
    box = box.times(height, width)
    rows, columns = np.arange(height) + 0.5, np.arange(width) + 0.5
    inside = ((rows >= box.top) & (rows <= box.bottom))[:, None] & (
        (columns >= box.left) & (columns <= box.right)
    )
    return float((truth & ~inside).sum())
