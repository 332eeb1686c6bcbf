"""The folder of a learned network: which file holds what; read and write, nothing else.

``network.json`` holds everything that was learned and where it came from, for people and programs
to read. Pictures beside it are made from it and can be made again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from radreason import __version__
from radreason.errors import InputError
from radreason.input_files import make_folder, read_text, write_text

NETWORK = "network.json"
DRAWING = "network.svg"
PICTURE = "network.png"

FORMAT = "radreason network"
VERSION = 1
"""Raised by one when a change would mislead a program that reads the file as it was."""

MAX_BYTES = 256 << 20

_HEADER = ("format", "version", "written_by")


def write_network(folder: Path | str, document: Mapping[str, Any]) -> Path:
    """Write what `BayesNet.to_dict` gives, and what else is known of the network; return the file.

    The folder is made if need be. A network that is there already is replaced in one step.
    """
    folder = make_folder(Path(folder))
    header = dict(zip(_HEADER, (FORMAT, VERSION, f"radreason {__version__}"), strict=True))
    try:
        text = readable({**header, **document}) + "\n"
    except ValueError:  # an infinity or a NaN, which JSON does not know
        raise InputError(
            found="a network with numbers that are not finite", expected="probabilities between 0 and 1"
        ) from None
    write_text(folder / NETWORK, text)
    return folder / NETWORK


def read_network(folder: Path | str) -> dict[str, Any]:
    """Read what `write_network` wrote, from its folder or the file itself."""
    path = Path(folder)
    if path.name != NETWORK:
        path /= NETWORK
    expected = "a network that radreason wrote"
    try:
        document = json.loads(
            read_text(path, MAX_BYTES, expected),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_once_each,
        )
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(found=f"{path}: no JSON: {error}", expected=expected) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(found=f"{path}: not a file of the format {FORMAT!r}", expected=expected)
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        newer = isinstance(version, int) and version > VERSION
        raise InputError(
            found=f"{path}: version {version!r:.20} of the format",
            expected=f"version {VERSION}",
            hint="install a newer radreason" if newer else "learn the network again",
        )
    return {key: value for key, value in document.items() if key not in _HEADER}


def readable(value: Any, indent: str = "") -> str:
    """Write JSON with one line for each list or object that holds nothing but plain values.

    >>> print(readable({"names": ["a", "b"], "table": [[0.5, 0.5], [1, 0]]}))
    {
      "names": ["a", "b"],
      "table": [
        [0.5, 0.5],
        [1, 0]
      ]
    }
    """
    inner = indent + "  "
    match value:
        case dict() if any(isinstance(item, dict | list | tuple) for item in value.values()):
            items = [f"{inner}{readable(str(key))}: {readable(item, inner)}" for key, item in value.items()]
            return "{\n" + ",\n".join(items) + f"\n{indent}}}"
        case list() | tuple() if any(isinstance(item, dict | list | tuple) for item in value):
            return "[\n" + ",\n".join(inner + readable(item, inner) for item in value) + f"\n{indent}]"
        case _:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} ... is too large a number")
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("an object names a key twice")
    return document
