"""``radreason diagnose``: a run asked about images that were never in a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from radreason.cli.terminal import ascii_only, console, print_json, progress, stderr, waiting
from radreason.errors import InputError

if TYPE_CHECKING:
    from radreason.data.place import Place
    from radreason.given.answers import Answer
    from radreason.given.image import Refused
    from radreason.given.source import Source

Numbers = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
"""Three numbers with commas, the first of which may be negative."""


def diagnose(
    run: Path,
    /,
    *images: str,
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
    device: str = "cpu",
    batch: int = 16,
    out: Path | None = None,
    stages: bool = False,
    json: bool = False,
) -> None:
    """Ask RUN about IMAGES: the disease and every attribute, as each stage believes them.

    An image is a patch as prepared (.npy, .nii.gz), DATASET:CASE, a scan (NIfTI, MetaImage, NRRD, a folder
    of DICOM) with a place, a radiograph, a table of cases, or a folder of these. It becomes the patch that
    `prepare` would have made. One of the wrong modality, range or spacing for the run is refused.
    docs/diagnosing.md tells more.

    Parameters
    ----------
    run
        Folder that `train` or `crossval` wrote. Of a cross-validation the models are averaged that do not
        know the patient.
    images
        What to ask about.
    at
        Where the lesion is in a scan: x,y,z in mm, LPS as in DICOM and ITK (x to the patient's left, y to
        the back, z to the head).
    at_ras
        The same in RAS, as in NIfTI tools (x to the right, y to the front).
    voxel
        The same as column,row,slice of the file, from 0; slices of a DICOM series from the foot.
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
        Do not refuse patients whom every model has seen; the answer says so.
    device
        Where the models are, as cpu or cuda.
    batch
        Images that go through a model together.
    out
        File to write, .jsonl or .parquet; started again it goes on.
    stages
        Show every attribute at every stage.
    json
        Print a JSON document; of many images one on each line.
    """
    place = place_of(at, at_ras, voxel, mask, mask_part)
    if not images:
        raise InputError(found="no image", expected="one or more", hint="radreason diagnose --help")
    if batch < 1:
        raise InputError(found=f"--batch {batch}", expected="1 or more")
    with waiting("loading the run", silent=json):
        from radreason.diagnoser import load
        from radreason.given import sources_of
        from radreason.given.answers import answers
        from radreason.given.answers_file import opened
        from radreason.given.images import images_of, trace_of
        from radreason.given.takes import Takes

        model = load(run, name, device)
        takes = Takes.of(model, weights)
        listed = sources_of(model, images, place, series_uid=series_uid, dicom=dicom)
    refused: list[Refused] = []
    alone = len(listed) == 1
    hear = None if alone else refused.append

    def asked(part: Sequence[tuple[int, Source]]) -> Iterator[Answer]:
        found = images_of(model, takes, part, allow_seen=allow_seen, refused=hear)
        return answers(model, found, batch)

    if out is None:
        n = 0
        for answer in asked(listed):
            n += 1
            _show(answer, alone, stages, json)
        _end(refused, n, json)
    else:
        with progress(silent=json) as bar, opened(out, trace_of(model)) as file:
            left = [(number, source) for number, source in listed if source.name not in file.done]
            before = len(listed) - len(left)
            task = bar.add_task("asking", total=len(listed), completed=before)
            for answer in asked(left):
                file.add(answer)
                bar.update(task, completed=before + file.n_written + len(refused))
        n = before + file.n_written
        _written(out, file.n_written, before, refused, json)
    if not n:
        raise InputError(
            found=f"none of {len(listed):,} images could be asked", expected="images as the run takes them"
        )


def _show(answer: Answer, alone: bool, stages: bool, json: bool) -> None:
    if not json:
        from radreason.report.diagnosis_text import page

        console().print(page(answer, stages), soft_wrap=True)
    elif alone:
        print_json(answer.to_dict())
    else:
        print(dumps(answer.to_dict(), ensure_ascii=ascii_only(), allow_nan=False), flush=True)


def _end(refused: Sequence[Refused], n: int, json: bool) -> None:
    """Say what could not be asked: to programs on stdout, to people on stderr."""
    if json:
        for one in refused:
            said = {"case": one.name, "number": one.number, "refused": one.anonymous}
            print(dumps(said, ensure_ascii=ascii_only()))
        return
    from radreason.report.diagnosis_text import NO_DEVICE, refusals

    if n:
        console().print(NO_DEVICE)
    if refused:
        stderr().print(refusals(refused), soft_wrap=True)


def _written(out: Path, n: int, before: int, refused: Sequence[Refused], json: bool) -> None:
    if json:
        listed = [{"case": one.name, "number": one.number, "refused": one.anonymous} for one in refused]
        print_json({"file": str(out), "answers": n, "before": before, "refused": listed})
        return
    from radreason.report.diagnosis_text import NO_DEVICE, refusals

    if n or before:
        went_on = f"; {before:,} were there before" if before else ""
        console().print(f"{n:,} answers written to {out}{went_on}\n{NO_DEVICE}", soft_wrap=True)
    if refused:
        stderr().print(refusals(refused), soft_wrap=True)


def place_of(
    at: str | None, at_ras: str | None, voxel: str | None, mask: Path | None, mask_part: str | None
) -> Place | None:
    """Make a place of whichever option says where the lesion is."""
    said = {"--at": at, "--at-ras": at_ras, "--voxel": voxel, "--mask": mask}
    given = [option for option, value in said.items() if value is not None]
    if len(given) > 1:
        raise InputError(found=" and ".join(given), expected="one of them")
    if mask_part is not None and mask is None:
        raise InputError(found="--mask-part without --mask", expected="both")
    if not given:
        return None
    from radreason.data.case_table import LPS, RAS, VOXEL
    from radreason.data.place import MaskFile, Position

    if mask is not None:
        return MaskFile(mask, mask_part)
    frame = {"--at": LPS, "--at-ras": RAS, "--voxel": VOXEL}[given[0]]
    return Position(_three(given[0], str(said[given[0]])), frame)


def _three(option: str, text: str) -> tuple[float, float, float]:
    from radreason.data.table import NUMBER

    words = [word.strip() for word in text.split(",")]
    if len(words) != 3 or not all(NUMBER.fullmatch(word) for word in words):
        raise InputError(
            found=f"{option} {text[:40]}", expected="three numbers with commas, as -61.5,38.2,-120"
        )
    x, y, z = map(float, words)
    return x, y, z
