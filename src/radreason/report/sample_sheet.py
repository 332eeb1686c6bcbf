"""Cases that did not train, as a model saw them: slices, what is true, and what it says of every grade.

Every second case is one that the model got wrong, as long as there are any: those are looked at first.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from radreason.data.dataset import Dataset
from radreason.errors import InputError
from radreason.evaluate.predictions import Predictions
from radreason.report.contact_sheet import draw_cases, laid_out, title_of
from radreason.schema import Schema

N_CASES = 16
SEED = 0


def draw_sample_sheet(dataset: Dataset, predictions: Predictions, path: Path, n_cases: int = N_CASES) -> int:
    """Draw some of the predicted cases; tell how many."""
    at = {case.id: row for row, case in enumerate(dataset.cases)}
    unknown_to_us = [case for case in predictions.cases if case not in at]
    if unknown_to_us:
        raise InputError(
            found=f"{dataset.folder}: no case {unknown_to_us[0]}",
            expected="the dataset that the predictions are of",
        )
    places = choose(predictions, n_cases)
    texts = [says(predictions, place) for place in places]
    part = predictions.parts[0] if places else "no"
    caption = (
        f"{len(places)} of {len(predictions.cases):,} {part} cases, mistakes first; "
        "name: true grade | the model's, with its probability"
    )
    rows = [at[predictions.cases[place]] for place in places]
    draw_cases(dataset, rows, texts, path, title_of(dataset, len(rows)), caption)
    return len(places)


def choose(predictions: Predictions, n_cases: int) -> list[int]:
    """Take mistakes and right answers in turn, each in an order that only the seed decides."""
    schema = predictions.schema
    disease = schema.disease or schema.names[-1]
    truth = predictions.truth[disease]
    called = predictions.final[:, schema.slices()[disease]].argmax(axis=1)
    order = np.random.default_rng(SEED).permutation(np.flatnonzero(truth >= 0)).tolist()
    wrong = [place for place in order if called[place] != truth[place]][: n_cases // 2]
    right = [place for place in order if called[place] == truth[place]][: n_cases - len(wrong)]
    return [*wrong, *right]


def says(predictions: Predictions, place: int) -> list[str]:
    """Write in a few lines which case it is, and the truth beside the belief for every variable."""
    schema = predictions.schema
    pairs = {name: _pair(predictions, place, name, schema) for name in schema.names}
    disease = schema.disease or schema.names[-1]
    is_right = pairs[disease][0] == pairs[disease][1]
    told = {name: f"{name}: {true} | {said} {share:.0%}" for name, (true, said, share) in pairs.items()}
    first = f"{told.pop(disease)}   {'right' if is_right else 'WRONG'}"
    return [predictions.cases[place], first, *laid_out(list(told.values()), lines=3)]


def _pair(predictions: Predictions, place: int, name: str, schema: Schema) -> tuple[str, str, float]:
    belief = predictions.final[place, schema.slices()[name]]
    code, states = int(predictions.truth[name][place]), schema[name].states
    return states[code] if code >= 0 else "-", states[int(belief.argmax())], float(belief.max())
