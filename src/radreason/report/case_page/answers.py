"""Ask a run about one image, all that a page is to say.

K states of all variables together
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import torch
from jaxtyping import Float, Float64, Shaped
from torch import Tensor

from radreason.data.case import Case
from radreason.data.volume import AIR_HU
from radreason.diagnoser import Diagnoser
from radreason.evaluate.calibration import tempered
from radreason.explain.ask import ask_next
from radreason.explain.consistency import consistency
from radreason.explain.counterfactual import counterfactual
from radreason.explain.importance import importance
from radreason.explain.seen import Seen, look
from radreason.explain.shapley import MOST, log_odds
from radreason.explain.taught import Taught
from radreason.explain.what_if import Where, what_if
from radreason.explain.where import where
from radreason.explain.why import why
from radreason.given import GivenImage
from radreason.nn.hybrid import HybridDiagnoser
from radreason.nn.packed import attributes_of, disease_of
from radreason.prob import BayesNet
from radreason.report.case_page import content, words
from radreason.report.case_page.trust import trust
from radreason.report.tested import Tested, temperature, threshold

MEASURED = ("size",)
"""Attributes that are measured: nobody is asked for another opinion of them."""

MOST_CHANGED = 2
"""Grades that a counterfactual may change: three are 20,000 questions to the whole model."""

ODD = 0.98
"""An attribute is told to be odd where this share of training cases disagrees less."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What a run says of an image: the content of the page, and the maps of what speaks for each variable."""

    content: content.Content
    maps: Shaped[np.ndarray, "V *space"]  # noqa: UP037
    state: int


def ask(run: Diagnoser, image: GivenImage, known: Taught | None, tested: Tested) -> Asked:
    """Ask all questions; ``known`` is of the first of the models that are asked."""
    name = image.models[0]
    model, schema = run.models[name], run.schema
    disease = schema[disease_of(schema)]
    pixels = run.patches_of(image.patch[None])
    seen = look(model, pixels)
    raw = {n: run.models[n](pixels).disease.detach().double().numpy() for n in image.models}
    each = {n: tempered(belief, temperature(run, n)) for n, belief in raw.items()}
    belief = np.mean(list(each.values()), axis=0)[0]
    state = disease.size - 1 if disease.size == 2 else int(belief.argmax())
    hot = temperature(run, name)

    def share(beliefs: Tensor) -> list[float]:
        found: list[float] = tempered(beliefs.double().numpy(), hot)[:, state].tolist()
        return found

    learned_from_phantoms = "phantom" in str(run.plans[name]["data"]["kind"])
    is_phantom = image.case is not None and "phantom" in image.case.flags
    grades = _grades(seen, image.case)
    at = schema.slices()[disease.name]
    stages = tuple(
        content.Stage(stage, words.STAGES[stage], tuple(belief[0, at].tolist()))
        for stage, belief in seen.diagnosis.stages.items()
    )
    truth = _truth(image.case, disease.name, disease.states)
    cut = threshold(run, image.models) if disease.size == 2 else None
    found_models = {n or "the model": tuple(b[0].tolist()) for n, b in each.items()}
    answer = content.Answer(
        disease.name,
        disease.states,
        disease.states[state],
        tuple(belief.tolist()),
        tuple(np.mean(list(raw.values()), axis=0)[0].tolist()),
        found_models,
        name or "the model",
        cut,
        truth,
        words.answer(
            disease.name,
            disease.states,
            state,
            belief.tolist(),
            stages,
            found_models,
            cut,
            truth,
            image.readings,
        ),
    )
    has_net = isinstance(model.first_net, BayesNet)
    is_hybrid = isinstance(model, HybridDiagnoser)
    silent = []
    if not is_hybrid or not has_net:
        silent.append("The method of this run has no network that reasons from grades: why, what if and what "
                      "to look at next cannot be asked.")  # fmt: skip
    elif known is None:
        silent.append("Without the dataset of the run (--data): importance, what-if, consistency and what to "
                      "look at next need its training cases.")  # fmt: skip
    elif known.reliability is None:
        silent.append("No two readers graded a training case: what to look at next cannot be asked.")
    asks = known if is_hybrid and has_net else None
    settings = run.plans[name]["settings"]
    maps = where(model, pixels)[0]
    filled = content.Content(
        image.name,
        str(run.plans[name]["data"]["kind"]),
        is_phantom,
        learned_from_phantoms,
        image.case.diameter_mm if image.case is not None else None,
        tuple(settings["data"]["window"]),
        words.shown(image.case, image.patch.ndim),
        tuple(_remarks(image.case)),
        _outside(maps[schema.position(disease.name)].numpy(), pixels[0, 0].numpy()),
        answer,
        stages,
        grades,
        _reasons(seen, asks, grades, state, each[name]) if has_net and is_hybrid else None,
        _what_if(seen, asks, grades, share),
        _turn(seen, asks, grades, share, state),
        _questions(seen, asks),
        _consistency(seen, asks),
        trust(tested.but(image.name), state, float(belief[state]), is_phantom),
        image.trace,
        tuple(silent),
    )
    return Asked(filled, maps.numpy(), state)


