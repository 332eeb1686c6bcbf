"""From what a user points at to images that a run can be asked about, one after the other."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from radreason import __version__
from radreason.data.place import Place
from radreason.diagnoser import Diagnoser
from radreason.errors import InputError
from radreason.given import fits
from radreason.given.image import GivenImage, Refused
from radreason.given.source import Source
from radreason.given.sources import sources
from radreason.given.takes import Takes
from radreason.given.whom import Whom
from radreason.run_folder import BEST


def given_images(
    run: Diagnoser,
    specs: Sequence[str],
    place: Place | None = None,
    *,
    series_uid: str | None = None,
    dicom: Path | None = None,
    weights: Path | None = None,
    allow_seen: bool = False,
    refused: Callable[[Refused], None] | None = None,
) -> Iterator[GivenImage]:
    """Give the images that are meant, as the run takes them.

    `radreason.given.sources` lists what can be meant. ``place`` says where the lesion is in a scan
    (`radreason.data.place.Position` or ``MaskFile``); ``weights`` find lungs, if not those of the package.
    What cannot be asked is told to ``refused``, and the rest goes on; without it the first such thing stops
    with its reason.
    """
    takes = Takes.of(run, weights)
    listed = sources_of(run, specs, place, series_uid=series_uid, dicom=dicom)
    yield from images_of(run, takes, listed, allow_seen=allow_seen, refused=refused)


def sources_of(
    run: Diagnoser,
    specs: Sequence[str],
    place: Place | None = None,
    *,
    series_uid: str | None = None,
    dicom: Path | None = None,
) -> list[tuple[int, Source]]:
    """List what is meant, numbered from 1, without reading any image."""
    takes = Takes.of(run)
    alone = len(specs) == 1
    found = [source for spec in specs for source in sources(spec, takes, place, series_uid, dicom, alone)]
    return list(enumerate(_named_apart(found), 1))


def _named_apart(found: Sequence[Source]) -> Iterator[Source]:
    """Number what has the same name: cases of two datasets, or one that was given twice."""
    times = Counter[str]()
    for source in found:
        times[source.name] += 1
        n = times[source.name]
        yield source if n == 1 else replace(source, name=f"{source.name} ({n})")  # type: ignore[type-var]


def images_of(
    run: Diagnoser,
    takes: Takes,
    listed: Sequence[tuple[int, Source]],
    *,
    allow_seen: bool = False,
    refused: Callable[[Refused], None] | None = None,
) -> Iterator[GivenImage]:
    """Read what `sources_of` listed, or a part of it."""
    whom, about = Whom(run, allow_seen), trace_of(run)
    for number, source in listed:
        try:
            image = _image(whom, takes, number, source, about)
        except InputError as error:
            if refused is None:
                raise
            hidden = source.anonymous(error.found)
            refused(Refused(source.name, number, source.shown, str(error), hidden))
            continue
        yield image


def trace_of(run: Diagnoser) -> dict[str, Any]:
    """Say which tool and which run answer; the digest of each model's weights tells it from any other."""
    plan = next(iter(run.plans.values()))
    return {
        "tool": f"radreason {__version__}",
        "run": {
            "method": plan["settings"]["model"]["method"],
            "preset": plan["settings"]["preset"],
            "data": {key: plan["data"][key] for key in ("kind", "source", "fingerprint")},
        },
        "models": {_called(name): _digest(folder / BEST) for name, folder in run.folders.items()},
    }


def _image(whom: Whom, takes: Takes, number: int, source: Source, about: dict[str, Any]) -> GivenImage:
    asked = source.asked(whom)
    found = source.read(takes)
    figures, notes = fits.check_seen(source.shown, found.patch, takes)
    low, high = takes.window
    trace = {
        **about,
        "models": {_called(name): about["models"].get(_called(name)) for name in asked.models},
        "asked": asked.how,
        "seen": asked.seen,
        "image": dict(found.image) | ({"figures": figures} if figures else {}),
        "transforms": [
            *map(dict, found.steps),
            {"step": "cut to the middle", "from": list(found.patch.shape), "to": list(takes.sees)},
            {"step": "window to [-1, 1]", "from": low, "to": high},
        ],
        "patch_sha256": hashlib.sha256(found.patch.astype("<i2").tobytes()).hexdigest(),
        "notes": [*found.notes, *notes, *asked.notes],
    }
    return GivenImage(
        source.name,
        found.patch,
        found.spacing_mm,
        found.affine,
        asked.models,
        trace,
        found.case,
        found.mask,
        number,
        source.shown,
    )


def _called(name: str) -> str:
    """Name a model of a cross-validation as it is, and the only one of a run by a word."""
    return name or "model"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
