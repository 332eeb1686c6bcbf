"""What matters in a diagnosis, why it is as it is, and whether the image hangs together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from radreason.errors import InputError
from radreason.explain.consistency import consistency
from radreason.explain.importance import Off, importance, off_state
from radreason.explain.shapley import model_contributions
from radreason.explain.why import why_together
from radreason.nn.packed import attributes_of
from radreason.questions.before import Before, explained_state, plain


def what_matters(before: Before) -> dict[str, Any]:
    """Importance as in the paper, by the lowest grade and the absent state, and contributions that add up."""
    known = before.background("switching attributes off")
    names, state = attributes_of(before.schema), before.state
    changes: dict[Off, Tensor] = {}
    ways: tuple[Off, ...] = ("lowest", "absent")
    for off in ways:
        found = [importance(seen, taught.background(off)).change[0] for seen, taught in known.values()]
        changes[off] = torch.stack(found).mean(dim=0)[:, state]
    shared = [
        model_contributions(seen, taught.background("lowest"), state=state) for seen, taught in known.values()
    ]
    each = torch.stack([one.each[0] for one in shared]).mean(dim=0)
    attributes = [
        {
            "attribute": name,
            **{
                off: {
                    "state": off_state(before.schema[name], off),
                    "change": plain(changes[off][a]),
                    "importance": plain(changes[off][a].abs()),
                    "direction": int(changes[off][a].sign()),
                }
                for off in changes
            },
            "log_odds": plain(each[a]),
        }
        for a, name in enumerate(names)
    ]
    return {
        "state": explained_state(before),
        "attributes": sorted(attributes, key=lambda one: -one["lowest"]["importance"]),
        "log_odds_without": plain(torch.stack([one.none[0] for one in shared]).mean()),
        "log_odds_with": plain(torch.stack([one.all[0] for one in shared]).mean()),
    }


def reasons(before: Before) -> dict[str, Any]:
    """What spoke for and against the disease in BN-1, with the strongest paths."""
    found = why_together([(seen.net, seen.first[0].double()) for seen in before.seen.values()], before.state)
    return {
        "state": found.state,
        "log_odds_without": found.none,
        "log_odds_with": found.all,
        "reasons": [
            {
                "attribute": reason.name,
                "state": reason.state,
                "log_odds": reason.contribution,
                "before": reason.before,
                "after": reason.after,
                "path": list(reason.path),
                "networks_with_path": reason.agree,
            }
            for reason in found.reasons
        ],
        "has_loops": found.has_loops,
        "sentences": found.sentences(),
    }


def hanging_together(before: Before) -> dict[str, Any]:
    """How surprising the image's evidence is, and where it disagrees with what BN-1 expects."""
    found = []
    for seen, taught in before.background("what is usual").values():
        if taught.usual is None:
            raise InputError(
                found="a model without BN-1", expected="one that says how attributes go together"
            )
        found.append(consistency(taught.usual, seen.first.double()))
    apart = torch.stack([one.disagreement[0] for one in found]).mean(dim=0)
    odd = torch.stack([one.odd[0] for one in found]).mean(dim=0)
    names = found[0].names
    return {
        "surprise": plain(torch.stack([one.surprise[0].double() for one in found]).mean()),
        "attributes": [
            {"attribute": names[a], "disagreement": plain(apart[a]), "odd": plain(odd[a])}
            for a in apart.argsort(descending=True, stable=True).tolist()
        ],
    }
