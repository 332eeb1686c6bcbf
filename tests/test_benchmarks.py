"""The benchmarks can be started: nothing else runs them between one measurement and the next."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


def test_there_are_benchmarks():
    assert len(SCRIPTS) >= 8


@pytest.mark.slow
def test_every_benchmark_finds_what_it_imports():
    """In one process: half of the time is torch, which they share."""
    code = "import runpy, sys\nfor path in sys.argv[1:]:\n    runpy.run_path(path, run_name='looked_at')"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, SCRIPTS)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
