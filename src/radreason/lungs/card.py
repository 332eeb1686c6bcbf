"""The card of weights for lungs: what they are, what they were trained on, how good they are, what for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from radreason.lungs.drawing import PAD, SIDE
from radreason.lungs.figures import PIXELS

_COLUMNS = (
    ("pictures", "pictures", "{:d}"),
    ("Dice", "dice", "{:.3f}"),
    ("Dice, 5th percentile", "dice_5th_percentile", "{:.3f}"),
    ("lost, tight boxes", "lost", "{:.2%}"),
    ("lost, as cut", "lost_padded", "{:.2%}"),
    ("edges, mean", "edge", "{:.1f} px"),
    ("worst edge, 95th percentile", "edge_95th_percentile", "{:.1f} px"),
    ("lungs missed", "missed", "{:d}"),
)


def card(found: Mapping[str, Any]) -> str:
    """Write the card in Markdown."""
    settings, counts = found["settings"], found["counted"]
    lines = [
        "# Weights that find lungs on chest radiographs",
        "",
        f"A U-Net of channels {', '.join(map(str, settings['channels']))} on {SIDE} x {SIDE} pixels "
        "(`radreason.nn.lung_net`). It marks the lung at the left and the lung at the right of a frontal "
        "picture, with or without what lies behind the heart; `prepare cxr` asks for the lung with it. No "
        "medical device: it cuts out parts of pictures for research.",
        "",
        "## Trained on",
        "",
        *(f"- {number:,} pictures: {name}" for name, number in counts["source and licence"].items()),
        *(f"- {number:,} drawn as `{name}`" for name, number in counts["drawing"].items()),
        *(f"- not on {number:,}: {why}" for why, number in found["doubted"].items()),
        "",
        f"{settings['epochs']} epochs, batches of {settings['batch']}, Adam at up to {settings['rate']:g} in "
        f"one cycle, running mean of the weights, seed {settings['seed']}. Digest of the pairs: "
        f"{found['pairs_sha256'][:16]}.",
        "",
        "## Figures",
        "",
    ]
    if not found["figures"]:
        return "\n".join([*lines, "None: trained without folds.", ""])
    return "\n".join(
        [
            *lines,
            f"From {found['folds']} folds by patient, or by picture where no patient is known; every picture "
            "was tested by a network that had not seen it. Dice is the mean over both lungs, as the "
            "picture's own mask draws them. What is lost is the share of drawn lung beyond the boxes that "
            f"`prepare cxr` takes, tight or, as it cuts, widened by {PAD:.0%} of their size on every side. "
            f"Edges of boxes are in pixels of a picture of {PIXELS} x {PIXELS}.",
            "",
            "| source | " + " | ".join(head for head, _, _ in _COLUMNS) + " |",
            "| --- |" + " ---: |" * len(_COLUMNS),
            *(
                f"| {source} | " + " | ".join(form.format(row[name]) for _, name, form in _COLUMNS) + " |"
                for source, row in found["figures"].items()
            ),
            "",
        ]
    )
