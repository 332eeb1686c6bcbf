"""A comparison: methods that may stand side by side, and every table that is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from radreason.compare import inside_tables, paper_layout
from radreason.compare.agree import agreeing
from radreason.compare.method import Method
from radreason.compare.pooled_tables import Pooled, calibration, differences, pooled
from radreason.compare.published import look_up
from radreason.compare.table import Table
from radreason.errors import InputError, unknown

Protocol = Literal["binary", "off-by-one"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The methods, cut to the cases that count, the pooled figures, the tables, what a reader must know."""

    methods: tuple[Method, ...]
    of: Pooled
    tables: tuple[Table, ...]
    notes: tuple[str, ...]

    def __getitem__(self, key: str) -> Table:
        """Find a table by its key."""
        found = {table.key: table for table in self.tables}
        if key not in found:
            raise unknown("table", key, found)
        return found[key]


def compare(
    methods: Sequence[Method],
    baselines: Sequence[str] = (),
    protocol: Protocol | None = None,
    common: bool = False,
    with_stages: bool = True,
    resamples: int = 2000,
) -> Comparison:
    """Compare methods; without a baseline each is compared with the first.

    ``protocol`` is ``binary`` for a disease of two states and ``off-by-one`` for grades, unless it is given.
    """
    agreed, notes = agreeing(methods, common)
    agreed = sorted(agreed, key=lambda m: -m.fraction)
    _check_protocol(agreed[0], protocol)
    baselines = tuple(baselines) or (agreed[0].name,)
    names = list(dict.fromkeys(m.name for m in agreed))
    for baseline in baselines:
        if baseline not in names:
            raise unknown("baseline", baseline, names)
    for method in agreed:
        for row in method.paper:
            look_up(row)
    of = Pooled(agreed, resamples)
    is_binary = agreed[0].disease.size == 2
    tables = (
        [paper_layout.at_half(agreed), paper_layout.at_chosen(agreed)]
        if is_binary
        else [paper_layout.within_one(agreed)]
    )
    tables += [pooled(of), *differences(of, baselines), calibration(of)]
    if with_stages:
        tables += inside_tables.stages(agreed)
    tables += [*inside_tables.grades(agreed), *inside_tables.networks(agreed), inside_tables.compute(agreed)]
    differ = inside_tables.settings(agreed)
    tables += [differ] if differ else []
    said = (*_about_data(agreed), *notes)
    shown = {"at_half", "at_chosen", "within_one", "pooled"}
    tables = [replace(t, notes=(*t.notes, *said)) if t.key in shown else t for t in tables]
    return Comparison(tuple(agreed), of, tuple(tables), said)


def _check_protocol(method: Method, protocol: Protocol | None) -> None:
    disease = method.disease
    if protocol == "binary" and disease.size != 2:
        raise InputError(
            found=f"{disease.name} of {disease.size} states",
            expected="two of them for the protocol 'binary'",
            hint="--protocol off-by-one",
        )
    if protocol == "off-by-one" and not (disease.ordered and disease.size > 2):
        raise InputError(
            found=f"{disease.name} with the states {', '.join(disease.states)}",
            expected="three or more ordered grades for the protocol 'off-by-one'",
            hint="a dataset prepared with the grades of the disease kept",
        )


def _about_data(methods: Sequence[Method]) -> tuple[str, ...]:
    """Say what data, labels and exclusions the figures are of, and that the paper's are of others."""
    first = methods[0]
    data = first.data
    rule = (data.get("settings") or {}).get("consensus") or {}
    labels = f" labels by the rule {rule['rule']!r} of consensus," if "rule" in rule else ""
    kind = {"ct": "CT", "phantom-ct": "CT phantoms, which are drawings and no patients"}
    said = [
        f"Ours: {kind.get(str(data.get('kind')), data.get('kind', 'data'))}, {len(first.cases)} cases of "
        f"{len(set(first.patients)) if first.patients else 'an unknown number of'} patients,{labels} "
        f"{data.get('excluded', 'an unknown number of')} cases left out when the data were prepared."
    ]
    if any(m.paper for m in methods) or first.disease.size > 2:
        said.append(
            "Rows marked as published are the paper's printed numbers, on its own data (LIDC-IDRI by the "
            "median rule, 1301 benign and 644 malignant nodules; tuberculosis radiographs of its own), "
            "10 folds x 5 repeats, on GPUs: for orientation, not for comparison."
        )
    return tuple(said)
