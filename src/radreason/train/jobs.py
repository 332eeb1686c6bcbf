"""Independent trainings, one after the other or in several processes: each in its folder, tried twice.

A job that ends with an error, or whose process is killed, goes on once from its last checkpoint; if it
ends so again it has failed, and the others go on. What a job does is in its folder and nowhere else, so
that whoever shows progress reads folders. Every job has the same number of threads wherever it runs:
the order of sums, and with it the last bits of what comes out, follow from that number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Literal

import torch
from threadpoolctl import threadpool_limits

from radreason.data.workers import follow_parent
from radreason.errors import InputError
from radreason.train.training import Order, train
from radreason.train.watch import Watcher

TRIES = 2
"""How often a job is started before it has failed."""

PATIENCE = 30.0
"""Seconds in which a process that trained in a folder has ended, once whoever started it has."""

State = Literal["waiting", "running", "retried", "done", "failed"]


@dataclass(frozen=True)
class Job:
    """One training; its name is its folder within the whole."""

    name: str
    order: Order
    threads: int = 1


@dataclass(frozen=True)
class News:
    """What became of a job: of one that was ``retried`` or has ``failed``, why."""

    job: str
    state: State
    why: str = ""
    notes: tuple[str, ...] = ()


Runner = Callable[[Sequence[Job]], Iterator[News]]
"""Runs jobs and gives news of them as it comes; whoever stops asking stops the jobs."""


class Notes(Watcher):
    """Keeps what a person should know of a training."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        """Keep a note."""
        self.texts.append(text)


def attempt(job: Job) -> tuple[str, ...]:
    """Train, from the last checkpoint if there is one; give the notes of it."""
    notes = Notes()
    with threads(job.threads):
        train(replace(job.order, patience=PATIENCE), notes)
    return tuple(notes.texts)


def reason(error: BaseException) -> str:
    """Say an error in one line."""
    text = " ".join(str(error).split()) or "no more is known"
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"


def in_process(jobs: Sequence[Job]) -> Iterator[News]:
    """Run jobs here, one after the other."""
    for job in jobs:
        yield News(job.name, "running")
        for number in range(1, TRIES + 1):
            try:
                notes = attempt(job)
            except Exception as error:
                yield News(job.name, "retried" if number < TRIES else "failed", reason(error))
            else:
                yield News(job.name, "done", notes=notes)
                break


def in_processes(workers: int) -> Runner:
    """Run so many jobs at a time, each in a process of its own, which ends when this one does."""
    if workers < 1:
        raise InputError(found=f"{workers} jobs at a time", expected="one or more")

    def run(jobs: Sequence[Job]) -> Iterator[News]:
        waiting, running = [(job, 1) for job in jobs], list[_Started]()
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    job, number = waiting.pop(0)
                    running.append(_Started(job, number))
                    if number == 1:
                        yield News(job.name, "running")
                wait([started.process.sentinel for started in running])
                for started in [started for started in running if not started.process.is_alive()]:
                    running.remove(started)
                    news = started.news()
                    if news.state == "retried":
                        waiting.insert(0, (started.job, started.number + 1))
                    yield news
        finally:
            for started in running:
                started.process.kill()  # it can go on from its last checkpoint
                started.process.join()

    return run


class _Started:
    """A job in its process."""

    def __init__(self, job: Job, number: int) -> None:
        self.job, self.number = job, number
        context = get_context("spawn")
        self._answer, answer = context.Pipe(duplex=False)
        self.process: BaseProcess = context.Process(
            target=_work, args=(job, answer), name=job.name, daemon=True
        )
        self.process.start()
        answer.close()

    def news(self) -> News:
        """Say what became of it, once its process has ended."""
        self.process.join()
        try:
            why, notes = self._answer.recv()
        except (EOFError, OSError):
            code = self.process.exitcode or 0
            ended = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            why, notes = f"its process was ended {ended}, most often for want of memory", ()
        self._answer.close()
        state: State = "done" if not why else "retried" if self.number < TRIES else "failed"
        return News(self.job.name, state, why, notes)


def _work(job: Job, answer: Connection) -> None:
    follow_parent()
    try:
        notes = attempt(job)
    except Exception as error:
        answer.send((reason(error), ()))
    else:
        answer.send(("", notes))


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Compute with so many threads, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(number):
            yield
    finally:
        torch.set_num_threads(before)
