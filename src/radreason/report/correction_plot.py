"""The correction curve as a picture: AUC against answers, with the interval of the curve that matters."""

from __future__ import annotations

from pathlib import Path

from radreason.correction_run import UNCORRECTED, Correction
from radreason.report.correction_text import WORDS

LINES = {
    "evidence, network": ("#0072B2", "-", "o"),
    "evidence, random": ("#56B4E9", "--", "s"),
    "fact, network": ("#D55E00", ":", "v"),
    "regression, regression": ("#009E73", "-.", "D"),
    "panel, network": ("#CC79A7", "-", "^"),
}
"""Colours that the colour-blind can tell apart, and lines and marks that grey can."""


def draw_correction(found: Correction, path: Path, title: str) -> Path:
    """Draw AUC and log loss; nothing is drawn of curves that are constant."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, metric in zip(axes, ("auc", "log_loss"), strict=True):
        numbers = range(len(found.names) + 1)
        for kind, (colour, line, mark) in LINES.items():
            if kind in found.curves:
                values = found.curves[kind].value(metric)
                axis.plot(numbers, values, line, color=colour, marker=mark, markersize=4, label=WORDS[kind])
        bounds = [found.curves[UNCORRECTED].interval(metric, n) for n in numbers]
        low, high = [b.low for b in bounds], [b.high for b in bounds]
        axis.fill_between(numbers, low, high, color="#0072B2", alpha=0.12, linewidth=0)
        axis.axhline(bounds[0].value, color="0.5", linewidth=0.8)
        axis.set_xlabel("attributes that a reader confirmed")
        axis.set_ylabel(metric.replace("_", " ").replace("auc", "AUC"))
        axis.set_xticks(list(numbers))
    axes[0].legend(fontsize=7, frameon=False)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
