"""Draw docs/img/radiograph.png: a phantom on its way to both lungs side by side, step by step.

python docs/draw_radiograph.py [RADIOGRAPH OUT] draws a radiograph of your own instead.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

from radreason.data.case import Case
from radreason.data.lesion import Lesion
from radreason.data.lung_boxes import settled
from radreason.data.lung_crops import LungCrops
from radreason.data.radiograph import GREY_MAX, Limits, Radiograph, radiograph
from radreason.data.radiograph_files import read_radiograph
from radreason.data.synthetic_radiograph import phantom_chest
from radreason.lungs.finder import LungFinder

PICTURE = Path(__file__).parent / "img" / "radiograph.png"
COLOURS = ("#ff9d3a", "#4aa8ff")


def draw(image: Radiograph, title: str, out: Path) -> None:
    """Draw the radiograph, the lungs that were found, their boxes, and what is cut out."""
    finder = LungFinder()
    crops = LungCrops(finder, 512, 512, 0)
    lungs = finder(image.grey, image.frame)
    *boxes, flags = settled(lungs.boxes)
    case, patch, _, _ = crops.cut(Lesion(Case("case", "patient", "scan", {})), image)
    figure, axes = plt.subplots(1, 4, figsize=(11, 3.4))
    for ax in axes[:3]:
        ax.imshow(image.grey, cmap="gray", vmin=0, vmax=1)
    for number, colour in enumerate(COLOURS, 1):
        frame = image.frame
        extent = (frame.left, frame.right, frame.top, frame.bottom)
        for ax in axes[1:3]:
            ax.contour(lungs.where == number, [0.5], colors=colour, linewidths=1, extent=extent)
        b = boxes[number - 1].widened(crops.pad).within(frame)
        axes[2].add_patch(plt.Rectangle((b.left, b.top), b.width, b.height, fill=False, ec=colour, lw=1.5))
    axes[3].imshow(patch, cmap="gray", vmin=0, vmax=GREY_MAX)
    names = ("in one range of grey", "lungs", "a box around each", "512 x 256 each, side by side")
    for ax, name in zip(axes, names, strict=True):
        ax.axis("off")
        ax.set_title(name, fontsize=9)
    figure.suptitle(f"{title}{': ' * bool(flags)}{', '.join(case.flags)}", fontsize=10)
    figure.tight_layout()
    figure.savefig(out, dpi=80, metadata={"Software": None})


def main(arguments: list[str]) -> None:
    """Draw the phantom, or what is named."""
    if arguments:
        draw(read_radiograph(arguments[0]), Path(arguments[0]).name, Path(arguments[1]))
        return
    grey = phantom_chest((512, 480), noise=0.01).grey
    film = radiograph(grey.astype(np.float64), Limits(0, 1), "phantom", stated_by="the drawing")
    draw(film, "A phantom (a drawing, not an image of a patient)", PICTURE)


if __name__ == "__main__":
    main(sys.argv[1:])
