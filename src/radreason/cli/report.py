"""``radreason report``: a page for each case, with which a radiologist checks what a run says of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from radreason.cli.crossval import Several
from radreason.cli.diagnose import Numbers, place_of
from radreason.cli.terminal import console, print_json, progress, stderr, waiting
from radreason.errors import InputError

if TYPE_CHECKING:
    from radreason.data.dataset import Dataset
    from radreason.diagnoser import Diagnoser
    from radreason.given.image import Refused


def report(
    run: Path,
    /,
    *cases: str,
    out: Path,
    data: Path | None = None,
    at: Numbers = None,
    at_ras: Numbers = None,
    voxel: Numbers = None,
    mask: Path | None = None,
    mask_part: str | None = None,
    series_uid: str | None = None,
    dicom: Path | None = None,
    weights: Path | None = None,
    name: str | None = None,
    allow_seen: bool = False,
    json: bool = False,
) -> None:
    """Write a page about each CASE: image, grades, reasons, what would change them, how far to trust it.

    CASE is what `radreason diagnose` takes: DATASET:CASE, a patch, a scan with a place, a radiograph; with
    --data the name of a case alone. A page is one file of HTML that needs nothing else and prints on two
    pages; what it says is beside it as JSON. docs/reports.md tells more.

    Parameters
    ----------
    run
        Folder that `train` or `crossval` wrote.
    cases
        What to write pages about.
    out
        Folder for CASE.html and CASE.json.
    data
        The dataset that the run was trained on: for names of cases, and for runs that kept nothing of
        their training cases.
    at
        Where the lesion is in a scan: x,y,z in mm, LPS as in DICOM and ITK.
    at_ras
        The same in RAS, as in NIfTI tools.
    voxel
        The same as column,row,slice of the file, from 0.
    mask
        Instead of a point a mask, whose centre counts: an image, DICOM SEG or RTSTRUCT.
    mask_part
        Which label, segment or structure of the mask.
    series_uid
        Which series of a folder of DICOM.
    dicom
        Folder of DICOM files in which the series of a table are.
    weights
        Network that finds lungs, if `prepare cxr` was given one.
    name
        One model of a cross-validation, as repeat-0/fold-3.
    allow_seen
        Do not refuse patients whom every model has seen; the page says so.
    json
        Print the files as JSON.
    """
    place = place_of(at, at_ras, voxel, mask, mask_part)
    if not cases:
        raise InputError(found="no case", expected="one or more", hint="radreason report --help")
    with waiting("loading the run", silent=json):
        from radreason.data.dataset import Dataset
        from radreason.diagnoser import load
        from radreason.given import sources_of
        from radreason.given.images import images_of
        from radreason.given.takes import Takes
        from radreason.input_files import make_folder
        from radreason.report.case_page.known import known
        from radreason.report.case_page.make import make
        from radreason.report.tested import Tested

        model = load(run, name)
        specs = [_spec(case, data) for case in cases]
        dataset = Dataset.open(data) if data is not None else _own(model, specs)
        listed = sources_of(model, specs, place, series_uid=series_uid, dicom=dicom)
        patients = {} if dataset is None else {case.id: case.patient for case in dataset.cases}
        tested = Tested.of(model, patients)
        make_folder(out)
    refused: list[Refused] = []
    taught = {}
    written: list[dict[str, str]] = []
    with progress(silent=json) as bar:
        task = bar.add_task("writing", total=len(listed))
        takes = Takes.of(model, weights)
        hear = None if len(listed) == 1 else refused.append
        for image in images_of(model, takes, listed, allow_seen=allow_seen, refused=hear):
            asked = image.models[0]
            if asked not in taught:
                what = f"looking at the training cases of {asked or 'the model'}"
                looking = bar.add_task(what, total=None)

                def told(done: int, of: int, looking: object = looking) -> None:
                    bar.update(looking, completed=done, total=of)  # type: ignore[arg-type]

                taught[asked] = known(model, asked, dataset, told)
                bar.remove_task(looking)
            page, document = make(model, image, taught[asked], tested, out)
            written.append({"case": image.name, "page": str(page), "json": str(document)})
            bar.update(task, completed=len(written) + len(refused))
    _told(written, refused, json)
    if not written:
        raise InputError(
            found=f"none of {len(listed):,} cases could be asked", expected="cases as the run takes them"
        )


def _spec(case: str, data: Path | None) -> str:
    """Read a bare name as a case of the dataset; what is there as a file, or names its dataset, stays."""
    if data is None or ":" in case or Path(case).exists():
        return case
    return f"{data}:{case}"


def _own(run: Diagnoser, specs: list[str]) -> Dataset | None:
    """Open the dataset of the run if cases are given of it: it knows what the run may not have kept."""
    from radreason.data.dataset import DATASET, Dataset

    for folder in dict.fromkeys(Path(spec.rpartition(":")[0] or spec) for spec in specs):
        if (folder / DATASET).is_file():
            dataset = Dataset.open(folder)
            if all(plan["data"]["fingerprint"] == dataset.fingerprint for plan in run.plans.values()):
                return dataset
    return None


def _told(written: list[dict[str, str]], refused: list[Refused], json: bool) -> None:
    if json:
        listed = [{"case": one.name, "number": one.number, "refused": one.anonymous} for one in refused]
        print_json({"pages": written, "refused": listed})
        return
    from radreason.report.diagnosis_text import NO_DEVICE, refusals

    if written:
        pages = "\n".join(entry["page"] for entry in written)
        console().print(
            f"{pages}\n{len(written):,} page(s), and JSON beside them. {NO_DEVICE}", soft_wrap=True
        )
    if refused:
        stderr().print(refusals(refused), soft_wrap=True)


def card(
    run: Path, /, *, data: Path, out: Path, license_name: str = "apache-2.0", json: bool = False
) -> None:
    """Write the model card of RUN: use, data, figures by subgroup, calibration, limits, how to load it.

    Markdown with the header that Hugging Face reads. Everything comes from the run and its dataset; figures
    are of test cases, for all of them and by site, sex, age, size, agreement of readers and what else the
    dataset says of its cases.

    Parameters
    ----------
    run
        Folder that `train` or `crossval` wrote.
    data
        The dataset that the run was trained on.
    out
        File to write, as README.md.
    license_name
        Licence of the weights, as Hugging Face spells it.
    json
        Print the file's name as JSON.
    """
    with waiting("reading", silent=json):
        from radreason.data.dataset import Dataset
        from radreason.diagnoser import load
        from radreason.input_files import make_folder, write_text
        from radreason.report.model_card import card as written

        make_folder(out.parent)
        text = written(load(run), run, Dataset.open(data), license_name)
        write_text(out, text)
    if json:
        print_json({"card": str(out)})
    else:
        console().print(f"{out}: {len(text.splitlines())} lines", soft_wrap=True)


def pictures(
    *runs: Annotated[Path, Parameter(name="RUN", negative=())],
    data: Path,
    out: Path,
    names: Annotated[list[str] | None, Several] = None,
    cases: int = 4,
    resamples: int = 100,
    json: bool = False,
) -> None:
    """Draw the pictures of the paper from RUNs: the first is looked into, the others are compared with it.

    Slices of every grade, grades of methods against the truth (as radars, or as bars where findings are there
    or not), importance of attributes, both networks with the strength of their edges, and the framework
    with the shapes of the run; each as SVG and PNG.

    Parameters
    ----------
    data
        The dataset that the runs are of.
    out
        Folder to write.
    names
        What the methods are called, in the order of the runs; by default the folders' names.
    cases
        How many test cases are drawn method by method: right and wrong ones of the first run in turn.
    resamples
        Resamples of the training labels behind the strengths of edges; 0 leaves them out.
    json
        Print the files as JSON.
    """
    if not runs:
        raise InputError(
            found="no runs", expected="one or more", hint="radreason pictures RUN --data DATASET --out DIR"
        )
    if cases < 1 or resamples < 0:
        raise InputError(
            found=f"--cases {cases} --resamples {resamples}", expected="a case or more, no negative number"
        )
    with waiting("reading", silent=json):
        from radreason.data.dataset import Dataset
        from radreason.report.paper_pictures.make import pictures as drawn

        dataset = Dataset.open(data)
    with progress(silent=json) as bar:
        task = bar.add_task("drawing", total=None)

        def told(what: str, done: int, of: int) -> None:
            bar.update(task, description=what, completed=done, total=of)

        written = drawn(runs, dataset, out, names or (), cases, resamples, told)
    if json:
        print_json({"pictures": [str(path) for path in written]})
    else:
        console().print("\n".join(str(path) for path in written), soft_wrap=True)
