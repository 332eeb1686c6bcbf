"""Small made-up scans of known answers, as DICOM series, with readings: for tests and first trials.

They are phantoms: balls in something like lung, in no patient. Whatever goes wrong in archives can
be asked for, so that reading it can be tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from xml.sax.saxutils import escape

import numpy as np
from jaxtyping import Float64

from radreason.data.reading import NoduleReading, Outline
from radreason.data.volume import Volume
from radreason.input_files import write_text

if TYPE_CHECKING:
    from pydicom import Dataset

LUNG_HU = -850
NODULE_HU = 40

Compression = Literal["none", "implicit", "jpeg2000", "jpeg-ls", "rle"]

_CT = "1.2.840.10008.5.1.4.1.1.2"
_SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"
_SYNTAX = {
    "none": "1.2.840.10008.1.2.1",
    "implicit": "1.2.840.10008.1.2",
    "jpeg2000": "1.2.840.10008.1.2.4.90",
    "jpeg-ls": "1.2.840.10008.1.2.4.80",
    "rle": "1.2.840.10008.1.2.5",
}


@dataclass(frozen=True)
class Ball:
    """A nodule of the simplest shape; its edge is softened over one millimetre."""

    centre_mm: tuple[float, float, float]
    diameter_mm: float
    hu: float = NODULE_HU


@dataclass(frozen=True)
class Untidy:
    """What went wrong between the scanner and the folder. Slices are counted from the first."""

    missing: tuple[int, ...] = ()
    twice: tuple[int, ...] = ()
    twice_unlike: tuple[int, ...] = ()
    turned: tuple[int, ...] = ()
    tilt_degrees: float = 0.0
    thickness_mm: float | None = None
    screenshot: bool = False
    scout: bool = False
    text_file: bool = False
    without_mark: bool = False


TIDY = Untidy()


def phantom_scan(
    balls: Sequence[Ball],
    shape: tuple[int, int, int] = (40, 96, 96),
    spacing_mm: tuple[float, float, float] = (2.5, 0.7, 0.7),
    turn: Float64[np.ndarray, "3 3"] | None = None,
    noise_hu: float = 0.0,
    seed: int = 0,
) -> Volume:
    """Render balls in lung. The middle of the scan is the origin; ``turn`` rotates its axes x, y, z."""
    affine = np.eye(4)
    affine[:3, :3] = (np.eye(3) if turn is None else turn)[:, ::-1] * np.array(spacing_mm)
    affine[:3, 3] = -affine[:3, :3] @ (np.array(shape) - 1) / 2
    scan = Volume(np.zeros(shape, np.int16), affine)
    mm = scan.to_mm(np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1))
    hu = np.random.default_rng(seed).normal(LUNG_HU, noise_hu, shape)
    for ball in balls:
        depth = ball.diameter_mm / 2 - np.linalg.norm(mm - np.array(ball.centre_mm), axis=-1)
        hu += (ball.hu - LUNG_HU) * np.clip(depth + 0.5, 0, 1)
    return Volume(np.rint(hu).astype(np.int16), affine)


def write_series(
    folder: Path | str,
    scan: Volume,
    patient: str = "PHANTOM-1",
    compression: Compression = "none",
    slope: float = 1.0,
    intercept: float = -1024.0,
    untidy: Untidy = TIDY,
    seed: int = 0,
) -> str:
    """Write a scan as a DICOM series, a file for each slice in no order, and give its series UID.

    A scan with another ``seed`` is another series, also in the same folder.
    """
    from pydicom.uid import UID, generate_uid

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    uid = str(generate_uid(entropy_srcs=[f"radreason phantom {patient} {seed}"]))
    datasets = list(_spoilt(list(_slices(scan, uid, patient, slope, intercept)), untidy))
    shuffled = np.random.default_rng(seed).permutation(len(datasets))
    for number, place in enumerate(shuffled.tolist()):
        dataset, path = datasets[place], folder / f"{patient}-{seed}-{number:03}.dcm"
        dataset.file_meta.TransferSyntaxUID = UID(
            _SYNTAX["implicit" if compression == "implicit" else "none"]
        )
        if compression not in ("none", "implicit"):
            dataset.compress(_SYNTAX[compression], generate_instance_uid=False)
        dataset.save_as(path, enforce_file_format=True)
        if untidy.without_mark:
            path.write_bytes(path.read_bytes()[132:])
    if untidy.text_file:
        write_text(folder / "readme.txt", "A phantom. Not DICOM.\n")
    return uid


def outlines_of(ball: Ball, scan: Volume) -> tuple[Outline, ...]:
    """Outline a ball as the readers of LIDC-IDRI do: along the first pixels outside of it, in axial scans."""
    outlines = []
    column, row, _ = (scan.to_index(ball.centre_mm))[::-1].tolist()
    turn = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    for k in range(scan.shape[0]):
        z = float(scan.to_mm((k, 0, 0))[2])
        square = (ball.diameter_mm / 2) ** 2 - (z - ball.centre_mm[2]) ** 2
        if square <= 0:
            continue
        radius = np.sqrt(square) / scan.spacing_mm[1] + 0.5
        points = np.rint(np.stack([column + radius * np.cos(turn), row + radius * np.sin(turn)], -1))
        points = points[(points != np.roll(points, 1, axis=0)).any(1)]
        outlines.append(Outline(z, np.concatenate([points, points[:1]])))
    return tuple(outlines)


def write_lidc_xml(path: Path | str, readings: Sequence[NoduleReading]) -> None:
    """Write readings of one series as LIDC-IDRI does: a reading session for each reader."""
    from pydicom.uid import generate_uid

    def roi(outline: Outline) -> str:
        image = generate_uid(entropy_srcs=[f"{readings[0].scan} {outline.z_mm}"])
        edge = "".join(
            f"<edgeMap><xCoord>{x}</xCoord><yCoord>{y}</yCoord></edgeMap>"
            for x, y in outline.xy.astype(int).tolist()
        )
        return (
            f"<roi><imageZposition>{outline.z_mm}</imageZposition><imageSOP_UID>{image}</imageSOP_UID>"
            f"<inclusion>{str(outline.inside).upper()}</inclusion>{edge}</roi>\n"
        )

    def nodule(reading: NoduleReading) -> str:
        grades = "".join(
            f"<{name}>{grade}</{name}>" for name, grade in reading.grades.items() if grade is not None
        )
        return (
            f"<unblindedReadNodule><noduleID>{escape(reading.nodule)}</noduleID>"
            f"<characteristics>{grades}</characteristics>\n"
            f"{''.join(map(roi, reading.outlines))}</unblindedReadNodule>"
        )

    sessions = "\n".join(
        "<readingSession><annotationVersion>3.12</annotationVersion>"
        f"<servicingRadiologistID>{escape(reader or 'anonymous')}</servicingRadiologistID>\n"
        + "\n".join(nodule(reading) for reading in readings if reading.reader == reader)
        + "\n</readingSession>"
        for reader in dict.fromkeys(reading.reader for reading in readings)
    )
    header = (
        "<ResponseHeader><TaskDescription>Second unblinded read</TaskDescription>"
        f"<SeriesInstanceUid>{readings[0].scan}</SeriesInstanceUid></ResponseHeader>"
    )
    write_text(
        path,
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<LidcReadMessage uid="phantom" xmlns="http://www.nih.gov">\n{header}\n{sessions}\n</LidcReadMessage>\n',
    )


def _slices(scan: Volume, uid: str, patient: str, slope: float, intercept: float) -> Iterator[Dataset]:
    from pydicom import Dataset
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import UID, generate_uid

    directions = scan.affine[:3, :3] / np.array(scan.spacing_mm)
    for k, pixels in enumerate(scan.array):
        dataset = Dataset()
        dataset.file_meta = FileMetaDataset()
        dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = UID(_CT)
        instance = generate_uid(entropy_srcs=[f"{uid} {k}"])
        dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID = instance
        dataset.SeriesInstanceUID, dataset.StudyInstanceUID = uid, generate_uid(entropy_srcs=[f"study {uid}"])
        dataset.FrameOfReferenceUID = generate_uid(entropy_srcs=[f"frame {uid}"])
        dataset.PatientID = patient
        dataset.Modality, dataset.ImageType = "CT", ["ORIGINAL", "PRIMARY", "AXIAL"]
        dataset.ImagePositionPatient = _decimals(scan.to_mm((k, 0, 0)))
        dataset.ImageOrientationPatient = _decimals(np.concatenate([directions[:, 2], directions[:, 1]]))
        dataset.PixelSpacing = _decimals(np.array(scan.spacing_mm[1:]))
        dataset.SliceThickness = f"{scan.spacing_mm[0]:g}"
        dataset.RescaleSlope, dataset.RescaleIntercept, dataset.RescaleType = (
            f"{slope:g}",
            f"{intercept:g}",
            "HU",
        )
        dataset.InstanceNumber = k + 1
        _set_pixels(dataset, pixels)
        yield dataset


def _set_pixels(dataset: Dataset, hu: Float64[np.ndarray, "rows columns"] | np.ndarray) -> None:
    slope, intercept = float(dataset.RescaleSlope), float(dataset.RescaleIntercept)
    stored = np.rint((hu - intercept) / slope)
    signed = bool(stored.min() < 0)
    dataset.Rows, dataset.Columns = hu.shape
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 16, 16, 15
    dataset.PixelRepresentation = int(signed)
    dataset.PixelData = stored.astype("<i2" if signed else "<u2").tobytes()
    dataset["PixelData"].VR = "OW"


def _spoilt(datasets: Sequence[Dataset], untidy: Untidy) -> Iterator[Dataset]:
    from copy import deepcopy

    from pydicom.uid import UID

    first = datasets[0]
    for k, dataset in enumerate(datasets):
        across, down = np.array(dataset.ImageOrientationPatient, float).reshape(2, 3)
        lean = np.tan(np.radians(untidy.tilt_degrees)) * float(first.SliceThickness) * k
        dataset.ImagePositionPatient = _decimals(np.array(dataset.ImagePositionPatient, float) + lean * down)
        dataset.SliceThickness = f"{untidy.thickness_mm or float(dataset.SliceThickness):g}"
        if k in untidy.turned:
            dataset.ImageOrientationPatient = _decimals(np.concatenate([across, np.cross(across, down)]))
        if k not in untidy.missing:
            yield dataset
        if k in untidy.twice:
            yield deepcopy(dataset)
        if k in untidy.twice_unlike:
            other = deepcopy(dataset)
            other.PixelData = other.PixelData[::-1]
            yield other
    if untidy.screenshot:
        other = deepcopy(first)
        other.file_meta.MediaStorageSOPClassUID = other.SOPClassUID = UID(_SECONDARY_CAPTURE)
        yield other
    if untidy.scout:
        other = deepcopy(first)
        other.ImageType = ["ORIGINAL", "PRIMARY", "LOCALIZER"]
        other.ImageOrientationPatient = ["1", "0", "0", "0", "0", "-1"]
        yield other


def _decimals(numbers: Float64[np.ndarray, " n"]) -> list[str]:
    """Write numbers as DICOM takes them, in at most 16 characters."""
    return [f"{number:.10f}"[:16] for number in numbers.tolist()]