def _grades(seen: Seen, case: Case | None) -> tuple[content.Grade, ...]:
    schema, found = seen.schema, []
    for name in attributes_of(schema):
        variable = schema[name]
        said = [] if case is None else [reading.get(name) for reading in case.readings]
        given = sorted(
            (state for state in said if state is not None and state in variable.states), key=variable.index
        )
        found.append(
            content.Grade(
                name,
                variable.states,
                variable.meanings,
                variable.ordered,
                tuple(seen.diagnosis.belief(name, "evidence")[0].tolist()),
                tuple(seen.diagnosis.belief(name)[0].tolist()),
                tuple(given),
                _truth(case, name, variable.states),
            )
        )
    return tuple(found)


def _reasons(
    seen: Seen,
    known: Taught | None,
    grades: Sequence[content.Grade],
    state: int,
    answer: Float64[np.ndarray, "1 d"],
) -> content.Reasons | None:
    if len(grades) > MOST:
        return None
    net, at = seen.net, seen.schema.slices()[disease_of(seen.schema)]
    with torch.no_grad():
        usual = net(torch.ones_like(seen.first))
    base = log_odds(usual[:, at], state)
    told = why(net, seen.first[0], state)
    matters: dict[str, float] = {}
    if known is not None and known.means is not None:
        found = importance(seen, known.background())
        matters = dict(zip(found.names, found.of(state)[0].tolist(), strict=True))
    whole = float(log_odds(torch.from_numpy(answer), state))
    of = {grade.name: grade for grade in grades}
    shown = {g.name: g.states[int(np.argmax(g.image))] for g in grades}
    reasons = [
        content.Reason(
            r.name,
            of[r.name].words(shown[r.name]),
            _is_surer(seen, usual, r.name, shown[r.name]),
            r.contribution,
            matters.get(r.name),
        )
        for r in told.reasons
    ]
    return content.Reasons(
        float(base),
        told.none - float(base),
        tuple(reasons),
        whole - told.all,
        whole,
        words.reasons(told, reasons),
    )


def _is_surer(seen: Seen, usual: Float[Tensor, "1 K"], name: str, state: str) -> bool:
    """Whether the image makes a grade likelier than it is without one: else it may speak the other way."""
    at = seen.schema.slices()[name]
    place = seen.schema[name].index(state)
    own = seen.first[0, at] * usual[0, at]
    return bool(own[place] / own.sum() >= usual[0, at][place])


def _what_if(
    seen: Seen, known: Taught | None, grades: Sequence[content.Grade], share: words.Share
) -> tuple[content.WhatIf, ...]:
    if known is None:
        return ()
    place: Where = "bn1" if known.means is None else "both"
    return tuple(
        content.WhatIf(
            grade.name,
            grade.states,
            grade.called,
            tuple(
                share(what_if(seen, {grade.name: s}, known.means, where=place).disease)[0]
                for s in grade.states
            ),
        )
        for grade in grades
    )


