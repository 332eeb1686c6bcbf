"""How far answers like this one came true in other test cases of the run."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from radreason.evaluate import metrics, weighted
from radreason.evaluate.intervals import Resampler
from radreason.nn.packed import disease_of
from radreason.prob.bootstrap import wilson
from radreason.report.case_page import words
from radreason.report.case_page.content import Bin, Trust
from radreason.report.tested import Tested

BORDERS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
FEW = 10
"""Fewer cases in a bin say little, and the page says so."""


def trust(tested: Tested, state: int, share: float, is_phantom: bool) -> Trust:
    """Compare an answer with the test cases that got one like it."""
    known = tested.truth >= 0
    belief, had = tested.belief[known, state], tested.truth[known] == state
    disease = tested.schema[disease_of(tested.schema)]
    word = words.called(disease.name, disease.states[state])
    what = "phantoms" if is_phantom else "cases"
    if not len(had):
        return Trust(
            0, (), None, None, None, ("The run tested no cases: nobody knows how good its answers are.",)
        )
    of_bin = np.minimum(np.searchsorted(BORDERS, belief, side="right") - 1, len(BORDERS) - 2)
    bins = []
    for number, (low, high) in enumerate(pairwise(BORDERS)):
        inside = of_bin == number
        n, k = int(inside.sum()), int(had[inside].sum())
        bins.append(Bin(low, high, n, k, wilson(k / n, n) if n else (0.0, 1.0)))
    here = min(int(np.searchsorted(BORDERS, share, side="right")) - 1, len(BORDERS) - 2)
    chosen = bins[here]
    said = [
        f"Of {len(had):,} other test {what}, which no model that was asked had seen, {chosen.cases:,} got a "
        f"probability of {word} from {chosen.low:.0%} to {chosen.high:.0%}; {chosen.had:,} of them were "
        f"{word}"
        + (f" ({chosen.had / chosen.cases:.0%}, 95 % interval {chosen.interval[0]:.0%} to "
           f"{chosen.interval[1]:.0%})." if chosen.cases else ".")
    ]  # fmt: skip
    if chosen.cases < FEW:
        said.append(f"Fewer than {FEW} such {what}: this says little.")
    whole = tested.belief[known]
    area, bounds = None, None
    if whole.shape[1] == 2 and len(set(tested.truth[known].tolist())) == 2:
        area = metrics.auc(whole, tested.truth[known])
        if tested.patients:
            patients = [p for p, is_known in zip(tested.patients, known, strict=True) if is_known]
            interval = Resampler(patients)(weighted.auc(whole, tested.truth[known])).interval()
            bounds = (interval.low, interval.high)
        within = f" (95 % interval {bounds[0]:.2f} to {bounds[1]:.2f}, resampling patients)" if bounds else ""
        said.append(
            f"In all of them, {area:.0%} of pairs of a {word} and another case are in the right order"
            f"{within}, and {metrics.accuracy(whole, tested.truth[known]):.0%} of cases are called right."
        )
    return Trust(len(had), tuple(bins), here, area, bounds, tuple(said))
