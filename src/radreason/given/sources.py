"""What a user points at, each thing with a way to read it as a patch; nothing is read before its turn.

DATASET:CASE, DATASET     a case of a prepared dataset, or all of them
FILE.npy                  a patch as prepared
FILE.nii.gz, .mha, .nrrd  a patch of CT if it has the run's size, else a scan; of a run on radiographs
                          a radiograph
FOLDER                    a DICOM series, or a folder of such files
FILE.png, .jpg, .dcm      a radiograph
FILE.csv, .tsv, .parquet  a table of cases as `radreason prepare` takes it
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from radreason.data.case_table import Row, read_cases
from radreason.data.dataset import DATASET, Dataset
from radreason.data.image_files import is_image_file
from radreason.data.matching import UnmatchedError
from radreason.data.place import Place
from radreason.data.prepare_ct import place_of, scan_finder
from radreason.data.prepare_cxr import film_of
from radreason.data.radiograph_pictures import ENDINGS
from radreason.data.scan_files import ImageFile, RadiographFile, ScanFiles, SeriesFiles
from radreason.errors import InputError, unknown
from radreason.given.of_dataset import OfDataset
from radreason.given.of_patch import OfPatch, shapes_of
from radreason.given.of_radiograph import OfRadiograph
from radreason.given.of_scan import LastScan, OfScan
from radreason.given.source import WHAT, Source, Unusable, by
from radreason.given.takes import Takes

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")

_NO_IMAGES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".md", ".xml", ".parquet", ".toml", ".pdf", ".py")


def sources(
    spec: str,
    takes: Takes,
    place: Place | None = None,
    series_uid: str | None = None,
    dicom: Path | None = None,
    alone: bool = True,
) -> Iterator[Source]:
    """Find what a user means; what makes no sense at all is refused here.

    A file that is no image of the run is refused at once if it is ``alone``; one of several costs itself
    alone.
    """
    path = Path(spec)
    if (split := _case_of(spec)) is not None:
        _refuse_place(spec, place)
        yield _of_dataset(*split, spec)
    elif (path / DATASET).is_file():
        _refuse_place(spec, place)
        dataset = Dataset.open(path)
        for row, case in enumerate(dataset.cases):
            yield OfDataset(dataset, row, case.id, f"{spec}:{case.id}")
    elif path.is_dir():
        yield from _of_folder(path, takes, place, series_uid)
    elif not path.exists():
        raise InputError(
            found=f"{spec}: no such file or folder",
            expected=WHAT,
            hint="DATASET is a folder that `radreason prepare` wrote" if ":" in spec else "",
        )
    elif path.name.lower().endswith(TABLES):
        _refuse_place(spec, place)
        yield from _of_table(path, takes, dicom)
    else:
        yield _of_file(path, takes, place) if alone else _usable(path, takes, place)


def pseudonym(path: Path, place: object = None) -> str:
    """Name an image without the name of its file, which may be the patient's; the same one each time."""
    said = f"{path}" if place is None else f"{path} {place!r}"
    return f"image-{hashlib.sha256(said.encode()).hexdigest()[:12]}"


def _case_of(spec: str) -> tuple[Path, str] | None:
    for at, sign in enumerate(spec):
        if sign == ":" and (Path(spec[:at]) / DATASET).is_file():
            return Path(spec[:at]), spec[at + 1 :]
    return None


@lru_cache(maxsize=8)
def _opened(folder: Path, written: int) -> tuple[Dataset, dict[str, int]]:
    """Open a dataset once for many of its cases; one written anew since is opened anew."""
    dataset = Dataset.open(folder)
    return dataset, {case.id: row for row, case in enumerate(dataset.cases)}


def _of_dataset(folder: Path, name: str, spec: str) -> Source:
    dataset, rows = _opened(folder, (folder / DATASET).stat().st_mtime_ns)
    if name not in rows:
        raise unknown(f"case in {folder}:", name, rows)
    return OfDataset(dataset, rows[name], name, spec)


