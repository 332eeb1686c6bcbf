"""The same jobs on Ray: a worker that is killed in training is replaced, and the bytes are the same."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from radreason.errors import InputError
from radreason.run_folder import LAST, TIMES
from radreason.train.cluster import on_ray
from radreason.train.crossval import Crossval, finish, prepared, run
from radreason.train.jobs import in_process

pytest.importorskip("ray")
CHANGES = ("data.attributes=figure", "train.epochs=12", "train.seed=7")
KILLED = "repeat-0/fold-3"
COMMAND = [sys.executable, "-c", "import sys; from radreason.cli import main; sys.exit(main())", "crossval"]


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != TIMES and "tensorboard" not in path.parts
    }


def at_work_in(folder):
    """Find the processes that hold a folder, by what the system says they have open."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == str(folder):
                found.add(int(link.parts[2]))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="who works in a folder is read from /proc")
def test_a_worker_killed_in_training_is_replaced_and_the_run_is_complete_and_equal(
    dataset, experiment, small, tmp_path
):
    folder = tmp_path / "ray"
    command = [*COMMAND, str(small), "--data", str(dataset.folder), "--out", str(folder), "--repeats", "0"]
    command += ["--folds", "1", "3", "--ray", "--cpus", "0.5", "--json"]
    command += [word for change in CHANGES for word in ("--set", change)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            while not (folder / KILLED / LAST).is_file():
                assert process.poll() is None
                time.sleep(0.01)
            (worker,) = at_work_in(folder / KILLED)
            assert worker != process.pid
            os.kill(worker, signal.SIGKILL)
            assert not (folder / KILLED / "summary.json").is_file()
            answer = json.loads(process.communicate()[0])
        finally:
            process.kill()
    assert process.returncode == 0
    assert answer["models"] == ["repeat-0/fold-1", KILLED]
    assert answer["failed"] == {}
    here = tmp_path / "here"
    order = Crossval(experiment(*CHANGES), dataset.folder, here, (0,), (1, 3), accelerator="cpu")
    with prepared(order) as jobs:
        assert [news.state for news in run(jobs, in_process)].count("done") == 2
        finish(here)
    assert contents(folder) == contents(here)


def test_what_no_job_can_take_is_refused():
    for cpus, gpus in ((0.0, 0.0), (-1.0, 0.0), (1.0, -0.5), (float("nan"), 0.0)):
        with pytest.raises(InputError, match="for each job"):
            on_ray(cpus=cpus, gpus=gpus)


def test_without_ray_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="no Ray on this machine"):
        on_ray()
