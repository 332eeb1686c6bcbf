"""What if an attribute were another, and the smallest change that would turn the diagnosis.

Shape letters: K states of all variables together, d states of the disease, M changes tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError
from radreason.explain.counterfactual import counterfactual
from radreason.explain.seen import Seen
from radreason.explain.what_if import Where, what_if
from radreason.nn.packed import attributes_of
from radreason.prob import BayesNet
from radreason.questions.before import Before, all_beliefs, mean_diagnosis, mean_nodes, named
from radreason.schema import Schema

AT_ONCE = 128
"""Changed images that go through a model together."""

States = Mapping[str, Mapping[str, float]]


def supposed(before: Before, states: States, do: bool, where: Where) -> dict[str, Any]:
    """Attributes set for certain, observed or from outside: every variable before and after."""
    found = []
    told: dict[str, Mapping[str, float] | str] = {}
    for name, weights in states.items():
        total = sum(weights.values())
        told[name] = {state: weight / total for state, weight in weights.items()}
    for name, seen in before.seen.items():
        needs = where == "graph" or (where == "both" and seen.model.graph is not None)
        means = mean_nodes(before, name) if needs else None
        found.append(what_if(seen, told, means, do, where))
    after = mean_diagnosis(found)
    schema = before.schema
    states_of, disease = schema[before.disease].states, before.disease
    return {
        "set": {name: dict(weights) for name, weights in told.items() if not isinstance(weights, str)},
        "do": do,
        "where": where,
        "before": all_beliefs(schema, before.diagnosis.final[0]),
        "after": all_beliefs(schema, after.final[0]),
        "stages": {
            stage: {
                "before": named(
                    schema[before.disease].states, before.diagnosis.belief(before.disease, stage)[0]
                ),
                "after": named(states_of, after.belief(disease, stage)[0]),
            }
            for stage in after.stages
        },
    }


def turning(before: Before, changeable: Sequence[str] | None = None, most: int = 3) -> dict[str, Any]:
    """The smallest change of grades, set in BN-1 and in the graph, that turns the final diagnosis."""
    schema, disease = before.schema, before.schema[before.disease]
    final = schema.split(before.diagnosis.final)
    start = {
        v.name: v.states[int(piece[0].argmax())]
        for v, piece in zip(schema, final, strict=True)
        if v.name != disease.name
    }
    chosen = tuple(changeable) if changeable else _gradable(before)
    base = next(iter(before.seen.values())).first[0]

    def decide(rows: Float[Tensor, "M K"]) -> Float[Tensor, "M d"]:
        changes = _changes(schema, rows, base)
        beliefs = [_decide(before, name, changes) for name in before.seen]
        return torch.stack(beliefs).mean(dim=0)

    found = counterfactual(schema, base, start, decide, chosen, most)
    told: dict[str, Any] = {
        "from": disease.states[int(before.diagnosis.disease[0].argmax())],
        "belief": named(disease.states, before.diagnosis.disease[0]),
        "tried": list(chosen),
        "most": most,
        "found": found is not None,
    }
    if found is not None:
        after = torch.tensor(found.belief)
        told |= {
            "to": disease.states[int(after.argmax())],
            "changes": {n: {"from": found.before[n], "to": state} for n, state in found.grades.items()},
            "steps": found.steps,
            "belief_after": named(disease.states, after),
        }
    return told


def _decide(before: Before, name: str, changes: Sequence[Mapping[str, int]]) -> Float[Tensor, "M d"]:
    """Belief of one model in the disease under each of many changes, in BN-1 and in the graph."""
    seen, schema = before.seen[name], before.schema
    at = schema.slices()
    means = mean_nodes(before, name) if seen.model.graph is not None else None
    if means is None and not isinstance(seen.model.first_net, BayesNet):
        raise InputError(
            found="a model without BN-1 and without a graph", expected="one of them: grades are set there"
        )
    beliefs = []
    for begin in range(0, len(changes), AT_ONCE):
        part = changes[begin : begin + AT_ONCE]
        told = seen.first.repeat(len(part), 1) if seen.model.first_net is not None else None

        def nodes(features: Tensor, part: Sequence[Mapping[str, int]] = part) -> Tensor:
            features = features.clone()
            for row, grades in enumerate(part):
                for attribute, code in grades.items():
                    assert means is not None
                    features[row, schema.position(attribute)] = means[attribute][code].to(features)
            return features

        first = None
        if told is not None:
            for row, grades in enumerate(part):
                for attribute, code in grades.items():
                    told[row, at[attribute]] = 0.0
                    told[row, at[attribute].start + code] = 1.0
            posterior = seen.net(told)

            def first(likelihoods: Tensor, posterior: Tensor = posterior) -> Tensor:
                return posterior

        many = Seen(seen.model, seen.feature.expand(len(part), -1))
        after = many.again(first=first, nodes=None if means is None else nodes)
        beliefs.append(after.final[:, at[before.disease]])
    return torch.cat(beliefs)


def _changes(schema: Schema, rows: Float[Tensor, "M K"], base: Float[Tensor, " K"]) -> list[dict[str, int]]:
    """Read from changed evidence which attributes were set, and to what."""
    changes: list[dict[str, int]] = [{} for _ in rows]
    for name, at in schema.slices().items():
        for row in (rows[:, at] != base[at]).any(dim=1).nonzero()[:, 0].tolist():
            changes[row][name] = int(rows[row, at].argmax())
    return changes


def _gradable(before: Before) -> tuple[str, ...]:
    """Attributes that readers grade, where it is known: what is measured does not change by looking again."""
    first = next(iter(before.taught.values()), None)
    if first is None or first.reliability is None:
        return attributes_of(before.schema)
    return tuple(n for n in attributes_of(before.schema) if n in first.reliability.tables)
