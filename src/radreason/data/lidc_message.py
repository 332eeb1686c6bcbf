"""One reading file of LIDC-IDRI: what up to four readers marked, outlined and graded in one CT series.

Five sites wrote these files over years with several programs, so tags may be missing, capitals and
namespaces differ, and grades leave their scales: what cannot be used is left out and remarked on.
What is no XML at all, or XML that could do harm, is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from radreason.data.reading import NoduleReading, Outline
from radreason.errors import InputError
from radreason.input_files import read_bytes
from radreason.schema import LIDC

MAX_BYTES = 16 << 20
"""The largest file that is read; those of LIDC-IDRI are below 3 MiB."""

_WHAT = "a reading file of LIDC-IDRI (XML)"


@dataclass(frozen=True, eq=False)
class Session:
    """What one reader said: graded nodules, and marks of all that is smaller or no nodule.

    A mark is what it marks, its name, and its position as written.
    """

    nodules: tuple[NoduleReading, ...]
    marks: tuple[tuple[str, ...], ...]

    @property
    def content(self) -> Hashable:
        """All that was said, to be compared; who said it does not matter."""
        nodules = tuple(
            (n.nodule, *n.grades.values(), *((o.z_mm, o.inside, o.xy.tobytes()) for o in n.outlines))
            for n in self.nodules
        )
        return nodules, self.marks


@dataclass(frozen=True, eq=False)
class Message:
    """All sessions of one file; ``remarks`` counts what was mended or left out, by what it was."""

    series_uid: str
    study_uid: str | None
    served: str
    sessions: tuple[Session, ...]
    odd_grades: tuple[tuple[str, str], ...]
    remarks: Mapping[str, int]


def read_lidc_message(path: Path) -> Message | str:
    """Read one file; of one that is no reading of a CT series, give the name of its root instead."""
    root = _root(path)
    if _name(root) != "lidcreadmessage":
        return root.tag.rpartition("}")[2]
    header = {_name(e): _text(e) for part in root if _name(part) == "responseheader" for e in part}
    return _Reader(header.get("seriesinstanceuid", "")).message(root, header)


def _root(path: Path) -> Element:
    """Parse a file that declares nothing: without a document type there are no entities to expand."""
    text = _decoded(read_bytes(path, MAX_BYTES, _WHAT))
    if "<!DOCTYPE" in text:
        raise InputError(
            found=f"{path}: XML with a document type, which can make a reader swell or fetch other files",
            expected=f"{_WHAT} without <!DOCTYPE>",
        )
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(found=f"{path}: no XML, or not all of it: {error}", expected=_WHAT) from None


def _decoded(content: bytes) -> str:
    """Decode here, so that the file's own claim of an encoding cannot hide anything from this program."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


class _Reader:
    """Reads one message and remembers what was odd about it."""

    def __init__(self, series_uid: str) -> None:
        self._series_uid = series_uid
        self._odd_grades: list[tuple[str, str]] = []
        self._remarks: Counter[str] = Counter()

    def message(self, root: Element, header: Mapping[str, str]) -> Message:
        sessions: list[Session] = []
        for number, element in enumerate(_children(root, "readingsession"), start=1):
            session = self._session(element, str(number))
            said = session.nodules or session.marks  # two readers who see nothing are two readers
            if said and any(session.content == earlier.content for earlier in sessions):
                self._remarks["session repeated in its file: counted once"] += 1
            else:
                sessions.append(session)
        return Message(
            series_uid=self._series_uid,
            study_uid=header.get("studyinstanceuid") or None,
            served=f"{header.get('dateservice', '')} {header.get('timeservice', '')}".strip(),
            sessions=tuple(sessions),
            odd_grades=tuple(self._odd_grades),
            remarks=self._remarks,
        )

    def _session(self, session: Element, reader: str) -> Session:
        nodules: list[NoduleReading] = []
        marks: list[tuple[str, ...]] = []
        for element in session:
            match _name(element):
                case "unblindedreadnodule":
                    grades = {
                        _name(e): _text(e) for part in _children(element, "characteristics") for e in part
                    }
                    if any(grades.get(name.lower()) for name in LIDC.names):
                        nodules.append(self._nodule(element, grades, reader))
                    else:
                        marks.append(self._mark("nodule < 3 mm", element))
                case "nonnodule":
                    marks.append(self._mark("non-nodule", element))
                case "annotationversion" | "servicingradiologistid":
                    pass
                case other:
                    self._remarks[f"<{other[:40]}> in a session: not read"] += 1
        return Session(tuple(nodules), tuple(marks))

    def _nodule(self, element: Element, grades: Mapping[str, str], reader: str) -> NoduleReading:
        drawn = (self._outline(roi) for roi in _children(element, "roi"))
        return NoduleReading(
            scan=self._series_uid,
            reader=reader,
            nodule=_child(element, "noduleid"),
            grades={name: self._grade(name, grades.get(name.lower(), "")) for name in LIDC.names},
            outlines=tuple(outline for outline in drawn if outline),
        )

    def _grade(self, name: str, text: str) -> str | None:
        whole = _GRADE.fullmatch(text)
        if whole and whole[1] in LIDC[name].states:
            return whole[1]
        self._odd_grades.append((name, text))
        return None

    def _outline(self, roi: Element) -> Outline | None:
        z_mm, points = _number(_child(roi, "imagezposition")), list(_points(roi))
        inside = _child(roi, "inclusion").lower()
        if z_mm is None or not points or None in points:
            self._remarks["outline without slice or points, or with some that are no numbers: left out"] += 1
            return None
        if inside not in {"true", "false"}:
            self._remarks["outline that does not say whether its inside belongs: taken so"] += 1
        xy = np.array(points, dtype=np.float64)
        xy.flags.writeable = False
        return Outline(z_mm, xy, inside != "false")

    def _mark(self, kind: str, element: Element) -> tuple[str, ...]:
        """Take what a reader only points at: a click on one slice, or on several that are not graded."""
        clicks = list(_children(element, "roi")) if kind != "non-nodule" else [element]
        if sum(1 for click in clicks for e in click if _name(e) in {"edgemap", "locus"}) > 1:
            kind = "nodule outlined but not graded"
        position = (text for click in clicks for text in click.itertext())
        name = _child(element, "noduleid") or _child(element, "nonnoduleid")
        return kind, name, *(text.strip() for text in position if text.strip())


def _points(roi: Element) -> Iterator[tuple[float, float] | None]:
    for edge in _children(roi, "edgemap"):
        at = {_name(e): _text(e) for e in edge}
        x, y = _number(at.get("xcoord", "")), _number(at.get("ycoord", ""))
        yield None if x is None or y is None else (x, y)


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _children(element: Element, name: str) -> Iterator[Element]:
    return (child for child in element if _name(child) == name)


def _child(element: Element, name: str) -> str:
    """Give the text of the first child of this name, nothing if there is none."""
    for child in element:
        if _name(child) == name:
            return _text(child)
    return ""


def _text(element: Element) -> str:
    return (element.text or "").strip()


def _name(element: Element) -> str:
    return _bare(element.tag)


@lru_cache(maxsize=256)
def _bare(tag: str) -> str:
    return tag.rpartition("}")[2].lower()


_GRADE = re.compile(r"0*([0-9])(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?[0-9]{1,7}(?:\.[0-9]{0,20})?(?:[eE][+-]?[0-3])?")
