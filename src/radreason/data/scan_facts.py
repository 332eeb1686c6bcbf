"""What one source does not say of a scan, another may: its patient, its spacings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from radreason.data.reading import Readings, Scan


def with_facts(readings: Readings, known: Mapping[str, Scan]) -> Readings:
    """Fill the gaps of the scans that are known by series elsewhere; what a source says itself stays."""
    return replace(
        readings,
        scans={
            uid: _filled(scan, known[uid]) if uid in known else scan for uid, scan in readings.scans.items()
        },
    )


def has_geometry(scan: Scan) -> bool:
    """Whether outlines on this scan have distances: without both spacings they are pixels only."""
    return scan.pixel_spacing_mm is not None and scan.slice_thickness_mm is not None


def _filled(scan: Scan, other: Scan) -> Scan:
    names = [field.name for field in fields(Scan) if getattr(scan, field.name) is None]
    return replace(scan, **{name: getattr(other, name) for name in names})
