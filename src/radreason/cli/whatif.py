"""``radreason whatif``: questions to a run about one image, and what would change its diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from radreason.cli import assignments
from radreason.cli.diagnose import Numbers, place_of
from radreason.cli.terminal import ascii_only, console, print_json, progress, waiting
from radreason.errors import InputError


def whatif(
    run: Path,
    image: str,
    /,
    *,
    confirm: list[str] | None = None,
    sure: float = 1.0,
    set: list[str] | None = None,
    do: bool = False,
    where: Literal["both", "bn1", "graph"] = "both",
    counterfactual: bool = False,
    change: list[str] | None = None,
    most: int = 3,
    importance: bool = False,
    why: bool = False,
    consistency: bool = False,
    ask_next: bool = False,
    coverage: float = 0.9,
    data: Path | None = None,
    at: Numbers = None,
    at_ras: Numbers = None,
    voxel: Numbers = None,
    mask: Path | None = None,
    mask_part: str | None = None,
    series_uid: str | None = None,
    weights: Path | None = None,
    name: str | None = None,
    allow_seen: bool = False,
    json: bool = False,
) -> None:
    """Ask RUN about one IMAGE: what its diagnosis rests on, and what would change it.

    Without any question all of them are answered that need no grade. IMAGE is whatever `diagnose` takes,
    as DATASET:CASE. A grade that is confirmed is evidence and may be wrong; one that is set is certain, and
    is nobody's word. docs/whatif.md tells more.

    Parameters
    ----------
    run
        Folder that `train` or `crossval` wrote. Of a cross-validation the models are averaged that do not
        know the patient.
    image
        What to ask about.
    confirm
        NAME=GRADE, what a reader says of an attribute: evidence of learned reliability. May be given again.
    sure
        How sure that reader is, from 0 (a guess) to 1 (as readers usually are).
    set
        NAME=GRADE, or NAME=GRADE:WEIGHT,GRADE:WEIGHT: what if the attribute were that, for certain. May be
        given again.
    do
        Set it from outside: what causes the attribute hears nothing of it.
    where
        Where it is set: the first Bayesian network, the input of the graph, or both.
    counterfactual
        The smallest change of grades that turns the diagnosis.
    change
        An attribute that may change for that; may be given again. All that readers grade if not given.
    most
        The most attributes that may change for that.
    importance
        What every attribute matters, as in the paper and in log-odds that add up.
    why
        What spoke for and against the disease, with the strongest paths.
    consistency
        How surprising the image is, and where image and network disagree.
    ask_next
        Which attribute to ask a reader next, after those that are confirmed.
    coverage
        Share of cases in which the sets of states shall hold the truth.
    data
        The dataset that the run is of: for runs from before background.safetensors was written, which is
        then done once.
    at
        Where the lesion is in a scan: x,y,z in mm, LPS as in DICOM and ITK.
    at_ras
        The same in RAS, as in NIfTI tools.
    voxel
        The same as column,row,slice of the file, from 0.
    mask
        Instead of a point a mask, whose centre counts: an image, DICOM SEG or RTSTRUCT.
    mask_part
        Which label, segment or structure of the mask.
    series_uid
        Which series of a folder of DICOM.
    weights
        Network that finds lungs, if `prepare cxr` was given one.
    name
        One model of a cross-validation, as repeat-0/fold-3.
    allow_seen
        Do not refuse patients whom every model has seen; the answer says so.
    json
        Print all answers as JSON.
    """
    _check(confirm, sure, set, do, where, counterfactual, change, most, coverage)
    place = place_of(at, at_ras, voxel, mask, mask_part)
    with waiting("loading the run", silent=json):
        from radreason import questions
        from radreason.data.dataset import Dataset
        from radreason.diagnoser import load
        from radreason.given import given_images
        from radreason.given.answers import answers
        from radreason.report import diagnosis_text, whatif_text

        model = load(run, name)
        given = list(
            given_images(model, [image], place, series_uid=series_uid, weights=weights, allow_seen=allow_seen)
        )
        if len(given) != 1:
            raise InputError(
                found=f"{image}: {len(given):,} images",
                expected="one",
                hint=f"{image}:{given[0].name}" if given else "radreason diagnose, for many",
            )
        (diagnosis,) = answers(model, given)
    grades = _grades(assignments.read_assignments(model.schema, confirm or [], "--confirm"), model.schema)
    states = assignments.read_assignments(model.schema, set or [], "--set")
    if data is not None:
        with progress(silent=json) as bars:
            tasks: dict[str, Any] = {}

            def told(of_model: str, done: int, total: int) -> None:
                if of_model not in tasks:
                    tasks[of_model] = bars.add_task(f"training cases {of_model}".strip(), total=total)
                bars.update(tasks[of_model], completed=done)

            questions.write_background(model, given[0].models, Dataset.open(data), told)
    before = questions.Before.of(model, given[0])
    everything = not (confirm or set or counterfactual or importance or why or consistency or ask_next)
    asked: dict[str, tuple[bool, Callable[[], dict[str, Any]]]] = {
        "sets": (True, lambda: questions.confidence_sets(before, run, coverage)),
        "confirm": (bool(grades), lambda: questions.confirmed(before, grades, sure)),
        "what_if": (bool(states), lambda: questions.supposed(before, states, do, where)),
        "counterfactual": (counterfactual, lambda: questions.turning(before, change, most)),
        "importance": (importance, lambda: questions.what_matters(before)),
        "why": (why, lambda: questions.reasons(before)),
        "consistency": (consistency, lambda: questions.hanging_together(before)),
        "ask_next": (ask_next, lambda: questions.to_ask_next(before, grades, sure)),
    }
    found: dict[str, Any] = {}
    left: dict[str, list[str]] = {}
    with waiting("asking", silent=json):
        for question, (is_asked, ask) in asked.items():
            optional = question == "sets" or (everything and question not in ("confirm", "what_if"))
            if not is_asked and not optional:
                continue
            try:
                found[question] = ask()
            except InputError as error:
                if is_asked and question != "sets":
                    raise
                why_not = error.found + (f"; try {error.hint}" if error.hint else "")
                left.setdefault(why_not, []).append(question.replace("_", " "))
    notes = [f"not answered: {', '.join(names)} ({why_not})" for why_not, names in left.items()]
    if json:
        print_json(diagnosis.to_dict() | {"answers": found, "not_answered": notes})
        return
    say = console()
    say.print(diagnosis_text.page(diagnosis), soft_wrap=True)
    say.print(whatif_text.blocks(model.schema, found, ascii_only()), soft_wrap=True)
    for note in notes:
        say.print(f"Note: {note}", soft_wrap=True)
    say.print(diagnosis_text.NO_DEVICE)


def _check(
    confirm: list[str] | None,
    sure: float,
    set: list[str] | None,
    do: bool,
    where: str,
    counterfactual: bool,
    change: list[str] | None,
    most: int,
    coverage: float,
) -> None:
    """Refuse options that mean nothing without others, before anything is loaded."""
    if not 0 <= sure <= 1:
        raise InputError(found=f"--sure {sure:g}", expected="a number from 0 to 1")
    if not 0 < coverage < 1:
        raise InputError(found=f"--coverage {coverage:g}", expected="a number between 0 and 1")
    if most < 1:
        raise InputError(found=f"--most {most}", expected="1 or more")
    for option, given, needs, there in (
        ("--sure", sure != 1, "--confirm", bool(confirm)),
        ("--do", do, "--set", bool(set)),
        ("--where", where != "both", "--set", bool(set)),
        ("--change", bool(change), "--counterfactual", counterfactual),
        ("--most", most != 3, "--counterfactual", counterfactual),
    ):
        if given and not there:
            raise InputError(found=f"{option} without {needs}", expected="both")


def _grades(read: dict[str, assignments.States], schema: Any) -> dict[str, str]:
    """Take one grade each: a reader who hesitates is less sure."""
    for name, states in read.items():
        if len(states) != 1:
            raise InputError(
                found=f"--confirm {name} with {len(states)} grades",
                expected="the one that the reader gives",
                hint="--sure 0.7, for a reader who hesitates; --set takes weights",
            )
    return {name: next(iter(states)) for name, states in read.items()}