def _of_file(path: Path, takes: Takes, place: Place | None) -> Source:
    name = path.name.lower()
    if name.endswith(".npy"):
        _refuse_place(str(path), place)
        return OfPatch(path, pseudonym(path), str(path))
    if not takes.is_ct:
        _refuse_place(str(path), place)
        return OfRadiograph(RadiographFile(path), pseudonym(path), str(path))
    if name.endswith(ENDINGS):
        raise InputError(
            found=f"{path}: a picture, as radiographs are",
            expected=f"CT: the run was trained on {takes.kind}",
            hint="a run that was trained on radiographs",
        )
    if not is_image_file(path):
        raise InputError(
            found=f"{path}: neither an image file nor a table",
            expected=WHAT,
            hint="of a DICOM series the folder is given",
        )
    if place is not None:
        return OfScan(ImageFile(path), place, pseudonym(path, place), str(path))
    if (size := _size_of(path)) in shapes_of(takes):
        return OfPatch(path, pseudonym(path), str(path))
    if len(size) == 2 or 1 in size:
        raise InputError(
            found=f"{path}: {by(size)} voxels, a picture in one plane",
            expected=f"CT in three dimensions: the run was trained on {takes.kind}",
        )
    raise InputError(
        found=f"{path}: {by(size)} voxels, and no place in them",
        expected=f"the place of the lesion, or a patch of {' or '.join(map(by, shapes_of(takes)))}",
        hint="--at=x,y,z in mm (LPS), --voxel=column,row,slice or --mask FILE",
    )


def _of_folder(path: Path, takes: Takes, place: Place | None, series_uid: str | None) -> Iterator[Source]:
    files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    if not takes.is_ct:
        _refuse_place(str(path), place)
        films = [file for file in files if not file.name.lower().endswith(_NO_IMAGES)]
        if not films:
            raise InputError(found=f"{path}: no file in it that may be a radiograph", expected=WHAT)
        for file in films:
            yield _usable(file, takes)
        return
    images = [file for file in files if file.name.lower().endswith(".npy") or is_image_file(file)]
    if images:
        if place is not None:
            raise InputError(
                found=f"{path}: {len(images)} images and one place",
                expected="a place for each",
                hint="a table of cases: radreason prepare ct --example cases.csv",
            )
        for file in images:
            yield _usable(file, takes)
        return
    from radreason.data.dicom import choose_series

    series, _ = choose_series(path, series_uid)
    if place is None:
        raise InputError(
            found=f"{path}: a DICOM series, and no place in it",
            expected="the place of the lesion",
            hint="--at=x,y,z in mm (LPS), --voxel=column,row,slice or --mask FILE",
        )
    found = SeriesFiles(series.slices, series.others, series.uid, series.modality)
    yield OfScan(found, place, pseudonym(Path(series.uid), place), str(path))


def _usable(file: Path, takes: Takes, place: Place | None = None) -> Source:
    """Find what one file of several is; one that is nothing costs itself alone."""
    try:
        return _of_file(file, takes, place)
    except InputError as error:
        return Unusable(pseudonym(file), str(file), error, (file,))


def _of_table(path: Path, takes: Takes, dicom: Path | None) -> Iterator[Source]:
    """Give the rows of a table, those of one scan together: it is read once."""
    table = read_cases(path, grades=() if takes.is_ct else ("black", "white"), whole=not takes.is_ct)
    for case, reason in table.refused:
        yield Unusable(case, f"{path}:{case}", InputError(f"{case}: {reason}", "a row that says enough"))
    find = scan_finder(dicom) if takes.is_ct else film_of
    scans: dict[ScanFiles, list[Source]] = {}
    reads = LastScan()
    for row in table.rows:
        shown = f"{path}:{row.case}"
        try:
            files = find(row)[1]
        except (UnmatchedError, InputError) as error:
            reason = error.found if isinstance(error, InputError) else str(error)
            refusal = InputError(f"{row.case}: line {row.line}: {reason}", WHAT)
            yield Unusable(row.case, shown, refusal, _paths(row))
            continue
        one: Source = (
            OfScan(files, place_of(row), row.case, shown, row.patient, reads)
            if takes.is_ct
            else OfRadiograph(files, row.case, shown, row.patient)
        )
        scans.setdefault(files, []).append(one)
    for of_scan in scans.values():
        yield from of_scan


def _paths(row: Row) -> tuple[Path, ...]:
    return tuple(path for path in (row.image, row.mask) if path is not None)


def _refuse_place(spec: str, place: Place | None) -> None:
    if place is not None:
        raise InputError(
            found=f"{spec}, and a place in a scan",
            expected="a place for a scan alone: an image file or a series",
        )


def _size_of(path: Path) -> tuple[int, ...]:
    """Read the size of an image from its header, slices first."""
    import SimpleITK

    reader = SimpleITK.ImageFileReader()
    reader.SetFileName(str(path))
    try:
        reader.ReadImageInformation()
    except RuntimeError:
        ImageFile(path).read()  # says what is wrong with it
        raise
    return tuple(int(n) for n in reversed(reader.GetSize()))
