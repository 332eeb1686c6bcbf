"""The page of one case, from its content and its pictures: first the image and the answer, the trace last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from radreason.report.case_page import words
from radreason.report.case_page.content import Content, WhatIf
from radreason.report.web_page import document, escape

STYLE = """
body { max-width: 47rem; font-size: 13px; line-height: 1.38; }
h1 { font-size: 1.25rem; margin: 0; } h2 { font-size: 1rem; margin: .7rem 0 .15rem; }
header { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem; }
header p { margin: 0; color: var(--quiet); text-align: right; }
.marks { border: 2px solid #D55E00; padding: .15rem .6rem; margin: .35rem 0 .5rem; font-weight: 600; }
.phantom { background: repeating-linear-gradient(45deg, #fff, #fff 9px, #f8ece4 9px, #f8ece4 18px); }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.1rem; }
.answer { grid-template-columns: 1.2fr 1fr; align-items: start; }
.answer p:first-child { font-size: 1.35rem; font-weight: 700; margin: 0 0 .2rem; line-height: 1.2; }
p, ul { margin: .15rem 0; } ul { padding-left: 1.1rem; }
.steps { columns: 2; column-gap: 1.5rem; }
figure { margin: .25rem 0; } figure img { display: block; margin: 0 auto; }
.image img { width: 86%; } .small svg { width: 72%; } .map-sheet img { width: 100%; }
.notes, figcaption { font-size: .72rem; line-height: 1.3; }
table { font-size: .74rem; width: 100%; }
th, td { padding: .05rem .15rem; text-align: center; white-space: nowrap; }
.whatif td { border: 1px solid #fff; } .whatif small { color: var(--quiet); font-size: .62rem; }
.whatif td.called { outline: 2px solid var(--ink); outline-offset: -2px; font-weight: 700; }
th:first-child { text-align: left; font-weight: 400; white-space: nowrap; }
.trace { font-size: .66rem; line-height: 1.35; overflow-wrap: anywhere; } .trace b { font-weight: 600; }
.second { border-top: 1px solid var(--line); margin-top: .8rem; }
@page { size: A4; margin: 9mm 12mm; }
@media print {
  html { font-size: 11.5pt; } body { font-size: 8.4pt; line-height: 1.25; max-width: none; padding: 0; }
  .second { break-before: page; border: 0; margin: 0; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  figure, .two > div, tr { break-inside: avoid; }
  .map-sheet img { width: auto; max-width: 100%; max-height: 43mm; }
  h2 { margin: .45rem 0 .1rem; }
}
"""

_DIGEST = re.compile("[0-9a-f]{40,}")
"""On the page the beginning of a digest tells one file from another; the JSON has all of it."""

LEAST_OUTSIDE = 0.05

_LEFT_TO_JSON = {
    f"image, {name}"
    for name in ("from", "kind", "fingerprint", "margin", "padding_share", "flags", "centre_mm", "figures")
}

_AXES = {
    3: "Planes through the middle of the cube that the model sees: A front, P back, H head, F feet, R "
    "and L the "
    "patient's right and left.",
    2: "Both lungs as the model sees them, the patient's right one at the left; each is stretched to "
    "half of the "
    "picture, so there is no scale.",
}


@dataclass(frozen=True)
class Pictures:
    """What was drawn: a PNG as a data URI, or an SVG as text; empty where there is nothing to draw."""

    image: str
    maps: str
    grades: str
    stages: str
    reasons: str
    trust: str


def page(content: Content, pictures: Pictures, dims: int) -> str:
    """Write the page."""
    answer = content.answer
    first = [
        _header(content),
        '<div class="two answer"><div>',
        "".join(f"<p>{_unbroken(said)}</p>" for said in answer.sentences),
        f"</div><div>{_svg(pictures.stages, 'What each stage believes', '')}</div></div>",
        _image(
            pictures.image, "The image, and where the answer comes from", _caption(content, dims), "image"
        ),
        "<h2>What it saw</h2>",
        _svg(
            pictures.grades,
            "Belief in every grade",
            "Bars: the belief at the end, the called grade dark. Lines across: the image alone. Dots: a "
            "reader each. Diamond: the label, where no reader said it.",
        ),
    ]
    second = [
        "<div class=second>",
        _image(
            pictures.maps,
            "What speaks for each grade",
            "What speaks for the grade that the image alone calls, attribute by attribute: shaded, and "
            "within the "
            "dotted line at least half of the largest value. A map says where the network looked, not why.",
            "map-sheet",
        ),
        *_reasons(content, pictures),
        "<div class=two><div>",
        _what_if(content),
        _turn(content),
        _consistency(content),
        "</div><div>",
        _questions(content),
        _trust(content, pictures),
        "</div></div>",
        "".join(f"<p>{escape(said)}</p>" for said in content.silent),
        f"<h2>Where this comes from</h2>{_trace(content.trace)}",
        "</div>",
    ]
    return document(f"{content.case}: {answer.disease}", "\n".join([*first, *second]), STYLE)


def _unbroken(said: str) -> str:
    return escape(said).replace(" %", "&nbsp;%")


def _header(content: Content) -> str:
    marks = ["Not a medical device: for research, must not decide about a patient."]
    if content.learned_from_phantoms:
        marks.insert(0, "The model learned from phantoms.")
    if content.is_phantom:
        marks.insert(0, "PHANTOM: a drawing, no image of a patient.")
    kind = " phantom" if content.is_phantom else ""
    about = ", ".join([*content.shown, *content.remarks])
    return (
        f"<header><h1>{escape(content.case)}</h1><p>{escape(about)}</p></header>"
        f'<p class="marks{kind}">{escape(" ".join(marks))}</p>'
    )


def _caption(content: Content, dims: int) -> str:
    low, high = content.window
    unit = "HU" if dims == 3 else "grey"
    outline, where = (
        (" Blue line: the outline that readers drew.", "lower pictures")
        if dims == 3
        else (" Blue line: the lungs.", "right picture")
    )
    return (
        f"{_AXES[dims]} Window {low:g} to {high:g} {unit}.{outline} In the {where} orange is what speaks for "
        f"{_called(content)}; the dotted line is at half of the largest value.{_outside(content)}"
    )


def _outside(content: Content) -> str:
    """Warn where the network looked at what nobody scanned."""
    if content.outside < LEAST_OUTSIDE:
        return ""
    return (
        f" Beware: {words.percent(content.outside)} of what speaks for {_called(content)} lies where "
        f"nothing was "
        "scanned."
    )


def _called(content: Content) -> str:
    answer = content.answer
    return words.called(
        answer.disease, answer.states[max(range(len(answer.states)), key=answer.belief.__getitem__)]
    )


def _reasons(content: Content, pictures: Pictures) -> Iterable[str]:
    if content.reasons is None:
        return
    yield "<h2>What follows from it</h2>"
    yield _svg(
        pictures.reasons,
        "Contributions and importance",
        "From what the first network believes without an image to the answer; steps add up. Grades are as "
        "the image alone shows them; each adds its average over all orders of telling them (Shapley). "
        "Unsure: less sure of it than without an image. Importance: change of the probability if the "
        "attribute is switched off in the first network and in the graph.",
    )
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in content.reasons.sentences)
    yield f"<p>In that network, one after the other ({escape(_about(content))}):</p>"
    yield f"<ul class=steps>{said}</ul>"


def _about(content: Content) -> str:
    return words.called(content.answer.disease, content.answer.state)


def _what_if(content: Content) -> str:
    if not content.what_if:
        return ""
    rows = []
    for row in content.what_if:
        cells = "".join(_cell(row, place) for place in range(len(row.states)))
        rows.append(f"<tr><th>{escape(row.name)}</th>{cells}</tr>")
    return (
        f"<h2>What if a grade were another</h2><table class=whatif>{''.join(rows)}</table><p "
        f"class=notes>Small: the "
        f"grade. Large: percent {escape(_about(content))} if it were certain and the others as they are; "
        f"framed: as "
        "the model calls it; darker: more.</p>"
    )


def _cell(row: WhatIf, place: int) -> str:
    share = row.share[place]
    shade = round(255 - 75 * share)
    called = " class=called" if row.states[place] == row.called else ""
    return (
        f'<td{called} style="background:rgb({shade},{shade},{min(255, shade + 20)})">'
        f"<small>{escape(row.states[place])}</small> {100 * share:.0f}</td>"
    )


def _turn(content: Content) -> str:
    if content.turn is None:
        return ""
    return f"<h2>What would turn it</h2><p>{escape(content.turn.sentence)}</p>"


def _questions(content: Content) -> str:
    if not content.questions:
        return ""
    said = words.questions(content.questions, content.answer.disease)
    return f"<h2>What to look at next</h2><p>{escape(said)}</p>"


def _consistency(content: Content) -> str:
    if content.consistency is None:
        return ""
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in content.consistency.sentences)
    return f"<h2>How unusual it is</h2>{said}"


def _trust(content: Content, pictures: Pictures) -> str:
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in content.trust.sentences)
    drawn = _svg(
        pictures.trust,
        "How often such answers came true",
        "Test cases by what was said of them, their numbers above, with 95 % intervals; shaded: this case.",
        "small",
    )
    return f"<h2>How far to trust it</h2>{drawn}{said}"


def _trace(trace: Mapping[str, Any]) -> str:
    said = (f"<b>{escape(name)}</b> {escape(text)}" for name, text in _flat(trace))
    return f"<p class=trace>{' · '.join(said)}</p>"


def _flat(trace: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, str]]:
    """Give what of a trace fits a page: each entry by its name and those above; the JSON has the rest."""
    for name, value in trace.items():
        path = f"{before}{name}"
        if path in _LEFT_TO_JSON or value in (None, "", 0.0, False):
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}, ")
        elif isinstance(value, list | tuple):
            if value:
                yield path, "; ".join(_plain(item) for item in value)
        else:
            yield path.removesuffix(", "), _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and _DIGEST.search(value):
        return _DIGEST.sub(lambda found: found[0][:16], value)
    return " x ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _image(uri: str, title: str, caption: str, kind: str = "") -> str:
    if not uri:
        return ""
    where = f' class="{kind}"' if kind else ""
    below = f"<figcaption>{escape(caption)}</figcaption>"
    return f'<figure{where}><img src="{uri}" alt="{escape(title)}">{below}</figure>'


def _svg(text: str, title: str, caption: str, kind: str = "") -> str:
    if not text:
        return ""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure class="{kind}" role=img aria-label="{escape(title)}">{text}{below}</figure>'
