"""Who is told what a training does, while it does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Watcher:
    """Keeps silent; others show, count or stop. It travels to the process that leads a training."""

    def began(self, plan: Mapping[str, Any], epochs_done: int) -> None:
        """Hear what is going to be done, and how much of it was done before."""

    def batch(self, epoch: int, done: int, of: int, loss: float) -> None:
        """Hear of a step; epochs count from 0."""

    def epoch(self, record: Mapping[str, Any], seconds: float) -> None:
        """Hear the line that the log got for an epoch."""

    def note(self, text: str) -> None:
        """Hear what a person should know."""

    def ended(self) -> None:
        """Hear that no more comes, because all is done or an error ended it."""
