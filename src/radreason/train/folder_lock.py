"""One at a time in a folder: two trainings that write the same files would leave neither's."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from radreason.errors import InputError


@contextmanager
def locked(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Hold a folder until this process ends or lets it go; one that somebody else holds is refused.

    ``patience`` is for how many seconds somebody else is waited for.
    Where the system has no such locks (Windows, some shared disks) nothing is held and nothing refused.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    until = time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    if time.monotonic() < until:
                        time.sleep(0.1)
                        continue
                    raise InputError(
                        found=f"{folder}: another process is at work in it",
                        expected="one at a time",
                        hint="wait for it, or stop it: what it has done stays done",
                    ) from None
            break
        yield
    finally:
        os.close(handle)
