"""The command line as a script meets it: exit codes, streams, tracebacks, speed."""

import subprocess
import sys
from pathlib import Path

import pytest

from radreason import InputError, __version__
from radreason.cli import main, network

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "numpy", "scipy", "numba", "polars", "matplotlib", "pyagrum", "monai"}


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_command_line_imports_nothing_heavy():
    loaded = run_python("import sys, radreason.cli; print(*{name.split('.')[0] for name in sys.modules})")
    assert "cyclopts" in loaded.split()
    assert not HEAVY & set(loaded.split())


def test_help_answers_in_under_half_a_second():
    def seconds():
        """Of the processor: what else the machine is busy with is not our doing."""
        shown = run_python(
            "import time; from radreason.cli import main; main(['--help']); print(time.process_time())"
        )
        assert "network" in shown
        return float(shown.split()[-1])

    assert min(seconds() for _ in range(3)) < 0.5


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (
            ["network", "lern"],
            'Error: Unknown command "lern". Did you mean "learn"? '
            "Available commands: learn, show, query, export.\n  try: radreason network --help\n",
        ),
        (
            ["network", "learn", "--out", "x", "--scor", "bic"],
            "Error: Unknown option: --scor. Did you mean --score?\n  try: radreason network learn --help\n",
        ),
        (
            ["network", "learn", "--out", "x"],
            "Error: no table\n  expected: either a TABLE or --readings lidc\n"
            "  try: radreason network learn --readings lidc --out lidc\n",
        ),
    ],
)
def test_bad_usage_is_answered_on_stderr_with_code_2(tokens, message, capsys):
    assert main(tokens) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", message)


FAILURES = [
    (InputError("2 moons", "1 moon", "look again"), 2, "2 moons\n  expected: 1 moon\n  try: look again"),
    (KeyboardInterrupt(), 130, "interrupted"),
    (PermissionError(13, "Permission denied", "out"), 1, "[Errno 13] Permission denied: 'out'"),
    (MemoryError(), 1, "not enough memory for this"),
    (
        RuntimeError("boom\nbang"),
        1,
        "RuntimeError: boom bang\n  this is a bug: please report it, with what --debug shows",
    ),
]


@pytest.mark.parametrize(("error", "code", "message"), FAILURES, ids=[type(f[0]).__name__ for f in FAILURES])
def test_failures_have_their_code_and_no_traceback(error, code, message, monkeypatch, capsys):
    def fail(*_):
        raise error

    monkeypatch.setattr(network, "_check_folder", fail)
    tokens = ["network", "learn", "t.csv", "--out", "x"]
    assert main(tokens) == code
    assert capsys.readouterr().err == f"Error: {message}\n"
    assert main([*tokens, "--debug"]) == code
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("tokens", ["['network', 'learn', '--help']", "['--version']"])
def test_a_reader_that_stops_reading_is_no_noise(tokens):
    code = f"import sys; from radreason.cli import main; sys.exit(main({tokens}))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_the_reference_is_what_help_says():
    check = [sys.executable, str(ROOT / "docs/write_cli.py"), "--check"]
    assert subprocess.run(check, capture_output=True, text=True).returncode == 0


def test_no_name_steers_the_terminal(tmp_path, capsys):
    """Names of variables and states come from files, and so do the texts of errors."""
    names = "fe\x1b[2Jver", "co\u202eugh"
    rows = [f"{fever},{cough}" for fever in ("y\x9b31mes", "no") for cough in ("dr\x07y", "wet")] * 5
    (tmp_path / "evil.csv").write_text("\n".join([",".join(names), *rows]), encoding="utf-8")
    out = str(tmp_path / "evil")
    told = []
    for tokens in (
        ["learn", str(tmp_path / "evil.csv"), "--out", out, "--resamples", "0"],
        ["show", out],
        ["query", out],
        ["query", out, f"{names[0]}=y\x9b31mes"],
        ["query", out, "fe\x1b[2Jvr=no"],
        ["query", out, f"{names[0]}=maybe"],
    ):
        main(["network", *tokens])
        told += [*capsys.readouterr()]
    assert not {char for text in told for char in text if not char.isprintable()} - {"\n"}
    for spelt in (r"fe\x1b[2Jver", r"co\u202eugh", r"y\x9b31mes", r"dr\x07y"):
        assert sum(spelt in text for text in told) >= 2
