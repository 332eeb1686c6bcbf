"""PadChest's label table: tuberculosis and the paper's seven abnormalities in 160,861 radiographs.

The table (Bustos et al., 2020) lists for each image the findings that its report names, found by
physicians in a quarter of the reports and by a recurrent network in the others. A report does not list
what is absent. Here a finding that a report does not mention counts as absent, as in PadChest itself,
except where the report shows that its silence means nothing; then it is missing. docs/decisions.md says
which words are which.

    N images
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Int16

from radreason.data.state_table import StateTable
from radreason.data.table import Table
from radreason.errors import InputError, unknown
from radreason.schema import TB

PRESENT: Final[Mapping[str, frozenset[str]]] = {
    "fibrotic_streaks": frozenset({"fibrotic band", "pulmonary fibrosis"}),
    "consolidation": frozenset({"consolidation", "alveolar pattern", "air bronchogram"}),
    "diffuse_nodules": frozenset({"miliary opacities", "reticulonodular interstitial pattern"}),
    "cavitation": frozenset({"cavitation"}),
    "atelectasis": frozenset(
        {
            "atelectasis",
            "atelectasis basal",
            "laminar atelectasis",
            "lobar atelectasis",
            "round atelectasis",
            "segmental atelectasis",
            "total atelectasis",
        }
    ),
    "multiple_nodules": frozenset({"multiple nodules"}),
    "pleural_effusion": frozenset(
        {
            "pleural effusion",
            "loculated pleural effusion",
            "loculated fissural effusion",
            "hydropneumothorax",
            "empyema",
        }
    ),
    "tuberculosis": frozenset({"tuberculosis"}),
}
"""Words of a report that say that a finding is there."""

UNCERTAIN: Final[Mapping[str, frozenset[str]]] = {
    "fibrotic_streaks": frozenset({"tuberculosis sequelae", "post radiotherapy changes"}),
    "consolidation": frozenset({"infiltrates", "pneumonia", "increased density"}),
    "diffuse_nodules": frozenset({"lung metastasis"}),
    "cavitation": frozenset({"abscess"}),
    "atelectasis": frozenset({"volume loss"}),
    "multiple_nodules": frozenset({"lung metastasis"}),
    "pleural_effusion": frozenset({"costophrenic angle blunting"}),
}
"""Words that often go with a finding and do not name it: without its own word it is missing, not absent."""

SILENT: Final = frozenset({"exclude", "suboptimal study", "unchanged"})
"""Words of reports that leave findings out which may be there: what they do not name is missing."""

PATIENT, LABELS = "PatientID", "Labels"
SEQUELAE: Final = "tuberculosis sequelae"

_WHAT = "PadChest's table of labels, PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv.gz"
_HINT = "the README says where it is to be had"
_LIST = re.compile(r"\[(?:'[^']*'(?:, *'[^']*')*)?\]")
_WORD = re.compile(r"'([^']*)'")


def read_padchest(path: Path | str, progress: Callable[[int], None] = lambda rows: None) -> StateTable:
    """Read the table: one row per image, each weighing 1 / images of its patient.

    ``progress`` is told how many rows have been read. Images of which nothing is known are left out, and
    a note counts them. No patient's identity leaves this function: groups are numbers from 0 on.
    """
    table = Table.read(path, _WHAT, numbered=True)
    for name in (PATIENT, LABELS):
        if name not in table.header:
            error = unknown(f"column in {path}:", name, table.header)
            raise InputError(error.found, _WHAT, _HINT)
    patient_at, labels_at = table.header.index(PATIENT), table.header.index(LABELS)
    reports = _Reports(Path(path))
    patients: dict[str, int] = {}
    groups, codes = [], []
    n_rows = 0
    for lines, rows in table.chunks():
        for line, row in zip(lines, rows, strict=True):
            found = reports.codes(row[labels_at], line)
            if found is not None:
                groups.append(patients.setdefault(row[patient_at], len(patients)))
                codes.append(found)
        n_rows += len(rows)
        progress(n_rows)
    if not codes:
        raise InputError(found=f"{path}: no image with a finding or without", expected=_WHAT, hint=_HINT)
    states: Int16[np.ndarray, "_ _"] = np.array(codes, np.int16)
    of_patient = np.array(groups, np.int64)
    weights = 1 / np.bincount(of_patient)[of_patient]
    notes = (
        f"{n_rows:,} images; {n_rows - len(codes):,} of which nothing is known left out",
        f"{len(patients):,} patients, who weigh one each",
        *(
            f"{v.name}: present in {int((column == 1).sum()):,}, missing in {int((column < 0).sum()):,}"
            for v, column in zip(TB, states.T, strict=True)
        ),
        f"tuberculosis of which only traces are left ({reports.count(SEQUELAE):,} images) is no tuberculosis",
    )
    columns = {name: states[:, at] for at, name in enumerate(TB.names)}
    return StateTable(TB, columns, len(codes), notes, weights, of_patient)


def findings(words: frozenset[str]) -> tuple[int, ...]:
    """Code what a report's words say of each variable of `TB`: 1 present, 0 absent, -1 missing.

    >>> findings(frozenset({"cavitation", "infiltrates"}))
    (0, -1, 0, 1, 0, 0, 0, 0)
    """
    silent = not words - {""} or bool(words & SILENT)
    return tuple(
        1 if words & PRESENT[name] else -1 if silent or words & UNCERTAIN.get(name, frozenset()) else 0
        for name in TB.names
    )


@dataclass(eq=False)
class _Reports:
    """Cells with labels on their way to codes; reports repeat, and so are read once."""

    path: Path
    _known: dict[str, tuple[int, ...] | None] = field(default_factory=dict)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)
    _times: Counter[str] = field(default_factory=Counter)

    def codes(self, cell: str, line: int) -> tuple[int, ...] | None:
        """Give the codes of a cell; None where nothing is known."""
        if cell not in self._known:
            if _LIST.fullmatch(cell) is None and cell not in {"", "nan"}:
                raise InputError(
                    found=f"{self.path}: line {line}: {LABELS} {cell!r:.60}",
                    expected="a list of findings, such as ['cavitation', 'pleural effusion']",
                    hint=_HINT,
                )
            words = frozenset(word.strip() for word in _WORD.findall(cell))
            found = findings(words)
            self._words[cell] = words
            self._known[cell] = found if any(code >= 0 for code in found) else None
        self._times[cell] += 1
        return self._known[cell]

    def count(self, word: str) -> int:
        """Count the images whose report has a word."""
        return sum(n for cell, n in self._times.items() if word in self._words[cell])
