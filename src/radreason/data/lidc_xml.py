"""The readings of LIDC-IDRI as its download has them: a folder of XML files, some of them twice.

The same folder holds readings of chest X-rays, which are counted and passed over. A series that
comes in several files was submitted several times: said twice it counts once, and what was said
last holds.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from radreason.data.lidc_message import Message, read_lidc_message
from radreason.data.reading import Readings, Scan, off_scale
from radreason.errors import InputError
from radreason.schema import LIDC

_File = tuple[str, Message]
_EXPECTED = "XML files with a <LidcReadMessage> each, in the folder or below"


def read_lidc_xml(path: Path | str) -> Readings:
    """Read all reading files of CT series in a folder and below, or one file.

    The files do not say whose scan it is, nor how thick its slices are: `Scan` holds the identities
    alone. A file that is damaged is an `InputError`; all else that is odd is left out, and noted.
    """
    path = Path(path)
    n_files = n_radiographs = 0
    others: list[str] = []
    series: dict[str, list[_File]] = defaultdict(list)
    for file in _files(path):
        name = file.relative_to(path).as_posix() if file != path else file.name
        message = read_lidc_message(file)
        n_files += 1
        if message == "IdriReadMessage":
            n_radiographs += 1
        elif isinstance(message, str):
            others.append(f"{name} (<{message[:40]}>)")
        elif not message.series_uid:
            others.append(f"{name} (names no series)")
        else:
            series[message.series_uid].append((name, message))
    if not series:
        raise InputError(found=f"{path}: {n_files} XML files, none with readings of a CT", expected=_EXPECTED)

    notes = []
    if others:
        notes.append(f"files passed over, no readings of a CT series ({len(others)}): {_some(others)}")
    held = []
    repeated = []
    for submitted in series.values():
        last, same, differing = _last_word(submitted)
        held.append(last)
        repeated += same
        notes += differing
    if repeated:
        notes.append(f"files that say again what another says ({len(repeated)}): {_some(repeated)}")

    sessions = [session for _, message in held for session in message.sessions]
    nodules = tuple(nodule for session in sessions for nodule in session.nodules)
    kinds = Counter(kind for session in sessions for kind, *_ in session.marks)
    counts = {
        "files": n_files,
        "files of chest X-rays": n_radiographs,
        "files repeating a series": len(repeated),
        "series": len(held),
        "sessions": len(sessions),
        "readings": len(nodules),
        "outlines": sum(len(nodule.outlines) for nodule in nodules),
        "nodules < 3 mm": kinds["nodule < 3 mm"],
        "non-nodules": kinds["non-nodule"],
        "nodules outlined but not graded": kinds["nodule outlined but not graded"],
    }
    scans = {message.series_uid: Scan(message.series_uid, study_uid=message.study_uid) for _, message in held}
    return Readings(LIDC, scans, nodules, counts, (*notes, *_oddities(held, len(nodules))))


def _files(path: Path) -> Iterator[Path]:
    """Walk in the order of names, so that the same folder gives the same readings everywhere."""
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise InputError(found=f"{path}: no such file or folder", expected=_EXPECTED)
    for folder, subfolders, names in os.walk(path):
        subfolders.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.lower().endswith(".xml"))


def _last_word(files: Sequence[_File]) -> tuple[_File, list[str], list[str]]:
    """Choose among the files of one series: most sessions, then served last, then first by name.

    Also give those that say nothing else than the chosen one, and a note on each that does.
    """
    chosen = max(files, key=lambda file: (len(file[1].sessions), file[1].served))
    name, message = chosen
    said = Counter(session.content for session in message.sessions)
    same, notes = [], []
    for other_name, other in files:
        lost = Counter(session.content for session in other.sessions) - said
        if not lost:
            same += [other_name] * (other_name != name)
            continue
        differ = f"{lost.total()} of {len(other.sessions)} sessions differ"
        if len(other.sessions) < len(message.sessions):
            notes.append(f"conflict: {name} counts, {other_name} has fewer sessions of the series ({differ})")
        elif other.served < message.served:
            notes.append(f"corrected: {name} replaces {other_name}, served earlier ({differ})")
        else:
            notes.append(f"conflict: {name} counts, {other_name} was served at the same time ({differ})")
    return chosen, same, notes


def _oddities(held: Sequence[_File], n_readings: int) -> Iterator[str]:
    """Sum up what was odd in the files that count: per variable, and per kind of remark."""
    grades: dict[str, list[str]] = defaultdict(list)
    remarks: dict[str, list[str]] = defaultdict(list)
    for name, message in held:
        for variable, text in message.odd_grades:
            grades[variable].append(text)
        for remark, times in message.remarks.items():
            remarks[remark] += [name] * times
    for variable in LIDC.names:
        if odd := grades.get(variable):
            yield off_scale(variable, odd, n_readings)
    for remark, names in remarks.items():
        yield f"{len(names):,} x {remark}: {_some(list(dict.fromkeys(names)))}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
