"""The same jobs on Ray, on this machine or on many; the only file that knows Ray.

Ray decides where a job runs, shares CPUs and GPUs out, and starts a job again when its worker dies or it
ends with an error. All machines must see the dataset and the run folder under the same names: what a job
does is in its folder, here as elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from radreason.errors import InputError
from radreason.train.jobs import TRIES, Job, News, Runner, attempt, reason

LOOK_EVERY = 1.0
"""Seconds between two looks at the folders of jobs that have not begun."""

OBJECTS = 80 << 20
"""Bytes for objects that travel: orders and a few words, so the least that Ray takes."""


def on_ray(address: str | None = None, cpus: float = 1.0, gpus: float = 0.0) -> Runner:
    """Run jobs on the cluster at an address, or on this machine; each takes so many CPUs and GPUs."""
    if not (cpus > 0 and gpus >= 0):
        raise InputError(
            found=f"{cpus:g} CPUs and {gpus:g} GPUs for each job",
            expected="more than no CPU, and no less than no GPU; 0.5 lets two jobs share one",
        )
    ray = _ray()

    def run(jobs: Sequence[Job]) -> Iterator[News]:
        if not jobs:
            return
        with _connected(ray, address):
            _refuse_impossible(ray, cpus, gpus)
            limits = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": TRIES - 1, "retry_exceptions": True}
            task = ray.remote(**limits)(attempt)
            before = {job.name: _stamp(job) for job in jobs}
            names = {task.options(name=job.name).remote(_absolute(job)): job.name for job in jobs}
            try:
                yield from _news(ray, {job.name: job for job in jobs}, names, before)
            finally:
                for ref in names:
                    ray.cancel(ref, force=True)

    return run


def _news(
    ray: ModuleType, jobs: dict[str, Job], names: dict[Any, str], before: dict[str, int]
) -> Iterator[News]:
    while names:
        ready, _ = ray.wait(list(names), num_returns=1, timeout=LOOK_EVERY)
        for name in [
            name for name in names.values() if name in before and _stamp(jobs[name]) != before[name]
        ]:
            del before[name]
            yield News(name, "running")
        for ref in ready:
            name = names.pop(ref)
            try:
                notes = ray.get(ref)
            except ray.exceptions.RayError as error:
                yield News(name, "failed", reason(getattr(error, "cause", None) or error))
            else:
                yield News(name, "done", notes=notes)


def _stamp(job: Job) -> int:
    """Give the time at which something in a job's folder changed last."""
    try:
        return job.order.folder.stat().st_mtime_ns
    except OSError:
        return 0


def _absolute(job: Job) -> Job:
    """Name folders as they are named from everywhere."""
    order = job.order
    return replace(
        job, order=replace(order, folder=order.folder.resolve(), dataset=Path(order.dataset).resolve())
    )


def _ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before it is imported: it tells nobody
    try:
        import ray
    except ImportError:
        raise InputError(
            found="--ray, and no Ray on this machine",
            expected="the package ray, which is not on every platform and not for every Python",
            hint="pip install 'radreason[cluster]', or --jobs for several processes without it",
        ) from None
    module: ModuleType = ray
    return module


@contextmanager
def _connected(ray: ModuleType, address: str | None) -> Iterator[None]:
    here = {
        "_node_ip_address": "127.0.0.1",  # nobody else is let in, and no look-up of names can fail
        "include_dashboard": False,
        "object_store_memory": OBJECTS,
        "_system_config": {"worker_niceness": 0},  # jobs weigh what they would weigh without Ray
    }
    quiet = {"configure_logging": False, "log_to_driver": False}
    try:
        ray.init(address=address or "local", **quiet, **({} if address else here))
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise InputError(
            found=f"Ray at {address or 'this machine'}: {reason(error)[:300]}",
            expected="a Ray cluster that answers",
            hint="ray start --head on one machine, or --ray without an address",
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _refuse_impossible(ray: ModuleType, cpus: float, gpus: float) -> None:
    """Refuse what no machine has: Ray would wait for it for ever."""
    most = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in most):
        there = "; ".join(f"{node.get('CPU', 0):g} CPUs, {node.get('GPU', 0):g} GPUs" for node in most)
        raise InputError(
            found=f"{cpus:g} CPUs and {gpus:g} GPUs for each job",
            expected=f"no more than one machine has: {there or 'none is there'}",
        )