def _turn(
    seen: Seen, known: Taught | None, grades: Sequence[content.Grade], share: words.Share, state: int
) -> content.Turn | None:
    """Look for the smallest change that turns the answer of the whole model."""
    if known is None or known.means is None:
        return None
    schema, means = seen.schema, known.means
    at, disease = schema.slices(), schema.slices()[disease_of(schema)]
    base = seen.first[0]

    def decide(rows: Float[Tensor, "M K"]) -> Float[Tensor, "M d"]:
        many = Seen(seen.model, seen.feature.repeat(len(rows), 1))

        def nodes(features: Tensor) -> Tensor:
            features = features.clone()
            for name, mean in means.items():
                changed = (rows[:, at[name]] != base[at[name]]).any(dim=1)
                told = rows[changed][:, at[name]].to(features) @ mean.to(features)
                features[changed, schema.position(name)] = told
            return features

        final = many.again(first=lambda _: seen.net(rows), nodes=nodes).final
        return final[:, disease]

    start = {grade.name: grade.called for grade in grades}
    changeable = [grade.name for grade in grades if grade.name not in MEASURED]
    most = min(MOST_CHANGED, len(changeable))
    found = counterfactual(schema, base, start, decide, changeable, most) if changeable else None
    name = words.called(disease_of(schema), schema[disease_of(schema)].states[state])
    turned = None if found is None else share(torch.tensor([found.belief]))[0]
    said = words.turn(found, turned, {g.name: g for g in grades}, name, most)
    return content.Turn(
        {} if found is None else found.grades, {} if found is None else found.before, turned, said
    )


def _questions(seen: Seen, known: Taught | None) -> tuple[content.Question, ...]:
    if known is None or known.reliability is None:
        return ()
    names = [name for name in known.reliability.tables if name in attributes_of(seen.schema)]
    names = [name for name in names if name not in MEASURED]
    if not names:
        return ()
    at = seen.schema.slices()[disease_of(seen.schema)]
    nats = ask_next(seen.net, seen.first, known.reliability, names, seen.diagnosis.final[:, at])[0].tolist()
    found = [content.Question(name, value / log(2)) for name, value in zip(names, nats, strict=True)]
    return tuple(sorted(found, key=lambda question: -question.bits))


def _consistency(seen: Seen, known: Taught | None) -> content.Consistency | None:
    if known is None or known.usual is None:
        return None
    found = consistency(known.usual, seen.first)
    odd = [
        content.Odd(name, float(found.disagreement[0, place]), float(found.odd[0, place]))
        for place, name in enumerate(found.names)
    ]
    odd.sort(key=lambda attribute: -attribute.odd)
    surprise, cases = float(found.surprise[0]), len(known.usual.log_evidence)
    strange = [attribute for attribute in odd if attribute.odd > ODD]
    return content.Consistency(surprise, cases, tuple(odd), words.consistency(surprise, cases, strange))


def _outside(heat: Shaped[np.ndarray, "*space"], image: Shaped[np.ndarray, "*space"]) -> float:
    """Find the share of a map over voxels of a cube that are padding, which is air to the last digit."""
    if heat.ndim != 3 or not heat.sum() > 0:
        return 0.0
    return float(heat[image == AIR_HU].sum() / heat.sum())


def _truth(case: Case | None, name: str, states: tuple[str, ...]) -> str | None:
    label = None if case is None else case.labels.get(name)
    return None if label is None else states[int(np.argmax(label))]


def _remarks(case: Case | None) -> list[str]:
    if case is None:
        return []
    found = [flag for flag in case.flags if flag != "phantom"]
    if case.padding_share >= 0.005:
        found.append(f"{case.padding_share:.0%} of the cube was not scanned and is black")
    return found
