"""Mean and standard deviation of every figure over models, in the shape that the figures have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from statistics import fmean, stdev
from typing import Any


def spread(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Replace every number by its mean, its standard deviation (n - 1) and the count of models behind it.

    A figure that a model does not have, or that could not be computed, is left out and not counted: it is
    never a zero. The standard deviation of one model is nan.

    >>> spread([{"final": {"auc": 0.75}}, {"final": {"auc": 0.25}}, {"final": {"auc": None}}])
    {'final': {'auc': {'mean': 0.5, 'sd': 0.3535533905932738, 'models': 2}}}
    """
    result: dict[str, Any] = {}
    for name in dict.fromkeys(name for document in documents for name in document):
        values = [document[name] for document in documents if name in document]
        inner = [value for value in values if isinstance(value, Mapping)]
        if inner:
            result[name] = spread(inner)
            continue
        known = [float(v) for v in values if isinstance(v, int | float) and isfinite(v)]
        mean, sd = fmean(known) if known else nan, stdev(known) if len(known) > 1 else nan
        result[name] = {"mean": mean, "sd": sd, "models": len(known)}
    return result
