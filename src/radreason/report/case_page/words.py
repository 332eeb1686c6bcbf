"""The sentences of a page: plain words for what the numbers say, and no more than they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from radreason.data.case import Case
from radreason.explain.counterfactual import Counterfactual
from radreason.explain.why import Why
from radreason.report.case_page.content import Grade, Odd, Question, Reason, Stage

Share = Callable[[Tensor], list[float]]

STAGES = {
    "evidence": "the image alone",
    "bn1": "first network, from the grades",
    "gcn_in": "graph, before messages",
    "gcn_out": "graph",
    "fusion": "both together",
    "bn2": "second network, the answer",
}

_LIKELY = (
    (0.05, "very unlikely"),
    (0.2, "unlikely"),
    (0.4, "rather unlikely"),
    (0.6, "undecided"),
    (0.8, "rather likely"),
    (0.95, "likely"),
    (1.01, "very likely"),
)
MOST_TOLD = 4
LEAST_BITS = 0.01
LEAST = 0.05
"""Log-odds of a contribution that is still told in a sentence of its own."""


def likely(share: float) -> str:
    """Say a probability in words.

    >>> likely(0.5), likely(0.97)
    ('undecided', 'very likely')
    """
    return next(word for bound, word in _LIKELY if share < bound)


def called(disease: str, state: str) -> str:
    """Name a state of the disease as people do.

    >>> called("malignancy", "benign"), called("tuberculosis", "yes"), called("malignancy", "4")
    ('benign', 'tuberculosis', 'malignancy 4')
    """
    if state.casefold() in ("yes", "present", "1"):
        return disease if not state.isdigit() else f"{disease} {state}"
    if state.casefold() in ("no", "absent"):
        return f"no {disease}"
    return f"{disease} {state}" if not state[:1].isalpha() else state


def percent(share: float) -> str:
    """Write a probability so that it is neither certain nor impossible unless it is.

    >>> percent(0.9999), percent(0.0001), percent(0.42)
    ('> 99 %', '< 1 %', '42 %')
    """
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def answer(
    disease: str,
    states: Sequence[str],
    state: int,
    belief: Sequence[float],
    stages: Sequence[Stage],
    models: Mapping[str, Sequence[float]],
    threshold: float | None,
    truth: str | None,
    readings: Sequence[object],
) -> tuple[str, ...]:
    """Say the answer, whether the stages agree, what several models say, and the readers if known."""
    share, names = belief[state], [called(disease, s) for s in states]
    likeliest = max(range(len(states)), key=belief.__getitem__)
    name = names[state]
    said = [f"{name[:1].upper()}{name[1:]}: {likely(share)} ({percent(share)})"]
    if len(models) > 1:
        shares = [b[state] for b in models.values()]
        said.append(
            f"Mean of {len(models)} models: from {percent(min(shares))} to {percent(max(shares))}. What "
            f"follows is "
            f"about the first, {next(iter(models))}."
        )
    votes = [max(range(len(states)), key=stage.belief.__getitem__) for stage in stages]
    if len(stages) > 1 and len(set(votes)) == 1:
        said.append(f"All {len(stages)} stages of the model call it {names[votes[0]]}.")
    elif len(stages) > 1:
        others = [s.words for s, vote in zip(stages, votes, strict=True) if vote != likeliest]
        said.append(f"The stages of the model disagree. Otherwise than the answer: {'; '.join(others)}.")
    if threshold is not None and (share >= threshold) != (share >= 0.5):
        side = "above" if share >= threshold else "below"
        said.append(
            f"It is {side} the threshold of {percent(threshold)} that balances sensitivity and specificity "
            f"on validation cases: there it would be called {names[1] if side == 'above' else names[0]}."
        )
    if truth is not None:
        right = "agrees" if truth == states[likeliest] else "DISAGREES"
        whose = "The readers' consensus" if readings else "Its label in the dataset"
        said.append(f"{whose}: {names[list(states).index(truth)]}. The answer {right}.")
    return tuple(said)


def shown(case: Case | None, ndim: int) -> tuple[str, ...]:
    """Say what the picture shows beside the image."""
    found = []
    if case is not None and case.diameter_mm:
        low, high = case.extra.get("diameter_min_mm"), case.extra.get("diameter_max_mm")
        apart = (
            f" (readers: {low:.1f} to {high:.1f})"
            if isinstance(low, float) and isinstance(high, float)
            else ""
        )
        found.append(f"diameter {case.diameter_mm:.1f} mm{apart}")
    if case is not None and case.readings:
        found.append(f"{len(case.readings)} reader{'s' * (len(case.readings) != 1)}")
    return tuple(found)


def reasons(told: Why, shown: Sequence[Reason]) -> tuple[str, ...]:
    """Say what each grade does to the belief of the first network, the strongest first."""
    said: list[str] = []
    for step, reason in zip(told.reasons, shown, strict=True):
        if abs(step.contribution) < LEAST or len(said) == MOST_TOLD:
            continue
        verb = "raises" if step.contribution > 0 else "lowers"
        way = f", by way of {', '.join(step.path[1:-1])}" if len(step.path) > 2 else ""
        doubt = "" if reason.surer else ", less sure than without an image,"
        said.append(
            f"{reason.name} {reason.grade}{doubt} {verb} it from {percent(step.before)} to "
            f"{percent(step.after)}{way}."
        )
    quiet = len(told.reasons) - len(said)
    if quiet:
        said.append(f"The other {quiet} move it less.")
    return tuple(said)


def questions(asked: Sequence[Question], disease: str) -> str:
    """Say which grade a reader should look at next, and what that is expected to tell."""
    best = [q for q in asked[:3] if q.bits >= LEAST_BITS]
    if not best:
        return (
            f"No reader's grade is expected to change much: {asked[0].name} would tell most, "
            f"less than {LEAST_BITS:g} bit about {disease}."
        )
    named = "; then ".join(f"{q.name} ({q.bits:.2f} bit)" for q in best)
    return (
        f"{named}. So much is a reader's grade expected to tell about {disease}, of 1 bit that would "
        f"settle an even "
        "chance; how readers of the training cases agree is counted in."
    )


def turn(
    found: Counterfactual | None, share: float | None, grades: Mapping[str, Grade], word: str, most: int
) -> str:
    """Say the smallest change that turns the answer."""
    if found is None or share is None:
        return f"No change of one grade{' or two' if most > 1 else ''} turns the answer."
    if not found.grades:
        return "The model and its networks disagree already: nothing needs to change."
    changes = [
        f"{n} {grades[n].words(found.before[n])} to {grades[n].words(new)}" for n, new in found.grades.items()
    ]
    steps = f"{found.steps} step{'s' * (found.steps != 1)}"
    return (
        f"The smallest change that turns it: {' and '.join(changes)} ({steps}); then {word} {percent(share)}."
    )


def consistency(surprise: float, cases: int, strange: Sequence[Odd]) -> tuple[str, ...]:
    """Say how unusual the case is, and where image and network disagree."""
    usual = "unusual" if surprise > 0.95 else "somewhat unusual" if surprise > 0.8 else "usual"
    said = [f"Its grades go together as those of a {usual} case: {percent(surprise)} of {cases:,} training "
            "cases go together better."]  # fmt: skip
    if strange:
        names = ", ".join(attribute.name for attribute in strange)
        said.append(
            f"Look again: what the image says of {names} is further from what the other grades lead to "
            f"expect than in {min(attribute.odd for attribute in strange):.0%} of training cases."
        )
    else:
        said.append("No attribute is far from what the others lead to expect.")
    return tuple(said)
