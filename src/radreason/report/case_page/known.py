"""What a run knows of its training cases: from the file beside the weights, or from the dataset once more."""

from __future__ import annotations

from collections.abc import Callable

from radreason.data.dataset import Dataset
from radreason.diagnoser import Diagnoser
from radreason.explain.taught import Taught
from radreason.questions.before import collect_background, read_background


def known(
    run: Diagnoser,
    name: str,
    dataset: Dataset | None,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> Taught | None:
    """Read what a model kept; of one that kept nothing it is collected anew, and the run stays as it is."""
    kept = read_background(run, name)
    if kept is not None or dataset is None:
        return kept
    return collect_background(run, name, dataset, lambda _, done, of: told(done, of))
