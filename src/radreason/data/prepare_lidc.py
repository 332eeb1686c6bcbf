"""LIDC-IDRI: the readings of its radiologists and the scans that they read, as a plan.

Which readings are of one nodule is settled when the scan is read, because the XML does not say how
large a pixel is.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from radreason.data.case import Case
from radreason.data.consensus import Consensus
from radreason.data.dicom_index import Series, find_series
from radreason.data.grouping import group_scan
from radreason.data.lesion import Lesion
from radreason.data.place import Drawn
from radreason.data.prepare import Job, Plan
from radreason.data.reading import NoduleReading, Readings, Scan
from radreason.data.scan_files import SeriesFiles
from radreason.data.volume import Volume
from radreason.errors import InputError
from radreason.schema import Schema

KIND = "ct"

_LIDC_PATIENT = re.compile(r"LIDC-IDRI-[0-9]{4}")


def plan_lidc(dicom: Path, readings: Readings, source: str, consensus: Consensus) -> Plan:
    """Match readings with the series of a folder; no voxel is read yet."""
    index = find_series(dicom)
    said: dict[str, list[NoduleReading]] = defaultdict(list)
    for reading in readings.nodules:
        said[reading.scan].append(reading)
    jobs: list[tuple[str, Job]] = []
    absent: list[tuple[str, str]] = []
    for uid, own in said.items():
        series = index.series.get(uid)
        if series is None:
            absent.append((_name(uid, own), "not among the images"))
            continue
        scan = readings.scans.get(uid, Scan(uid))
        if scan.patient is None:
            scan = replace(scan, patient=_pseudonym(series))
        files = SeriesFiles(series.slices, series.others, series.uid, series.modality)
        if scan.slice_thickness_mm is None:
            scan = replace(scan, slice_thickness_mm=files.slice_thickness_mm())
        lesions = Readers(scan, tuple(own), readings.schema, consensus)
        jobs.append((scan.patient or "", Job(uid, files, lesions)))
    if not jobs:
        raise InputError(
            found=f"{dicom}: none of its {len(index.series):,} series has readings of nodules",
            expected=f"one or more of the {len(said):,} series that were read",
        )
    jobs.sort(key=lambda entry: (entry[0], entry[1].name))
    unread = sorted(series.uid for series in index.ct if series.uid not in said)
    notes = list(readings.notes)
    if unread:
        notes.append(f"{len(unread):,} series of CT without readings of nodules: {_some(unread)}")
    if index.strays:
        notes.append(f"{len(index.strays):,} files that are of no series")
    return Plan(
        KIND,
        source,
        consensus.schema(readings.schema),
        {"consensus": consensus.to_dict(), "readings_sha256": _digest(readings)},
        tuple(job for _, job in jobs),
        excluded=tuple(absent),
        notes=tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class Readers:
    """What the readers of one scan said; it becomes nodules when the scan is read."""

    scan: Scan
    readings: tuple[NoduleReading, ...]
    schema: Schema
    consensus: Consensus

    @property
    def names(self) -> Sequence[str]:
        """The series, for its nodules have no names yet."""
        return [_name(self.scan.series_uid, self.readings)]

    def of(self, volume: Volume) -> tuple[Sequence[Lesion], Sequence[tuple[str, str]]]:
        """Group the readings into nodules, and make a case of each."""
        slice_mm, row_mm, column_mm = volume.spacing_mm
        if abs(row_mm - column_mm) > 1e-3 * row_mm:
            raise InputError(
                found=f"pixels of {row_mm:g} by {column_mm:g} mm", expected="square pixels, as LIDC-IDRI has"
            )
        scan = replace(
            self.scan,
            pixel_spacing_mm=self.scan.pixel_spacing_mm or row_mm,
            slice_thickness_mm=self.scan.slice_thickness_mm or slice_mm,
            slice_spacing_mm=self.scan.slice_spacing_mm or slice_mm,
        )
        nodules, _ = group_scan(scan, self.readings)
        lesions: list[Lesion] = []
        excluded: list[tuple[str, str]] = []
        for nodule in nodules:
            case = self.consensus.case(nodule, self.schema)
            if isinstance(case, Case):
                drawn = tuple(reading.outlines for reading in nodule.readings if reading.outlines)
                lesions.append(Lesion(case, Drawn(drawn)))
            else:
                excluded.append((case.case_id, case.reason))
        return lesions, excluded


def _name(uid: str, readings: Sequence[NoduleReading]) -> str:
    return f"series {uid}, {len(readings)} reading{'s' * (len(readings) != 1)}"


def _pseudonym(series: Series) -> str | None:
    """Take the id that LIDC-IDRI gave; any other might be a hospital's own, and is made unreadable."""
    if not series.patient or _LIDC_PATIENT.fullmatch(series.patient):
        return series.patient or None
    return f"patient-{hashlib.sha256(series.patient.encode()).hexdigest()[:12]}"


def _digest(readings: Readings) -> str:
    """Digest what was said, in whatever files it came."""
    digest = hashlib.sha256()
    for reading in readings.nodules:
        digest.update(repr((reading.scan, reading.reader, reading.nodule, dict(reading.grades))).encode())
        for outline in reading.outlines:
            digest.update(repr((outline.z_mm, outline.inside)).encode() + outline.xy.tobytes())
    return digest.hexdigest()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + " ..." * (len(names) > 3)
