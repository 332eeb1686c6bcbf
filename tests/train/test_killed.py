"""Trainings that are killed at chosen points and gone on with, against one that never was.

The kill is a real one, of a process that this file is run as: it forks a child per point, so that the
packages are imported once.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from radreason.run_folder import BEST, LAST, LOG, PLAN, PREDICTIONS, SUMMARY, TENSORBOARD, TIMES

CHANGES = (
    "data.attributes=figure",
    "preset=recommended",
    "refit.every=1",
    "refit.warm_up=0",
    "train.epochs=4",
    "train.accumulate=2",
    "train.rate=0.01",
)

POINTS = {
    "while the plan is written": ("draft", PLAN, 1),
    "at the first batch": ("batch", 0, 1),
    "within an epoch": ("batch", 2, 2),
    "while the first best weights are written": ("draft", BEST, 1),
    "within a refit": ("refit", None, 3),
    "within a line of the log": ("line", LOG, 3),
    "between the log and the state": ("draft", LAST, 2),
    "when the state was just written": ("moved", LAST, 2),
    "between two epochs": ("line", TIMES, 3),
    "while the predictions are written": ("draft", PREDICTIONS, 1),
    "while the summary is written": ("draft", SUMMARY, 1),
}
"""What is happening, to which file (or in which epoch), and for which time (or at which batch)."""

TWICE = ("within an epoch", "between the log and the state")
"""A training is killed at the first of these, gone on with, and killed again at the second."""


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(kind, where, when):
    """Replace what happens at a point by death."""
    from radreason.train import loop

    counts = [0]

    def is_it(path):
        counts[0] += where is None or Path(path).name == where
        return (where is None or Path(path).name == where) and counts[0] == when

    replace, append, learn = os.replace, loop.Loop._append, loop.learn_anew
    if kind in ("draft", "moved"):

        def dying_replace(draft, path):
            is_time = is_it(path)
            if is_time and kind == "draft":
                with open(draft, "r+b") as stream:  # as if the disk had only half of it yet
                    stream.truncate(os.path.getsize(draft) // 2)
                die()
            replace(draft, path)
            if is_time:
                die()

        os.replace = dying_replace
    elif kind == "line":

        def dying_append(self, name, line):
            if is_it(name):
                append(self, name, line[: len(line) // 2])
                die()
            append(self, name, line)

        loop.Loop._append = dying_append
    elif kind == "refit":

        def dying_refit(*arguments):
            changes = learn(*arguments)
            if is_it(""):
                die()
            return changes

        loop.learn_anew = dying_refit


def watcher(kind, where, when):
    from radreason.train.watch import Watcher

    class Dying(Watcher):
        def batch(self, epoch, done, of, loss):
            if kind == "batch" and (epoch, done) == (where, when):
                die()

    return Dying()


def in_a_child(work):
    """Do something in a copy of this process; tell how that ended."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def act(settings, dataset, folder):
    """Be the process that trains once undisturbed, and once for every point."""
    import torch

    from radreason import config
    from radreason.train.training import Order, train

    torch.set_num_threads(1)
    settings = config.resolve(json.loads(Path(settings).read_text()))

    def training(name, *point):
        order = Order(settings, Path(dataset), Path(folder) / name, fold=1, resume=True, accelerator="cpu")

        def work():
            if point:
                arm(*point)
            train(order, watcher(*(point or (None, None, None))))

        return in_a_child(work)

    ends = {"undisturbed": [training("undisturbed")]}
    for name, point in POINTS.items():
        ends[name] = [training(name, *point), training(name)]
    ends["twice"] = [*(training("twice", *POINTS[name]) for name in TWICE), training("twice")]
    print(json.dumps(ends))


@pytest.fixture(scope="module")
def runs(dataset, experiment, tmp_path_factory):
    """Where the trainings are, and how each start of them ended."""
    folder = tmp_path_factory.mktemp("killed")
    settings = folder / "settings.json"
    settings.write_text(experiment(*CHANGES).model_dump_json())
    code = "import runpy, sys; runpy.run_path(sys.argv[1])['act'](*sys.argv[2:])"
    told = subprocess.run(
        [sys.executable, "-c", code, __file__, settings, dataset.folder, folder],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert told.returncode == 0, told.stderr
    return folder, json.loads(told.stdout.splitlines()[-1]), told.stderr


def contents(folder):
    """Give the bytes of all that a training leaves, but for the time it took."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != TIMES and TENSORBOARD not in path.parts
    }


def log(folder):
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]


@pytest.mark.slow
def test_the_undisturbed_training_has_something_to_lose(runs):
    folder, ends, told = runs
    assert ends["undisturbed"] == [0], told
    lines = log(folder / "undisturbed")
    assert [line["epoch"] for line in lines] == [0, 1, 2, 3]
    assert sum(line["refit"] is not None for line in lines) == 3
    totals = [line["losses"]["total"] for line in lines]
    assert len(set(totals)) == 4
    assert {PLAN, LOG, LAST, BEST, PREDICTIONS, SUMMARY} <= set(contents(folder / "undisturbed"))


@pytest.mark.slow
@pytest.mark.parametrize("point", [*POINTS, "twice"])
def test_a_training_that_was_killed_ends_in_the_same_bytes(runs, point):
    folder, ends, told = runs
    *killed, last = ends[point]
    assert killed == [-signal.SIGKILL] * len(killed), told
    assert last == 0, told
    wanted, found = contents(folder / "undisturbed"), contents(folder / point)
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if found[name] != wanted[name]] == []


@pytest.mark.slow
def test_points_are_where_they_should_be(runs):
    """Epochs that were done twice stand twice among the times, and no other does."""
    folder = runs[0]
    again = {}
    for point in POINTS:
        epochs = [json.loads(line)["epoch"] for line in (folder / point / TIMES).read_text().splitlines()]
        again[point] = len(epochs) - 4
        assert sorted(set(epochs)) == [0, 1, 2, 3]
    assert again == dict.fromkeys(POINTS, 0) | {"between the log and the state": 1}
