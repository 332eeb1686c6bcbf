"""One plane of a case as it is drawn in the pictures of the paper: axial, or the radiograph; with outline."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from radreason.data.dataset import Dataset
from radreason.data.radiograph import GREY_MAX
from radreason.report.contact_sheet import LUNG_WINDOW_HU, planes
from radreason.report.looks import SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_slice(
    axes: Axes, dataset: Dataset, case: str, outline: bool = True, title: str | None = None
) -> None:
    """Draw the plane through the middle."""
    row = _rows(dataset)[case]
    plane = planes(dataset.patches_at([row])[0])[0]
    low, high = LUNG_WINDOW_HU if dataset.patches.ndim == 4 else (0.0, float(GREY_MAX))
    axes.imshow(plane, cmap="gray", vmin=low, vmax=high, interpolation="bicubic")
    axes.set(xticks=[], yticks=[])
    axes.set_axis_off()
    if outline and dataset.masks is not None and dataset.patches.ndim == 4:
        mask = planes(dataset.masks_at([row])[0])[0]
        if mask.any():
            axes.contour(mask, levels=[0.5], colors="black", linewidths=1.2)
            axes.contour(mask, levels=[0.5], colors=SKY, linewidths=0.7)
    axes.set_title(case if title is None else title, fontsize=5.5, pad=2)


@lru_cache(maxsize=4)
def _rows(dataset: Dataset) -> dict[str, int]:
    return {case.id: row for row, case in enumerate(dataset.cases)}
