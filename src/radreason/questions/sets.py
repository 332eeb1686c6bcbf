"""States that hold the truth of an image with a stated coverage, from the run's own predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from radreason.evaluate.conformal import filled
from radreason.questions.before import Before
from radreason.trust import read_models, sets_for


def confidence_sets(before: Before, folder: Path, coverage: float) -> dict[str, Any]:
    """States that hold the truth with a stated coverage, for the disease and each attribute."""
    models = read_models(folder)
    asked = [name for name in before.seen if name in {model.name for model in models}]
    found: dict[str, Any] = {}
    behind = 0
    rests_on = ""
    for variable in before.schema:
        conformal = sets_for(models, variable, asked, before.name)
        at = before.schema.slices()[variable.name]
        beliefs = {name: before.seen[name].diagnosis.final[:, at].double().numpy() for name in asked}
        mean = np.mean(list(beliefs.values()), axis=0)
        raw = conformal.sets(beliefs, coverage)
        row = filled(raw, mean)[0]
        behind = conformal.cases
        found[variable.name] = {
            "states": [state for state, inside in zip(variable.states, row, strict=True) if inside],
            "cases_behind": behind,
            "odd": not bool(raw.any()),
        }
    tested = len(asked) > 1 and not any(before.name in m.testing.cases for m in models if m.name in asked)
    rests_on = "test cases of all models" if tested else "validation cases"
    return {"coverage": coverage, "rests_on": rests_on, "of": found}
