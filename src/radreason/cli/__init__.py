"""The command line. Importing it imports no torch, no numpy and no table reader: --help answers at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from traceback import print_exc

from cyclopts import App, CycloptsError, Parameter

from radreason import __version__
from radreason.cli import (
    compare,
    correct,
    crossval,
    data,
    diagnose,
    evaluate,
    lidc,
    lungs,
    network,
    prepare,
    report,
    train,
    trust,
    whatif,
)
from radreason.cli.terminal import spelled
from radreason.errors import InputError, WorkFailedError

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = App(
    name="radreason",
    help="Diagnosis that a doctor can check: learn what grades go with what disease, and ask.",
    help_epilogue="Exit codes: 0 done, 1 failed, 2 bad input or usage, 130 interrupted. "
    "--debug with any command shows the traceback of an error.",
    version=__version__,
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
app.command(network.app)
app.command(lidc.app)
app.command(prepare.app)
app.command(data.app)
app.command(train.train)
app.command(crossval.crossval)
app.command(compare.compare)
app.command(evaluate.evaluate)
app.command(lungs.train_lungs)
app.command(correct.correct)
app.command(report.report)
app.command(report.card)
app.command(report.pictures)
app.command(trust.trust)
app.command(whatif.whatif)
app.command(diagnose.diagnose)


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors go to stderr, without a traceback."""
    tokens = list(sys.argv[1:] if tokens is None else tokens)
    debug = "--debug" in tokens
    try:
        app(
            [token for token in tokens if token != "--debug"],
            exit_on_error=False,
            print_error=False,
            result_action="return_none",
        )
        sys.stdout.flush()
        return OK
    except CycloptsError as error:
        return _stop(BAD_INPUT, f"{error}\n  try: {_help_for(tokens)}", debug)
    except InputError as error:
        return _stop(BAD_INPUT, str(error), debug)
    except BrokenPipeError:  # whoever read our output has had enough: stop as quietly as rich does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return _stop(INTERRUPTED, "interrupted", debug)
    except (WorkFailedError, OSError) as error:
        return _stop(FAILED, str(error), debug)
    except MemoryError:
        return _stop(FAILED, "not enough memory for this", debug)
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return _stop(FAILED, f"{text}\n  this is a bug: please report it, with what --debug shows", debug)


def _stop(code: int, message: str, debug: bool) -> int:
    if debug:
        print_exc()
    print(f"Error: {spelled(message)}", file=sys.stderr)
    return code


def _help_for(tokens: Sequence[str]) -> str:
    words = []
    at = app
    for token in tokens:
        if token.startswith("-") or token not in at:
            break
        at = at[token]
        words.append(token)
    return " ".join(["radreason", *words, "--help"])
