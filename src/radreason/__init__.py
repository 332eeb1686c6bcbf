"""Diagnosis from medical images that a doctor can check."""

from radreason.errors import InputError
from radreason.schema import Schema, Variable

__version__ = "0.1.0.dev0"
__all__ = ["InputError", "Schema", "Variable", "__version__"]
