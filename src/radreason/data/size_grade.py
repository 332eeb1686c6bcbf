"""Size as an attribute: a diameter graded at the borders that guidelines for lung nodules use.

Radiologists go by size before anything else, and LIDC has no grade of it: the outlines have it.
"""

from __future__ import annotations

from bisect import bisect_right

from radreason.schema import Variable

BORDERS_MM = (6.0, 8.0, 15.0, 20.0)

SIZE = Variable(
    "size",
    ("<6", "6-8", "8-15", "15-20", ">20"),
    meanings=("under 6 mm", "6 to 8 mm", "8 to 15 mm", "15 to 20 mm", "over 20 mm"),
)


def size_state(diameter_mm: float) -> str:
    """Grade a diameter; a border belongs to the larger grade, but 20 mm is not over 20 mm.

    >>> [size_state(mm) for mm in (5.9, 6.0, 15.0, 20.0, 20.1)]
    ['<6', '6-8', '15-20', '15-20', '>20']
    """
    if diameter_mm == BORDERS_MM[-1]:
        return SIZE.states[-2]
    return SIZE.states[bisect_right(BORDERS_MM, diameter_mm)]
