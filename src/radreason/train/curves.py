"""Curves for TensorBoard, written where the loop runs.

tensorboardX writes in a thread of its own, which dies in silence on a full disk and lets the training
wait for it for ever; its writer of single events does not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2
from tensorboardX.summary import scalar

from radreason.errors import InputError


class Curves:
    """The file of events of one start of a training; what an older start knew of later epochs is void."""

    def __init__(self, folder: Path, first_epoch: int) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Its own file, also if the last start was in the same second.
            self._writer = EventsWriter(str(folder / "events"), f".from-{first_epoch:06}")
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            event = event_pb2.Event(wall_time=time.time(), step=first_epoch, session_log=start)
            self._writer.write_event(event)
        except OSError as error:
            raise self._unwritable(error) from None

    def add(self, epoch: int, values: Mapping[str, float]) -> None:
        """Write one point of each curve."""
        try:
            for name, value in values.items():
                event = event_pb2.Event(wall_time=time.time(), step=epoch, summary=scalar(name, value))
                self._writer.write_event(event)
            self._writer.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        """Write what is left."""
        try:
            self._writer.close()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(
            found=f"{self.folder}: cannot be written: {error.strerror or error}",
            expected="a disk with room for some kilobytes an epoch",
            hint="make room, then go on with --resume",
        )
