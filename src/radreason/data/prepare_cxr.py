"""A user's own radiographs: what a table of pictures and findings asks for, as a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from radreason.data.case_table import Row, read_cases
from radreason.data.consensus import Consensus
from radreason.data.matching import UnmatchedError, matched, own_grades
from radreason.data.prepare import Plan
from radreason.data.radiograph import Limits
from radreason.data.reading_table import read_reading_table
from radreason.data.scan_files import RadiographFile, ScanFiles
from radreason.data.table import NUMBER
from radreason.errors import InputError, unknown
from radreason.input_files import write_text
from radreason.schema import Schema, Variable
from radreason.schema import findings as schema_of_findings

KIND = "cxr"

EXAMPLE = """\
case,patient,image,black,white,tuberculosis,cavitation,pleural effusion
film-1,patient-1,films/1.dcm,,,1,1,0
film-2,patient-2,films/2.png,,,0,,0
film-3,patient-2,films/3.png,0,4095,1,,
film-4,patient-3,films/4.jpg,,,0,0,0
film-5,patient-4,films/5.nii.gz,0,1023,1,,1
"""


def plan_cxr(
    cases: Path,
    readings: Path | None = None,
    *,
    schema: Schema | None = None,
    findings: Sequence[str] = (),
    disease: str | None = None,
    keep: Sequence[str] = (),
    consensus: Consensus | None = None,
) -> Plan:
    """Read the tables and match them; no picture is read yet.

    Without readings, what was found stands in the case's own row; ``schema`` says which columns that are,
    or ``findings`` names columns that hold yes and no. An empty cell is a finding that nobody speaks of:
    missing.
    """
    if schema is not None and findings:
        raise InputError(
            found="a schema and a list of findings", expected="one of them", hint="--schema or --findings"
        )
    if findings:
        schema = schema_of_findings(findings, disease)
    own = schema.names if schema and readings is None else ()
    table = read_cases(cases, keep, (*own, "black", "white"), whole=True)
    odd: list[tuple[str, str]] = []
    if readings is not None:
        read = read_reading_table(readings, schema)
    elif schema is not None:
        columns = set(table.rows[0].cells) if table.rows else set(own)
        for name in own:
            if name not in columns:
                raise unknown(f"column in {cases}:", name, sorted(columns))
        read, odd = own_grades(table, schema, state_of)
    else:
        raise InputError(
            found="no findings, no readings and no schema",
            expected="the columns of the cases that hold findings, or a table of readings",
            hint="--findings tuberculosis,cavitation --disease tuberculosis",
        )
    graded = Schema(read.schema.variables, disease or read.schema.disease)
    return matched(
        KIND,
        [cases, *([readings] if readings else [])],
        table,
        read,
        graded,
        consensus or Consensus(size=False),
        files_of=film_of,
        place_of=lambda row: None,
        odd=odd,
        keep=keep,
    )


def state_of(cell: str | None, variable: Variable) -> str | None:
    """Say which state a cell means: its name, or of two states 0 for the first and 1 for the second.

    >>> finding = Variable("cavitation", ("no", "yes"))
    >>> [state_of(cell, finding) for cell in ("1", "0.0", "yes", None)]
    ['yes', 'no', 'yes', None]
    """
    if cell is None or cell in variable.states:
        return cell
    whole = cell.removesuffix(".0")
    if variable.size == 2 and whole in ("0", "1") and whole not in variable.states:
        return variable.states[int(whole)]
    return variable.states[variable.index(whole if whole in variable.states else cell)]


def write_example(path: Path) -> Path:
    """Write a table of cases to start from."""
    if path.exists():
        raise InputError(found=f"{path} is there already", expected="a new file", hint="another name")
    write_text(path, EXAMPLE)
    return path


def film_of(row: Row) -> tuple[str, ScanFiles]:
    """Give the name and the file of a row's radiograph."""
    if row.image is None or not row.image.is_file():
        raise UnmatchedError("no such image")
    return row.scan, RadiographFile(row.image, _limits(row))


def _limits(row: Row) -> Limits | None:
    black, white = (row.cells.get(name) or None for name in ("black", "white"))
    if black is None and white is None:
        return None
    if black is None or white is None or not (NUMBER.fullmatch(black) and NUMBER.fullmatch(white)):
        raise UnmatchedError("black and white are not two numbers")
    try:
        return Limits(float(black), float(white))
    except InputError as error:
        raise UnmatchedError(error.found) from None
