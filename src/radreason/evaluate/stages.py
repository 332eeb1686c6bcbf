"""What each stage of the network adds: the same figures for every stage, and one row per attribute.

A stage is any packed belief, under any name; the hybrid network's are ``evidence``, ``bn1``,
``gcn_in``, ``gcn_out``, ``fusion`` and ``bn2``.

    N cases, K states of all variables together, k states of one variable
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from radreason.errors import InputError, unknown
from radreason.evaluate import metrics
from radreason.schema import Schema


def score_stages(
    schema: Schema,
    beliefs: Mapping[str, Float[np.ndarray, "N K"]],
    truth: Mapping[str, Int[np.ndarray, " N"]],
) -> dict[str, dict[str, float]]:
    """Score every stage: the disease, and the attributes on average.

    ``truth`` holds, by the name of a variable, the position of the true state or -1; a variable that
    it does not name is missing in every case. Each attribute weighs the same, however many cases know
    it; one that no case knows is left out. ``attributes_within_one`` is over the ordered attributes
    of three or more grades: with two, nobody can be further off than one.
    """
    if schema.disease is None:
        raise InputError(
            found=f"a schema without a disease: {', '.join(schema.names)}",
            expected="one of its variables named as the disease",
            hint=f"Schema(variables, disease={schema.names[-1]!r})",
        )
    scores = {}
    for stage, packed in beliefs.items():
        believed, true = _cut(schema, packed), _complete(schema, truth, len(packed))
        p, y = believed[schema.disease], true[schema.disease]
        others = [v for v in schema if v.name != schema.disease]
        graded = [v for v in others if v.ordered and v.size > 2]
        scores[stage] = {
            "accuracy": metrics.accuracy(p, y),
            "auc": metrics.auc(p, y),
            "log_loss": metrics.log_loss(p, y),
            "brier": metrics.brier(p, y),
            "ece": metrics.ece(p, y),
            "attributes_accuracy": _mean_of_known(
                [metrics.accuracy(believed[v.name], true[v.name]) for v in others]
            ),
            "attributes_within_one": _mean_of_known(
                [metrics.within_one(believed[v.name], true[v.name]) for v in graded]
            ),
        }
    return scores


def stage_figures(
    schema: Schema,
    beliefs: Mapping[str, Float[np.ndarray, "N K"]],
    truth: Mapping[str, Int[np.ndarray, " N"]],
    thresholds: Mapping[str, float | Float[np.ndarray, " N"]],
) -> dict[str, dict[str, Any]]:
    """Score every stage, and of a disease of two states what it is called: at 0.5, and at its threshold.

    A threshold is one number for a stage, or one for each case: where models are pooled, each calls its
    own cases by its own.
    """
    figures: dict[str, dict[str, Any]] = {n: dict(s) for n, s in score_stages(schema, beliefs, truth).items()}
    disease = next(v for v in schema if v.name == schema.disease)
    if disease.size != 2:
        return figures
    for stage, packed in beliefs.items():
        p = packed[:, schema.slices()[disease.name]]
        y = _complete(schema, truth, len(p))[disease.name]
        figures[stage]["at_half"] = metrics.binary_metrics(p, y)
        if stage in thresholds:
            called = np.eye(2)[(p[:, 1] >= thresholds[stage]).astype(int)]
            called[np.isnan(p).any(axis=1)] = nan
            by_threshold = metrics.binary_metrics(called, y) | {"auc": metrics.auc(p, y)}
            figures[stage]["at_threshold"] = by_threshold
    return figures


def attribute_table(
    schema: Schema, beliefs: Float[np.ndarray, "N K"], truth: Mapping[str, Int[np.ndarray, " N"]]
) -> dict[str, dict[str, float]]:
    """Score one stage attribute by attribute, next to the best constant grade on the same cases.

    Nearly all nodules are soft tissue inside, so that a network that learned nothing is nearly always
    right there: only what lies above the constant was seen in the image. The constant is the best one
    in hindsight, for each figure its own. Figures of order are nan where the states have none.
    """
    believed, true = _cut(schema, beliefs), _complete(schema, truth, len(beliefs))
    table = {}
    for variable in schema:
        if variable.name == schema.disease:
            continue
        p, y = believed[variable.name], true[variable.name]
        constant, constant_within_one = _best_constant(p, y)
        table[variable.name] = {
            "accuracy": metrics.accuracy(p, y),
            "within_one": metrics.within_one(p, y) if variable.ordered else nan,
            "spearman": metrics.spearman(p, y) if variable.ordered else nan,
            "rps": metrics.ranked_probability_score(p, y) if variable.ordered else nan,
            "constant_accuracy": constant,
            "constant_within_one": constant_within_one if variable.ordered else nan,
        }
    return table


def _cut(schema: Schema, packed: Float[np.ndarray, "N K"]) -> dict[str, Float[np.ndarray, "N _"]]:
    if packed.shape[1] != schema.width:
        raise InputError(
            found=f"beliefs of width {packed.shape[1]}",
            expected=f"width {schema.width}: {' + '.join(map(str, schema.sizes))} states",
        )
    return {name: packed[:, piece] for name, piece in schema.slices().items()}


def _complete(
    schema: Schema, truth: Mapping[str, Int[np.ndarray, " N"]], n_cases: int
) -> dict[str, Int[np.ndarray, " N"]]:
    """Give every variable a truth, missing where there is none; refuse a name that is no variable."""
    for name in truth:
        if name not in schema:
            raise unknown("variable", name, schema.names)
    nobody_knows = np.full(n_cases, -1)
    return {name: truth.get(name, nobody_knows) for name in schema.names}


def _best_constant(beliefs: Float[np.ndarray, "N k"], truth: Int[np.ndarray, " N"]) -> tuple[float, float]:
    """Accuracy, and share within one, of the grade that serves best on the cases that are scored."""
    beliefs, truth = metrics.known_cases(beliefs, truth)
    if not len(truth):
        return nan, nan
    counts = np.bincount(truth, minlength=beliefs.shape[1])
    around = np.pad(counts, 1)
    near = around[:-2] + around[1:-1] + around[2:]
    return float(counts.max() / len(truth)), float(near.max() / len(truth))


def _mean_of_known(values: Sequence[float]) -> float:
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else nan
