"""From a run and an image to the files of its page: CASE.html, which needs nothing else, and CASE.json."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from radreason.diagnoser import Diagnoser
from radreason.explain.taught import Taught
from radreason.given import GivenImage
from radreason.input_files import write_text
from radreason.nn.packed import attributes_of, disease_of
from radreason.report.case_page import pictures, words
from radreason.report.case_page.answers import Asked, ask
from radreason.report.case_page.template import Pictures, page
from radreason.report.tested import Tested
from radreason.run_folder import write_json


def make(
    run: Diagnoser, image: GivenImage, known: Taught | None, tested: Tested, out: Path
) -> tuple[Path, Path]:
    """Ask, draw and write; give both files."""
    asked = ask(run, image, known, tested)
    html, document = out / f"{file_name(image.name)}.html", out / f"{file_name(image.name)}.json"
    write_json(document, asked.content.to_dict())
    write_text(html, page(asked.content, draw(run, image, asked), len(run.patch)))
    return html, document


def draw(run: Diagnoser, image: GivenImage, asked: Asked) -> Pictures:
    """Draw all pictures of a page."""
    content, schema = asked.content, run.schema
    patch = pictures.middle(image.patch, run.patch)
    mask = None if image.mask is None else pictures.middle(image.mask, run.patch)
    answer = content.answer
    called = answer.states[int(np.argmax(answer.belief))]
    grades = {grade.name: grade for grade in content.grades}
    names, name = attributes_of(schema), words.called(answer.disease, answer.state)
    titles = [
        f"{_first(n, 12 if len(names) > 7 else 22)} {_seen(grades[n].image, grades[n].states)}" for n in names
    ]
    spacing = image.spacing_mm if len(run.patch) == 3 else None
    return Pictures(
        pictures.image_picture(
            patch, mask, asked.maps[schema.position(disease_of(schema))], content.window, spacing,
            words.called(answer.disease, called),
        ),
        pictures.map_sheet(patch, asked.maps[[schema.position(n) for n in names]], titles, content.window),
        pictures.grades_picture(content.grades),
        pictures.stages_picture(content.stages, answer),
        ""
        if content.reasons is None
        else pictures.reasons_picture(content.reasons, name, len(answer.models) > 1),
        pictures.trust_picture(content.trust, name) if content.trust.tested else "",
    )  # fmt: skip


def file_name(case: str) -> str:
    """Make a name of a case a name of a file.

    >>> file_name("a/b: 7")
    'a_b__7'
    """
    return re.sub(r"[^\w.-]", "_", case).lstrip(".") or "_"


def _seen(belief: tuple[float, ...], states: tuple[str, ...]) -> str:
    return states[int(np.argmax(belief))]


def _first(name: str, length: int) -> str:
    return name.replace("_", " ") if len(name) <= length else f"{name[: length - 1]}…"
