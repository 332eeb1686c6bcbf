"""Answers on their way to a file: each is on disk when the next is asked for, and a second call goes on.

    FILE.jsonl      a line for each answer
    FILE.parquet    a row for each; while they come, they are lines of FILE.parquet.unfinished

Every line names the run by a digest, so that answers of two runs cannot get into one file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from radreason.data.dataset import lines_of
from radreason.errors import InputError
from radreason.given.answers import CALIBRATED, Answer
from radreason.input_files import read_text

JSONL, PARQUET = (".jsonl", ".ndjson"), ".parquet"
UNFINISHED = ".unfinished"

MAX_BYTES = 4 << 30

_WHAT = "answers that `radreason diagnose` wrote"


class AnswersFile:
    """A file of answers, open for more; make it with `opened`."""

    def __init__(self, path: Path, run: str, stream: IO[bytes], done: frozenset[str]) -> None:
        self.path, self.run, self.done = path, run, done
        self._stream = stream
        self.n_written = 0

    def add(self, answer: Answer) -> None:
        """Write an answer; it is there whatever becomes of this process."""
        line = json.dumps({"run": self.run, **answer.to_dict()}, ensure_ascii=False, allow_nan=False)
        self._stream.write(line.encode() + b"\n")
        self._stream.flush()
        self.n_written += 1


@contextmanager
def opened(path: Path, trace: dict[str, Any]) -> Iterator[AnswersFile]:
    """Open a file to write answers to, and finish it if all went well; ``trace`` says which run answers."""
    name = path.name.lower()
    if not name.endswith((*JSONL, PARQUET)):
        raise InputError(found=f"--out {path}", expected="a name that ends in .jsonl or .parquet")
    is_table = name.endswith(PARQUET)
    if is_table and path.exists():
        raise InputError(
            found=f"{path} is there already", expected="a new file", hint="another name after --out"
        )
    lines = path.with_name(path.name + UNFINISHED) if is_table else path
    run = run_mark(trace)
    try:
        lines.parent.mkdir(parents=True, exist_ok=True)
        stream = lines.open("ab+")
    except OSError as error:
        raise InputError(
            found=f"{lines}: cannot be written: {error.strerror or error}",
            expected="a place where files may be written",
        ) from None
    with stream:
        done = _begun(lines, stream, run)
        yield AnswersFile(path, run, stream, done)
    if is_table:
        _as_table(lines, path)


def run_mark(trace: dict[str, Any]) -> str:
    """Give the mark of a run in a file of answers: another for other weights or another version."""
    said = json.dumps([trace["tool"], trace["models"]], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _begun(path: Path, stream: IO[bytes], run: str) -> frozenset[str]:
    """Read which cases are there; a last line that was cut off in the middle goes."""
    stream.seek(0)
    content = stream.read()
    whole = content.rfind(b"\n") + 1
    names = set()
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            one = json.loads(line)
            name, its = one["case"], one["run"]
        except (ValueError, KeyError, TypeError):
            raise InputError(found=f"{path}: line {number}: no answer", expected=_WHAT) from None
        if its != run:
            raise InputError(
                found=f"{path}: line {number}: an answer of another run, or of another version",
                expected="answers of this run, to go on with",
                hint="another name after --out",
            )
        names.add(name)
    if whole < len(content):
        stream.truncate(whole)
    stream.seek(0, os.SEEK_END)
    return frozenset(names)


def _as_table(lines: Path, path: Path) -> None:
    """Turn lines into rows: a column for each stage and state, as in predictions.csv."""
    import polars

    rows = [_row(json.loads(line)) for line in lines_of(read_text(lines, MAX_BYTES, _WHAT))]
    draft = path.with_name(f".{path.name}.part")
    if rows:
        polars.DataFrame(rows, infer_schema_length=None).write_parquet(draft)
        draft.replace(path)
    lines.unlink()


def _row(answer: dict[str, Any]) -> dict[str, Any]:
    disease = answer["disease"]
    truth = answer.get("truth", {})
    row: dict[str, Any] = {key: answer[key] for key in ("case", "number", "run")}
    row |= {key: answer["trace"][key] for key in ("asked", "seen")}
    for name in (*answer["attributes"], disease["name"]):
        label = truth.get(name)
        row[name] = None if label is None else max(label, key=label.__getitem__)
    for stage, beliefs in answer["stages"].items():
        row |= {f"{stage} {n}={state}": p for n, belief in beliefs.items() for state, p in belief.items()}
    if CALIBRATED in disease:
        row |= {f"{CALIBRATED} {disease['name']}={state}": p for state, p in disease[CALIBRATED].items()}
    return row | {"trace": json.dumps(answer["trace"], ensure_ascii=False)}
