"""``radreason crossval``: one experiment on all folds and repeats of a dataset's splits."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from radreason.cli.terminal import console, print_json, stderr, waiting
from radreason.errors import InputError, WorkFailedError

if TYPE_CHECKING:
    from radreason.train.crossval import Crossval
    from radreason.train.jobs import Job, Runner

Several = Parameter(consume_multiple=True)


def crossval(
    experiment: Path,
    /,
    *,
    data: Path,
    out: Path,
    set: list[str] | None = None,
    folds: Annotated[list[int] | None, Several] = None,
    repeats: Annotated[list[int] | None, Several] = None,
    fraction: Annotated[list[float] | None, Several] = None,
    jobs: int = 1,
    threads: int = 1,
    ray: Annotated[list[str] | None, Parameter(consume_multiple=(0, 1))] = None,
    cpus: float | None = None,
    gpus: float = 0.0,
    accelerator: Literal["auto", "cpu", "cuda"] = "auto",
    json: bool = False,
) -> None:
    """Train and test EXPERIMENT on every fold of every repeat of DATASET: a model and a folder for each.

    Stopped at any moment and started again it goes on; what is done is not done again. A model that
    fails is tried once more from its last epoch, and the others go on. docs/crossval.md tells more.

    Parameters
    ----------
    experiment
        TOML file, such as experiments/lidc-compact.toml.
    data
        Folder that `prepare` wrote.
    out
        Folder to write: a run in each repeat-R/fold-F, and summary.json over all of them.
    set
        Change one setting, as in model.graph.layers=3 or model.graph=false. May be given again.
    folds
        Only these folds, counted from 0, as in --folds 0 1.
    repeats
        Only these repeats, counted from 0.
    fraction
        Train on parts of each training set, as in --fraction 1 0.75 0.5 0.25; tests stay the same.
    jobs
        Models that train at the same time, each in its own process.
    threads
        Threads of each model; the last digits of results depend on it, and not on --jobs.
    ray
        Share models out by Ray instead, on this machine, or on the cluster at an address: --ray ADDRESS.
    cpus
        CPUs of each model on Ray, as many as --threads unless given; 0.5 lets two share one.
    gpus
        GPUs of each model on Ray; 0.5 lets two share one, and 0 leaves GPUs unused.
    accelerator
        auto takes a GPU if there is one.
    json
        Print the summary as JSON, and nothing on the way.
    """
    if ray is not None and jobs != 1:
        raise InputError(
            found=f"--jobs {jobs} and --ray", expected="one of them: Ray counts --cpus and --gpus"
        )
    if ray is None and (cpus is not None or gpus):
        raise InputError(found="--cpus or --gpus without --ray", expected="them with --ray alone")
    from radreason import config

    settings = config.load(experiment, set or [])
    with waiting("getting ready", silent=json):
        from radreason.train import crossval as protocol
        from radreason.train.jobs import in_process, in_processes

    order = protocol.Crossval(
        settings,
        data,
        out,
        None if repeats is None else tuple(repeats),
        None if folds is None else tuple(folds),
        None if fraction is None else tuple(fraction),
        threads,
        accelerator,
    )
    runner: Runner
    if ray is not None:
        from radreason.train.cluster import on_ray

        runner = on_ray(ray[0] if ray else None, threads if cpus is None else cpus, gpus)
    else:
        runner = in_process if jobs == 1 else in_processes(jobs)
    with protocol.prepared(order) as planned:
        failed = _run(planned, runner, order, json)
        with waiting("adding up", silent=json):
            summary = protocol.finish(out)
    if json:
        print_json(summary | {"folder": str(out), "failed": failed})
    elif len(failed) < len(planned):
        from radreason.report.crossval_text import outcome

        console().print(outcome(summary, str(out)), soft_wrap=True)
    if failed:
        told = "\n".join(f"  {name}: {why}" for name, why in failed.items())
        raise WorkFailedError(
            f"{len(failed)} of {len(planned)} models failed, each twice:\n{told}\n"
            "  try: mend the cause and give the same command again; what is done stays done"
        )


def _run(planned: list[Job], runner: Runner, order: Crossval, json: bool) -> dict[str, str]:
    """Run all jobs and show where they stand; give those that failed, with the reason."""
    from rich.live import Live

    from radreason.report.crossval_text import Board
    from radreason.train.crossval import run

    screen, failed = stderr(), dict[str, str]()
    settings = order.settings
    title = f"{settings.preset}, {settings.model.method}; {len(planned)} models into {order.folder}"
    board = Board(title, order.folder, settings.train.epochs, {job.name: "waiting" for job in planned})
    show = screen.is_terminal and not json
    live = Live(get_renderable=board.table, console=screen, refresh_per_second=1) if show else nullcontext()
    with redirect_stdout(sys.stderr), live:  # Ray prints its remarks to stdout, where the answer belongs
        for news in run(planned, runner):
            board.states[news.job] = news.state
            if news.state == "failed":
                failed[news.job] = news.why
            if json:
                continue
            if news.state == "retried":
                screen.print(f"{news.job} failed and is tried again: {news.why}", soft_wrap=True)
            for note in news.notes:
                screen.print(f"Note: {news.job}: {note}", soft_wrap=True)
            if not show and news.state != "retried":
                screen.print(board.line(news.job), soft_wrap=True)
    return failed
