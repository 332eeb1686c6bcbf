"""``radreason compare``: runs side by side, in the paper's tables and on a page with plots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from radreason.cli.crossval import Several
from radreason.cli.terminal import console, print_json, waiting
from radreason.errors import InputError

if TYPE_CHECKING:
    from radreason.compare.comparison import Comparison
    from radreason.compare.method import Method

WIDEST = 180
"""Columns of a table: rather lines that the terminal folds than numbers cut off."""


def compare(
    *runs: Annotated[Path, Parameter(name="RUN", negative=())],
    baseline: Annotated[list[str] | None, Several] = None,
    names: Annotated[list[str] | None, Several] = None,
    paper: Annotated[list[str] | None, Several] = None,
    data: Path | None = None,
    out: Path | None = None,
    keep: Path | None = None,
    protocol: Literal["binary", "off-by-one"] | None = None,
    stages: bool = False,
    common: bool = False,
    unfinished: bool = False,
    resamples: int = 2000,
    json: bool = False,
) -> None:
    """Compare runs that tested the same cases: figures, intervals by patient, tests between methods.

    RUN is a run of `train` or `crossval`, or a folder that --keep wrote. Runs
    on other data or cases are refused.

    Parameters
    ----------
    baseline
        Methods that the others are compared with; by default what --keep noted, or the first.
    names
        What the methods are called, in the order of the runs; by default the folders' names.
    paper
        Rows of the paper to show beside a method, as in hybrid=tab:lidcsota/O2.
    data
        Dataset of the runs: tells which cases are of one patient, for the intervals.
    out
        Folder to write: compare.html with plots, and every table as .md, .csv and .tex.
    keep
        Folder to keep what the tables are made of, small and without weights; methods are added or replaced.
    protocol
        binary, or off-by-one for a disease of grades: within one grade counts as right.
    stages
        Print the tables of stages, grades and networks, too; --out has them anyway.
    common
        Compare on the cases that all runs tested, where they differ.
    unfinished
        Leave out models whose training has not ended.
    resamples
        Resamples of the patients for the intervals.
    json
        Print all tables as JSON.
    """
    if not runs:
        raise InputError(
            found="no runs", expected="one run or more", hint="radreason compare RUN RUN --out DIR"
        )
    with waiting("reading", silent=json):
        from radreason.compare import comparison as comparisons
        from radreason.compare.kept import is_kept, kept_baselines
        from radreason.compare.kept import keep as keep_methods

        methods = _methods(runs, names or [], paper or [], data, unfinished)
    with waiting("resampling", silent=json):
        noted = [name for run in runs if is_kept(run) for name in kept_baselines(run)]
        baselines = baseline or list(dict.fromkeys(noted))
        found = comparisons.compare(methods, baselines, protocol, common, True, resamples)
    written = [str(path) for path in (keep_methods(methods, keep, baseline or ()) if keep else [])]
    if out:
        with waiting("drawing", silent=json):
            written += [str(path) for path in write_comparison(found, out)]
    if json:
        print_json({"tables": {t.key: t.to_dict() for t in found.tables}, "written": written})
    else:
        _show(found, stages)
        if keep:
            console().print(f"{keep}: kept {len(methods)} method(s)", soft_wrap=True)
        if out:
            console().print(f"{out}: compare.html, and each table as .md, .csv and .tex", soft_wrap=True)


def write_comparison(found: Comparison, out: Path) -> list[Path]:
    """Write the page and every table in three formats; give the files."""
    from radreason.input_files import make_folder, write_text
    from radreason.report.comparison_page import page
    from radreason.report.table_text import as_csv, latex, markdown

    make_folder(out)
    texts = {"compare.html": page(found)}
    for table in found.tables:
        for ending, text in ((".md", markdown(table)), (".csv", as_csv(table)), (".tex", latex(table))):
            texts[f"{table.key}{ending}"] = text
    for name, text in texts.items():
        write_text(out / name, text)
    return [out / name for name in texts]


def _methods(
    runs: tuple[Path, ...], names: list[str], paper: list[str], data: Path | None, unfinished: bool
) -> list[Method]:
    from radreason.compare.kept import is_kept, read_kept
    from radreason.compare.runs import read_run, renamed

    named = [run for run in runs if not is_kept(run)]
    if names and len(names) != len(named):
        raise InputError(
            found=f"{len(names)} names for {len(named)} runs", expected="a name for each run, in their order"
        )
    patients = _patients(data) if data else {}
    methods: list[Method] = []
    for run in runs:
        if is_kept(run):
            methods += read_kept(run)
        else:
            name = names[named.index(run)] if names else ""
            methods += read_run(run, name, patients, unfinished)
    rows: dict[str, list[str]] = {}
    known = [m.key for m in methods]
    for entry in paper:
        name, sign, row = entry.partition("=")
        if not sign or name not in known:
            raise InputError(
                found=f"--paper {entry}",
                expected=f"METHOD=TABLE/ROW with one of the methods {', '.join(known)}",
                hint=f"--paper {known[0]}=tab:lidcsota/O2",
            )
        rows.setdefault(name, []).append(row)
    return renamed(methods, rows)


def _patients(data: Path) -> dict[str, str]:
    from radreason.data.dataset import Dataset

    return {case.id: case.patient for case in Dataset.open(data).cases}


def _show(found: Comparison, inside: bool) -> None:
    from rich.table import Table as Shown

    from radreason.report.table_text import terminal

    screen = console(WIDEST)
    for table in found.tables:
        if not inside and table.key.partition("_")[0] in ("stages", "grades", "networks"):
            continue
        columns, right, rows = terminal(table)
        shown = Shown(box=None, pad_edge=False)
        for column, is_number in zip(columns, right, strict=True):
            shown.add_column(column, justify="right" if is_number else "left", no_wrap=is_number)
        for row, cells in rows:
            shown.add_row(*cells, style="italic dim" if row.as_published else "")
        screen.print(table.title, style="bold", soft_wrap=True)
        screen.print(shown)
        screen.print()
    for note in found.notes:
        screen.print(f"Note: {note}", soft_wrap=True)
