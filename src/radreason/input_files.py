"""Opening files that other people made, and writing files that nobody will find half written.

A file is read whole and with a limit, before anything looks inside: what is no regular file, is
too large (also after unpacking), or is not text in UTF-8 stops here, whoever asked for it.
"""

from __future__ import annotations

import gzip
import json
import os
import stat
import tempfile
import zlib
from pathlib import Path
from typing import Any

from radreason.errors import InputError


def read_bytes(path: Path | str, limit: int, what: str) -> bytes:
    """Read a regular file of at most ``limit`` bytes; one whose name ends in .gz is unpacked.

    ``what`` is what the file should have been, for the message.
    """
    path = Path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a folder" if path.is_dir() else "not a regular file"
            raise InputError(found=f"{path}: {kind}", expected=what)
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            content = stream.read(limit + 1)
    except FileNotFoundError:
        raise InputError(found=f"{path}: no such file", expected=what) from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(found=f"{path}: cannot be read: {reason}", expected=what) from None
    if len(content) > limit:
        raise InputError(
            found=f"{path}: more than {limit >> 20} MiB", expected=f"{what} of at most {limit >> 20} MiB"
        )
    return content


def read_text(path: Path | str, limit: int, what: str) -> str:
    """Read a file of text in UTF-8, with or without a byte-order mark."""
    content = read_bytes(path, limit, what)
    _refuse_other_encodings(content, path, what)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            found=f"{path}: line {line}: byte 0x{content[error.start]:02x} is not UTF-8",
            expected=f"{what} in UTF-8",
            hint="save it again with the encoding UTF-8",
        ) from None


def _refuse_other_encodings(content: bytes, path: Path | str, what: str) -> None:
    """Refuse what is certainly not text in UTF-8: UTF-16 and UTF-32, and anything with zero bytes."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            found=f"{path}: text in UTF-16 or UTF-32",
            expected=f"{what} in UTF-8",
            hint="save it again with the encoding UTF-8",
        )
    zero = content.find(b"\0")
    if zero >= 0:
        raise InputError(found=f"{path}: not text: byte {zero} is zero", expected=f"{what} in UTF-8")


def make_folder(path: Path) -> Path:
    """Make a folder to write to, with those above it, where it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            found=f"{path}: cannot be made: {reason}",
            expected="a folder to write to",
            hint="another path after --out",
        ) from None
    return path


def write_text(path: Path | str, text: str) -> None:
    """Write a file of text in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write a file in one step: a reader sees the old file or the new one, never a part."""
    path = Path(path)
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
        try:
            with open(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(draft, _usual_mode(path))
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            found=f"{path}: cannot be written: {reason}", expected="a place where files may be written"
        ) from None


def is_draft(path: Path) -> bool:
    """Whether a file looks like what `write_bytes` leaves behind where it is killed in the middle."""
    return path.name.startswith(".") and path.suffix == ".part"


def _usual_mode(path: Path) -> int:
    """Give the permissions that the file has, or that a new file gets (a draft is private at first)."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def read_object(path: Path, limit: int, what: str) -> dict[str, Any]:
    """Read a file that is one object of JSON."""
    text = read_text(path, limit, what)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(found=f"{path}: no JSON: {error}", expected=what) from None
    if not isinstance(document, dict):
        raise InputError(found=f"{path}: not an object of JSON", expected=what)
    return document
