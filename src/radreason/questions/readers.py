"""What a reader says of attributes, as evidence of learned reliability, and what to ask him next.

Shape letters: B is one case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64

from radreason.errors import unknown
from radreason.explain.ask import ask_next
from radreason.explain.confirm import as_evidence
from radreason.explain.reliability import Reliability
from radreason.questions.before import Before, named, plain


def confirmed(before: Before, grades: Mapping[str, str], sure: float) -> dict[str, Any]:
    """A reader's grades as evidence, worth what readers of the training cases are."""
    schema, disease = before.schema, before.schema[before.disease]
    hearing = before.hearing()
    codes = _codes(before, grades, next(iter(hearing.values()))[1])
    beliefs, start = [], []
    for seen, reliability, corrector in hearing.values():
        said = as_evidence(schema, codes, reliability, sure)
        beliefs.append(corrector(seen, said)[0])
        start.append(corrector(seen, torch.ones_like(said))[0])
    worth = {}
    for name, state in grades.items():
        variable, code = schema[name], int(codes[name][0])
        tables = [reliability.likelihoods(name, sure)[:, code] for _, reliability, _ in hearing.values()]
        agree = [reliability.agreement(name) for _, reliability, _ in hearing.values()]
        gradings = [reliability.weight[name].sum() for _, reliability, _ in hearing.values()]
        worth[name] = {
            "said": state,
            "probability_if_true_is": dict(
                zip(variable.states, np.mean(tables, axis=0).tolist(), strict=True)
            ),
            "readers_agree_with_the_others": float(np.mean(agree)),
            "gradings_behind": round(float(np.mean(gradings))),
        }
    taught = [before.taught[name] for name in before.seen]
    return {
        "grades": dict(grades),
        "sure": sure,
        "before": named(disease.states, torch.stack(start).mean(dim=0)),
        "after": named(disease.states, torch.stack(beliefs).mean(dim=0)),
        "worth": worth,
        "temperatures": [corrector.temperature for _, _, corrector in hearing.values()],
        "factors": [corrector.factor for _, _, corrector in hearing.values()],
        "factor_fitted": all(one.factor_fitted for one in taught),
    }


def to_ask_next(before: Before, grades: Mapping[str, str], sure: float) -> dict[str, Any]:
    """Which attribute a reader should grade next, after those that he has graded."""
    hearing = before.hearing()
    names = [n for n in next(iter(hearing.values()))[1].tables if n not in grades]
    if not names:
        return {"after": dict(grades), "attributes": []}
    gains = []
    for seen, reliability, corrector in hearing.values():
        net, evidence = corrector.hears(seen)
        said = torch.ones_like(evidence).double()
        if grades:
            said = as_evidence(before.schema, _codes(before, grades, reliability), reliability, sure)
        believed = corrector(seen, said)
        gains.append(ask_next(net, evidence.double() * said, reliability, names, believed)[0])
    gain = torch.stack(gains).mean(dim=0)
    order = gain.argsort(descending=True, stable=True).tolist()
    return {
        "after": dict(grades),
        "attributes": [{"attribute": names[a], "information_nats": plain(gain[a])} for a in order],
    }


def _codes(
    before: Before, grades: Mapping[str, str], reliability: Reliability
) -> dict[str, Int64[np.ndarray, " B"]]:
    """Look the positions of grades up; only what readers graded can be confirmed."""
    for name in grades:
        if name not in reliability.tables:
            raise unknown("attribute whose readers are known", name, reliability.tables)
    return {name: np.array([before.schema[name].index(state)]) for name, state in grades.items()}
