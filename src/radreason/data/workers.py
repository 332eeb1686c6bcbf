"""The same task for many items, here or in other processes, which end when this one does."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from radreason.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_workers(task: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    """Give the results as they come, in any order; the task and the items must be picklable.

    Workers import the calling program anew (spawn), so a script keeps its work under
    ``if __name__ == "__main__"``.
    """
    if workers < 1:
        raise InputError(found=f"{workers} workers", expected="one or more")
    if min(workers, len(items)) <= 1:
        yield from map(task, items)
        return
    pool = ProcessPoolExecutor(
        min(workers, len(items)), mp_context=get_context("spawn"), initializer=_begin, initargs=(task,)
    )
    try:
        for future in as_completed([pool.submit(_work, item) for item in items]):
            yield future.result()
    except BrokenProcessPool:
        raise InputError(
            found="a worker process was ended from outside, most often for want of memory",
            expected="memory for one scan per worker",
            hint="fewer workers, for instance --workers 1; what is done stays done",
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_task: Callable[[Any], Any] | None = None
"""What this worker process does; sent once, not with every item."""


def _begin(task: Callable[[Any], Any]) -> None:
    global _task
    _task = task
    follow_parent()


def follow_parent() -> None:
    """Leave interrupts to the process that started this one, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us is told, and tells us
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent leaves its workers waiting for ever: they watch for it."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(item: Any) -> Any:
    assert _task is not None
    return _task(item)
