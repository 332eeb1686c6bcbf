"""As many negatives per positive as an experiment wants, by leaving out cases of whichever are too many.

The paper trains on one positive for eight negatives and validates and tests on one for three. Cases have an
order that the seed alone decides, and those late in it are left out; so what is kept of a quarter of the
training cases is not another choice than what is kept of the whole.

    n rows
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from radreason.data.dataset import Dataset
from radreason.errors import InputError


def at_ratio(
    dataset: Dataset, rows: Int64[np.ndarray, " n"], negatives_per_positive: float, seed: int
) -> Int64[np.ndarray, " kept"]:
    """Keep rows at the ratio, in their order; those without a disease stay, for they are neither."""
    name = dataset.schema.disease
    if name is None or dataset.schema[name].size != 2:
        raise InputError(
            found="data.negatives_per_positive and a disease of other than two states",
            expected="two states, absent and present",
        )
    if not len(rows):
        return rows
    labels = dataset.labels(rows)[name]
    known = ~np.isnan(labels).any(axis=1)
    is_positive = known & (np.nan_to_num(labels)[:, 1] > 0.5)
    positives, negatives = int(is_positive.sum()), int((known & ~is_positive).sum())
    if not positives or not negatives:
        raise InputError(
            found=f"{positives} positive and {negatives} negative cases",
            expected="both, to have so many of one for each of the other",
        )
    kept_negatives = min(negatives, round(positives * negatives_per_positive))
    kept_positives = min(positives, max(1, round(negatives / negatives_per_positive)))
    rank = np.random.default_rng([seed, 7]).permutation(len(dataset))[rows]
    kept = ~known
    for chosen, count in ((known & ~is_positive, kept_negatives), (is_positive, kept_positives)):
        at = np.flatnonzero(chosen)
        kept[at[np.argsort(rank[at])[:count]]] = True
    return np.asarray(rows[kept])
