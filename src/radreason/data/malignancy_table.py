"""How many nodules have which malignancy, under every rule of consensus, beside what the paper counted.

The paper's table says "median". Its malignant columns, 474 and 170, are met to the nodule by the mean
rounded away from the middle, and by no other rule; so the rule is shown to matter before it is chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import numpy as np

from radreason.data.consensus import BINARY, Consensus, is_uncertain
from radreason.data.grouping import Nodule, group
from radreason.data.reading import Readings
from radreason.data.scan_facts import has_geometry
from radreason.data.vote import Rule
from radreason.errors import InputError
from radreason.schema import Schema

DISEASE = "malignancy"
LIMITS = Consensus(size=False, thickest_slice_mm=3.0)
"""Which nodules count if nobody says otherwise; the rule is replaced by each in turn."""


@dataclass(frozen=True)
class Row:
    """Nodules per grade of malignancy, and in the three groups; not whole where nodules are shared out."""

    rule: str
    grades: tuple[float, ...]
    benign: int
    uncertain: int
    malignant: int


PAPER = Row("the paper", (358, 943, 612, 474, 170), 1301, 612, 644)


@dataclass(frozen=True)
class MalignancyTable:
    """One row per rule, what was counted on the way, and what a person should know."""

    rows: tuple[Row, ...]
    limits: Consensus
    totals: Mapping[str, int]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "paper": asdict(PAPER),
            "rules": [asdict(row) for row in self.rows],
            "thickest_slice_mm": self.limits.thickest_slice_mm,
            "fewest_readers": self.limits.fewest_readers,
            "totals": dict(self.totals),
            "notes": list(self.notes),
        }


def malignancy_table(readings: Readings, limits: Consensus = LIMITS) -> MalignancyTable:
    """Group the readings, and count what each rule makes of the nodules.

    Series whose spacings nobody knows cannot be grouped; they are left out, and a note counts them.
    """
    unplaced = {uid: scan for uid, scan in readings.scans.items() if not has_geometry(scan)}
    kept = tuple(reading for reading in readings.nodules if reading.scan not in unplaced)
    if not kept:
        raise InputError(
            found="no reading of a series whose pixel spacing and slice thickness are known",
            expected="readings of LIDC-IDRI",
        )
    grouping = group(replace(readings, nodules=kept))
    rows = tuple(
        _row(replace(limits, rule=rule), grouping.nodules, readings.schema) for rule in get_args(Rule)
    )
    n_crowded = sum(nodule.crowded for nodule in grouping.nodules)
    totals = {
        **readings.counts,
        "series with readings": len({reading.scan for reading in kept}),
        "nodules": len(grouping.nodules),
        "nodules in the table": round(sum(rows[0].grades)),
        "series grouped with a smaller tolerance": len(grouping.tightened),
        "nodules with more readings than readers": n_crowded,
    }
    notes = list(readings.notes)
    if unplaced:
        n_lost = len(readings.nodules) - len(kept)
        notes.append(
            f"left out: {len(unplaced):,} series of unknown pixel spacing or slice thickness,"
            f" with {n_lost:,} readings: {', '.join(sorted(unplaced)[:3])}{' ...' * (len(unplaced) > 3)}"
        )
    return MalignancyTable(rows, limits, totals, tuple(notes))


def _row(settings: Consensus, nodules: Sequence[Nodule], schema: Schema) -> Row:
    """Count grades, and then groups: the middle grade is what makes a case uncertain."""
    graded = schema.subset([DISEASE])
    binary = replace(settings, disease="binary")
    shares = np.zeros(graded[DISEASE].size)
    groups: Counter[str] = Counter()
    for nodule in nodules:
        if settings.keeps_out(nodule):
            continue
        label = settings.labels(nodule, graded)[DISEASE]
        side = binary.labels(nodule, graded)[DISEASE]
        if label is not None and side is not None:
            shares += label
            groups["uncertain" if is_uncertain(side) else BINARY[int(np.argmax(side))]] += 1
    return Row(
        settings.rule, tuple(shares.tolist()), groups["benign"], groups["uncertain"], groups["malignant"]
    )
