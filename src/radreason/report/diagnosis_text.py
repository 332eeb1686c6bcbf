"""What a run says of one image, in the terminal: the disease at every stage, then every attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason.given.answers import Answer
from radreason.given.image import Refused
from radreason.nn.packed import disease_of
from radreason.report.training_text import STAGES
from radreason.schema import Variable

NO_DEVICE = "Not a medical device: it has not been validated on patients and must not decide about one."


def page(answer: Answer, stages: bool = False) -> RenderableType:
    """One case; with ``stages`` every attribute at every stage, too."""
    schema, image = answer.schema, answer.image
    disease = schema[disease_of(schema)]
    name, share = likeliest(answer.belief(disease.name))
    surely = ""
    if answer.calibrated is not None:
        by_state = dict(zip(disease.states, answer.calibrated.tolist(), strict=True))
        surely = f" (calibrated {_percent(by_state[name])})"
    head = [
        f"{image.name}" + (f"   {image.shown}" if image.shown and image.shown != image.name else ""),
        f"{disease.name}: {_state(disease, name)}, {_percent(share)}{surely}",
        f"asked: {image.trace['asked']}" + _known(disease, image.truth),
    ]
    shown: list[RenderableType] = [Text("\n".join(head)), _disease(answer, disease), _attributes(answer)]
    if stages:
        shown += [_stages(answer, schema[n]) for n in schema.names if n != disease.name]
    shown += [Text(f"Note: {note}") for note in image.trace["notes"]]
    return Group(*shown)


def refusals(refused: Sequence[Refused], most: int = 20) -> str:
    """List what could not be asked, for whoever gave it."""
    lines = [f"{one.shown or one.name}: {' '.join(one.reason.split())}" for one in refused[:most]]
    more = [f"... and {len(refused) - most:,} more"] if len(refused) > most else []
    return "\n".join([f"{len(refused):,} could not be asked:", *(f"  {said}" for said in lines), *more])


def likeliest(belief: Mapping[str, float]) -> tuple[str, float]:
    """Give the likeliest state and its share; of equals the first."""
    name = max(belief, key=belief.__getitem__)
    return name, belief[name]


def _disease(answer: Answer, disease: Variable) -> Table:
    return _beliefs(answer, disease, f"{disease.name}, stage by stage")


def _stages(answer: Answer, variable: Variable) -> Table:
    return _beliefs(answer, variable, variable.name)


def _beliefs(answer: Answer, variable: Variable, title: str) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="")
    table.add_column("stage")
    for state in variable.states:
        table.add_column(state, justify="right")
    for stage in answer.stages:
        row = answer.belief(variable.name, stage).values()
        table.add_row(STAGES.get(stage, stage), *map(_percent, row))
    return table


def _attributes(answer: Answer) -> Table:
    schema = answer.schema
    truth = answer.image.truth
    table = Table(box=SIMPLE_HEAD)
    columns = ("attribute", "likeliest grade", "share", "all grades", *(["label"] if truth else []))
    for heading in columns:
        table.add_column(heading, justify="right" if heading == "share" else "left")
    for variable in schema:
        if variable.name == schema.disease:
            continue
        belief = answer.belief(variable.name)
        name, share = likeliest(belief)
        grades = "  ".join(f"{state} {_percent(p)}" for state, p in belief.items() if p >= 0.005)
        label = [_label(variable, truth.get(variable.name))] if truth else []
        table.add_row(variable.name, _state(variable, name), _percent(share), grades, *label)
    return table


def _known(disease: Variable, truth: Mapping[str, tuple[float, ...] | None]) -> str:
    return f"; its label: {_label(disease, truth.get(disease.name))}" if truth else ""


def _label(variable: Variable, label: Sequence[float] | None) -> str:
    if label is None:
        return "-"
    likely = [s for s, share in zip(variable.states, label, strict=True) if share == max(label)]
    return " or ".join(likely)


def _state(variable: Variable, state: str) -> str:
    """Name a state with the word behind it, where the state is only a number."""
    meaning = dict(zip(variable.states, variable.meanings or (), strict=False)).get(state)
    return state if meaning is None or meaning == state else f"{state} ({meaning})"


def _percent(share: float) -> str:
    """Write a share; close to none or all with a decimal, for hardly anything is 100 % sure.

    >>> [_percent(share) for share in (0.426, 0.004, 0.9981, 0.99999, 0.0, 1.0)]
    ['43 %', '0.4 %', '99.8 %', '> 99.9 %', '0 %', '100 %']
    """
    if share in (0.0, 1.0) or 0.01 <= share <= 0.99:
        return f"{100 * share:.0f} %"
    if share < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if share > 0.999 else f"{100 * share:.1f} %"
