"""The correction curves of one trained model: what it believes after each answer, and its rivals.

Shape letters: B pairs of a case and one of its readers, Q + 1 numbers of answers, d states of the disease,
K states of all variables together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from radreason.explain import answered
from radreason.explain.asked import Asked
from radreason.explain.confirm import Corrector, as_evidence, as_fact, log_belief
from radreason.explain.correction_fit import OWN, Fitted, has
from radreason.explain.seen import Seen
from radreason.nn.packed import disease_of
from radreason.nn.rivals.bottleneck import BottleneckDiagnoser
from radreason.nn.rivals.embedding import EmbeddingDiagnoser

Curves = dict[str, Float64[np.ndarray, "Q1 B d"]]


def curves(fitted: Fitted, asked: Asked, seed: int) -> Curves:
    """Believe after each number of answers, in every way that is compared."""
    schema, names, grades = asked.known.schema, fitted.names, asked.grades
    n, seen = len(asked.rows), asked.seen
    score = fitted.corrector.uncorrected(seen).numpy()
    said = as_evidence(schema, grades, fitted.reliability)
    facts = as_fact(schema, grades)
    hard = replace(fitted.corrector, factor=1.0)
    again = Corrector("again", fitted.corrector.temperature)
    place = {name: a for a, name in enumerate(names)}
    fixed = np.tile([place[name] for name in fitted.by_importance], (n, 1))
    orders = {
        "random": answered.random_order(n, len(names), seed),
        "importance": fixed,
    }
    orders = {kind: answered.known_first(order, names, grades) for kind, order in orders.items()}
    found: Curves = {}
    found["evidence, network"], orders["network"] = answered.beliefs_as_asked(
        fitted.corrector, seen, names, grades, fitted.reliability
    )
    for kind, order in orders.items():
        if kind != "network":
            found[f"evidence, {kind}"] = answered.beliefs_in_order(fitted.corrector, seen, order, names, said)
        found[f"fact, {kind}"] = answered.beliefs_in_order(hard, seen, order, names, facts)
    if has(seen, "again"):
        found["all again, network"] = answered.beliefs_in_order(again, seen, orders["network"], names, said)
    if isinstance(seen.model, BottleneckDiagnoser | EmbeddingDiagnoser):
        for kind in ("random", "network"):
            for way, told in (("fact", facts), ("evidence", said)):
                found[f"override as {way}, {kind}"] = _overridden(
                    seen, seen.model, orders[kind], names, told, fitted.corrector.temperature
                )
    for kind, models in fitted.regressions.items():
        found[f"regression, {kind}"] = np.stack([model(score, grades) for model in models])
    found["panel, network"], _ = answered.beliefs_as_asked(
        fitted.panel, seen, names, grades, fitted.reliability, asked.panel(fitted.reliability)
    )
    if fitted.own is not None:
        alone, beside = fitted.own
        own = {OWN: asked.own}
        steady = np.ones((len(names) + 1, 1, 1))
        found["reader's own diagnosis"] = alone(None, own) * steady
        found["image and reader's own diagnosis"] = beside(score, own) * steady
    return found


def _overridden(
    seen: Seen,
    model: BottleneckDiagnoser | EmbeddingDiagnoser,
    order: answered.Order,
    names: tuple[str, ...],
    said: Float[Tensor, "B K"],
    temperature: float,
) -> Float64[np.ndarray, "Q1 B d"]:
    """Correct a concept model in its own way: a belief in an attribute is replaced by another."""
    at = seen.schema.slices()[disease_of(seen.schema)]
    found = []
    for answers in range(len(names) + 1):
        told = answered.only_first(seen.schema, said, order, names, answers)
        after = seen.diagnosis.evidence.double() * told
        pieces = [
            piece / piece.sum(dim=1, keepdim=True).clamp_min(1e-300) for piece in seen.schema.split(after)
        ]
        flat = [(piece == 1).all(dim=1, keepdim=True) for piece in seen.schema.split(told)]
        given = torch.cat([torch.where(f, torch.nan, p) for f, p in zip(flat, pieces, strict=True)], dim=1)
        with torch.no_grad():
            belief = model.reason(seen.feature, given.to(seen.feature)).final[:, at]
        found.append((log_belief(belief) / temperature).softmax(dim=1).numpy())
    return np.stack(found)
