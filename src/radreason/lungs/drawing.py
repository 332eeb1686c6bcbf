"""How a lung may be drawn, and by how much its box is widened: what training and use must agree on."""

CLEAR, BEHIND_HEART = "clear", "behind heart"
DRAWINGS = (CLEAR, BEHIND_HEART)
"""The lung as far as it is dark, or with what lies behind the heart: the number that the network is told."""

SIDE = 96
"""Rows and columns of what the network sees: in the same time it learns more of it than of 128."""

PAD = 0.03
"""By how much of its height and width a box is widened on every side before a lung is cut."""
