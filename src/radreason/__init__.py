"""Diagnosis from medical images that a doctor can check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from radreason.errors import InputError
from radreason.schema import Schema, Variable

if TYPE_CHECKING:
    from radreason.diagnoser import Diagnoser, load
    from radreason.nn.hybrid import Diagnosis

__version__ = "0.1.0.dev0"
__all__ = ["Diagnoser", "Diagnosis", "InputError", "Schema", "Variable", "__version__", "load"]

_NEED_TORCH = {
    "Diagnoser": "radreason.diagnoser",
    "load": "radreason.diagnoser",
    "Diagnosis": "radreason.nn.hybrid",
}


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is asked for: the command line must answer without."""
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_NEED_TORCH[name]), name)
