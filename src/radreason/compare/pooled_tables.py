"""All cases at once: beliefs averaged over repeats, intervals by patient, methods against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from radreason.compare.method import Method, Model
from radreason.compare.paper_layout import share
from radreason.compare.table import Figure, Row, Table
from radreason.evaluate import metrics, weighted
from radreason.evaluate.calibration import tempered
from radreason.evaluate.intervals import Resampled, Resampler
from radreason.evaluate.paired_tests import CorrectedT, McNemar, corrected_t, mcnemar
from radreason.evaluate.reliability import calibrated_band

FIGURES = {
    "AUC": weighted.auc,
    "Accuracy": weighted.accuracy,
    "Log loss": weighted.log_loss,
    "Brier score": weighted.brier,
}

P_LEAST = 0.001
"""Smaller p-values are not told apart."""


class Pooled:
    """Methods that agree, with every figure resampled once, all on the same draws of patients."""

    def __init__(self, methods: Sequence[Method], resamples: int = 2000, seed: int = 0) -> None:
        self.methods = tuple(methods)
        self.cases = self.methods[0].cases
        first = self.methods[0]
        self.resampler = Resampler(first.patients or first.cases, resamples, seed)
        self.truth = first.truth
        self.resampled: Mapping[str, dict[str, Resampled]] = {
            m.key: {name: self.resampler(of(self.beliefs(m), self.truth)) for name, of in FIGURES.items()}
            for m in self.methods
        }

    def beliefs(self, method: Method) -> np.ndarray:
        """Pooled beliefs of a method, in the order of the first method's cases."""
        return self._in_order(method, method.pooled)

    def tempered(self, method: Method) -> np.ndarray | None:
        """Pool the beliefs with each model's temperature; None where a model has none."""
        stage = method.stages[-1]
        if any(stage not in model.temperature for model in method.models):
            return None
        cooled: dict[Model, np.ndarray] = {m: tempered(m.final, m.temperature[stage]) for m in method.models}
        return self._in_order(method, method.pool(cooled))

    def _in_order(self, method: Method, beliefs: np.ndarray) -> np.ndarray:
        if method.cases == self.cases:
            return beliefs
        place = {case: row for row, case in enumerate(method.cases)}
        return beliefs[[place[case] for case in self.cases]]

    def difference(self, first: Method, second: Method, figure: str) -> Resampled:
        """First minus second, on the same draws."""
        return self.resampled[first.key][figure] - self.resampled[second.key][figure]

    def mcnemar(self, first: Method, second: Method) -> McNemar:
        """Compare the calls at the most probable state, case by case."""
        known = self.truth >= 0
        right = [self.beliefs(m).argmax(axis=1)[known] == self.truth[known] for m in (first, second)]
        return mcnemar(*right)


def pooled(of: Pooled) -> Table:
    """Figures of the averaged beliefs with their intervals."""
    rows = [
        Row((m.name, share(m), *(Figure.of(of.resampled[m.key][name].interval()) for name in FIGURES)))
        for m in of.methods
    ]
    return Table(
        "pooled",
        f"{int((of.truth >= 0).sum())} cases, each tested by models that did not train on it",
        ("Methods", "Training", *FIGURES),
        tuple(rows),
        (
            "Beliefs of a case are averaged over repeats first. In brackets 95 % intervals: "
            f"{of.resampler.resamples} resamples of {'patients' if of.methods[0].patients else 'cases'}. "
            "The Brier score is summed over the states, from 0 to 2.",
        ),
    )


def differences(of: Pooled, baselines: Sequence[str]) -> list[Table]:
    """Each method against each baseline of the same share of training cases."""
    tables = []
    for baseline in baselines:
        rows = []
        for method in of.methods:
            base = next((m for m in of.methods if m.name == baseline and m.fraction == method.fraction), None)
            if base is None or method.name == baseline:
                continue
            counts, student = of.mcnemar(method, base), auc_over_folds(method, base)
            rows.append(
                Row(
                    (
                        method.name,
                        share(method),
                        *(
                            Figure.of(of.difference(method, base, name).interval(), signed=True)
                            for name in FIGURES
                        ),
                        f"{counts.only_first} : {counts.only_second}",
                        Figure(counts.p, least=P_LEAST),
                        Figure(student.p, least=P_LEAST),
                    )
                )
            )
        if rows:
            tables.append(
                Table(
                    f"against_{baseline}",
                    f"Difference to {baseline}",
                    (
                        "Methods",
                        "Training",
                        *FIGURES,
                        "Right alone",
                        "McNemar p",
                        "Corrected t p (AUC)",
                    ),
                    tuple(rows),
                    (
                        f"Method minus {baseline} on the same resamples; more is better for AUC and "
                        "accuracy, less for log loss and Brier score. Right alone: cases that only the "
                        f"method, and that only {baseline}, gets right. Corrected t: AUC over the same "
                        "folds (Nadeau and Bengio). No p-value is corrected for the number of comparisons.",
                    ),
                )
            )
    return tables


def auc_over_folds(first: Method, second: Method) -> CorrectedT:
    """Test the difference of AUC over the folds that both methods were trained for."""
    of_fold = [{(m.repeat, m.fold): m for m in method.models} for method in (first, second)]
    both = sorted(of_fold[0].keys() & of_fold[1].keys())
    scores = [
        [metrics.auc(models[at].final, method.truth[models[at].rows]) for at in both]
        for method, models in zip((first, second), of_fold, strict=True)
    ]
    tested = sum(len(of_fold[0][at].rows) for at in both)
    trained = sum(of_fold[0][at].trained for at in both)
    return corrected_t([a - b for a, b in zip(*scores, strict=True)], tested / trained if trained else 0.0)


def calibration(of: Pooled) -> Table:
    """How far beliefs are from frequencies, beside what chance makes of a calibrated model."""
    rows = []
    for method in of.methods:
        rows.append(_calibration_row(method.name, method, of.beliefs(method), of.truth))
        cooled = of.tempered(method)
        if cooled is not None:
            rows.append(_calibration_row(f"{method.name}, tempered", method, cooled, of.truth))
    return Table(
        "calibration",
        "Calibration of the pooled beliefs",
        ("Methods", "Training", "ECE", "Calibrated: 95 % of ECE", "In range", "Brier score", "Log loss"),
        tuple(rows),
        (
            f"ECE: expected calibration error, {metrics.ECE_BINS} bins. Beside it the range of a perfectly "
            "calibrated model of this size with these beliefs, simulated; in range: not above its upper end. "
            "Tempered: each model's beliefs with the temperature that its validation cases chose.",
        ),
    )


def _calibration_row(name: str, method: Method, beliefs: np.ndarray, truth: np.ndarray) -> Row:
    error = metrics.ece(beliefs, truth)
    band = calibrated_band(beliefs, truth)
    within = "-" if error != error else "yes" if error <= band[1] else "no"
    return Row(
        (
            name,
            share(method),
            Figure(error),
            f"{band[0]:.3f} to {band[1]:.3f}" if band[0] == band[0] else "-",
            within,
            Figure(metrics.brier(beliefs, truth)),
            Figure(metrics.log_loss(beliefs, truth)),
        )
    )
