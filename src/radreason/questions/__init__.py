"""Questions to a run about one image: what matters, what would change it, what to ask next.

The functions of `radreason.explain` are asked of every model that may be asked of the image, and what they
say is averaged: beliefs as they are, contributions in log-odds. Answers are plain data, as JSON has it.

    before     the image before the models, and what they know of their training cases
    sets       states that hold the truth with a stated coverage
    matters    importance, contributions, reasons, consistency
    readers    what a reader confirms, and what to ask him next
    changes    what if, and the smallest change that turns the diagnosis
"""

from radreason.questions.before import Before, write_background
from radreason.questions.changes import supposed, turning
from radreason.questions.matters import hanging_together, reasons, what_matters
from radreason.questions.readers import confirmed, to_ask_next
from radreason.questions.sets import confidence_sets

__all__ = [
    "Before",
    "confidence_sets",
    "confirmed",
    "hanging_together",
    "reasons",
    "supposed",
    "to_ask_next",
    "turning",
    "what_matters",
    "write_background",
]
