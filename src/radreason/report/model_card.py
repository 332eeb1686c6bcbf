"""The card of a run, in the form of Hugging Face: what for, on what, how good, for whom, where it ends.

Everything in it is read from the run and the dataset; nothing is typed in. Figures are of test cases, each
asked of models that did not know its patient.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from radreason import __version__
from radreason.data.dataset import Dataset
from radreason.diagnoser import Diagnoser
from radreason.errors import InputError
from radreason.evaluate import metrics
from radreason.evaluate.intervals import Interval
from radreason.evaluate.stages import attribute_table
from radreason.evaluate.subgroups import FEW, FEW_OF_CLASS, Part, Scored, parts, score
from radreason.nn.packed import attributes_of, disease_of
from radreason.report.case_page.words import called
from radreason.report.tested import Tested, temperature, threshold

LICENSE = "apache-2.0"
LEAST_SHARE = 0.01


def check(run: Diagnoser, dataset: Dataset) -> None:
    """Refuse a dataset that the run is not of: a card speaks of one."""
    plan = next(iter(run.plans.values()))
    if plan["data"]["fingerprint"] != dataset.fingerprint:
        raise InputError(
            found=f"{dataset.folder}: not the dataset that the run is of",
            expected=f"{plan['data']['source']}, {str(plan['data']['fingerprint'])[:23]}...",
        )


def card(run: Diagnoser, folder: Path, dataset: Dataset, license_name: str = LICENSE) -> str:
    """Write the card in Markdown."""
    check(run, dataset)
    patient = {case.id: case.patient for case in dataset.cases}
    tested = Tested.of(run, patient)
    scored = _scored(run, dataset, tested) if tested.cases else []
    sections = [
        _header(run, dataset, tested, scored, license_name),
        _what(run, folder, dataset),
        _uses(run, dataset),
        _data(run, dataset),
        _figures(run, tested, scored),
        _calibration(run, tested),
        _limits(run, dataset, tested),
        _load(run, folder),
    ]
    return "\n".join(sections)


def _scored(run: Diagnoser, dataset: Dataset, tested: Tested) -> list[Scored]:
    """Score all test cases, then every part of them that the dataset tells apart."""
    by_id = {case.id: case for case in dataset.cases}
    cases = [by_id[case] for case in tested.cases]
    whole = Part("all", "test cases", np.arange(len(cases)))
    chosen = [whole, *parts(cases, run.schema)]
    return [score(part, tested.belief, tested.truth, tested.patients) for part in chosen]


def _header(
    run: Diagnoser, dataset: Dataset, tested: Tested, scored: Sequence[Scored], license_name: str
) -> str:
    plan = next(iter(run.plans.values()))
    phantom = "phantom" in dataset.kind
    tags = ["medical-imaging", "bayesian-network", "explainable-ai", "radreason", *_kinds(dataset)]
    if phantom:
        tags.append("phantom")
    lines = [
        "---",
        f"license: {_yaml(license_name)}",
        "library_name: radreason",
        "pipeline_tag: image-classification",
        "tags:",
        *(f"- {_yaml(tag)}" for tag in tags),
    ]
    if scored:
        disease = disease_of(run.schema)
        lines += [
            "model-index:",
            f"- name: {_yaml(_name(run))}",
            "  results:",
            "  - task:",
            "      type: image-classification",
            "    dataset:",
            f"      name: {_yaml(str(plan['data']['source']))}",
            f"      type: {_yaml(dataset.kind)}",
            f"      revision: {_yaml(dataset.fingerprint)}",
            "    metrics:",
        ]
        for kind, interval in (("roc_auc", scored[0].auc), ("accuracy", scored[0].accuracy)):
            if not isnan(interval.value):
                lines += [
                    f"    - type: {kind}",
                    f"      name: {_yaml(f'{kind} of {disease}, test cases')}",
                    f"      value: {interval.value:.4f}",
                ]
    return "\n".join([*lines, "---", ""])


def _what(run: Diagnoser, folder: Path, dataset: Dataset) -> str:
    plan, schema = next(iter(run.plans.values())), run.schema
    settings, disease = plan["settings"], schema[disease_of(schema)]
    graded = ", ".join(f"{n} ({schema[n].size})" for n in attributes_of(schema))
    models = (
        "one model" if len(run.models) == 1 else f"{len(run.models)} models, one for each fold and repeat"
    )
    backbone = settings["model"]["backbone"]
    said = [
        f"# {_name(run)}",
        "",
        "**Not a medical device.** It has not been validated on patients and must not decide about one.",
        "",
    ]
    if "phantom" in dataset.kind:
        said += [
            "**It learned from phantoms**, drawings that show nobody: nothing here is a result on patients.",
            "",
        ]
    return "\n".join(
        [
            *said,
            f"Looks at {_image(run)}, grades what radiologists grade, and says how likely each state of "
            f"{disease.name} "
            f"is ({', '.join(disease.states)}). Attributes, with their number of grades: {graded}.",
            "",
            f"- Method: {settings['model']['method']}, preset `{settings['preset']}`; backbone "
            f"{backbone['name']}, "
            f"{models}.",
            f"- Stages that can be asked: {', '.join(next(iter(run.models.values())).stage_names)}.",
            f"- Made with: {', '.join(f'{k} {v}' for k, v in plan.get('made_with', {}).items())}; "
            f"card by radreason {__version__}.",
            "",
        ]
    )


def _uses(run: Diagnoser, dataset: Dataset) -> str:
    disease = disease_of(run.schema)
    return "\n".join(
        [
            "## Intended use",
            "",
            f"Research on diagnosis that can be checked: how grades of {_image(run)} go together with "
            f"{disease}, what a "
            "model sees, where it looks, and what would change its answer. Answers are to be read with a "
            "radiologist's eyes on the same image (`radreason report`).",
            "",
            "## Out of scope",
            "",
            "- Deciding about a patient, screening, triage, or any use in care.",
            f"- Images that are not like those it was trained on: {dataset.kind}, {_image(run)}, window "
            f"{_window(run)}. `radreason diagnose` refuses what is plainly another thing, and cannot "
            f"notice all.",
            "- Finding lesions: the place of the lesion is given."
            if len(run.patch) == 3
            else "- Other views or parts of the body.",
            "- Causal questions: networks learned from grades say what goes with what.",
            "",
        ]
    )


def _data(run: Diagnoser, dataset: Dataset) -> str:
    schema = run.schema
    disease = schema[disease_of(schema)]
    reasons: dict[str, int] = {}
    for entry in dataset.excluded:
        reasons[entry["reason"]] = reasons.get(entry["reason"], 0) + 1
    counted = dataset.counts["states"][disease.name]
    missing = dataset.counts["missing"]
    lines = [
        "## Data",
        "",
        f"- {dataset.source} ({dataset.kind}), fingerprint `{dataset.fingerprint[:23]}...`",
        f"- {len(dataset):,} cases of {dataset.counts['patients']:,} patients, "
        f"{dataset.counts['scans']:,} scans; "
        + ", ".join(f"{called(disease.name, s)}: {counted.get(s, 0):,.0f}" for s in disease.states),
        f"- Labels: {_rule(dataset)}",
    ]
    gaps = {n: missing[n] for n in schema.names if missing.get(n)}
    if gaps:
        lines.append(
            f"- Missing labels, which count as missing: {', '.join(f'{n} {m:,}' for n, m in gaps.items())}"
        )
    lines.append(f"- Left out: {len(dataset.excluded):,}")
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    lines += [f"  - {reason}: {count:,}" for reason, count in ordered[:12]]
    if len(ordered) > 12:
        lines.append(f"  - other reasons: {sum(count for _, count in ordered[12:]):,}")
    lines += [f"- Note: {note}" for note in dataset.notes]
    sizes = [[len(plan["cases"][part]) for part in ("training", "validation", "testing")]
             for plan in run.plans.values()]  # fmt: skip
    trained, validated, tests = (_range([row[column] for row in sizes]) for column in range(3))
    lines += [
        f"- Split by patient: no patient is in two parts. Each model trained on {trained} cases, chose "
        f"its epoch "
        f"on {validated} and was tested on {tests}.",
        "- Settings: `plan.json` of each model.",
        "",
    ]
    return "\n".join(lines)


def _figures(run: Diagnoser, tested: Tested, scored: Sequence[Scored]) -> str:
    if not scored:
        return "## Figures\n\nNone: no test cases were left out of training.\n"
    schema, disease = run.schema, run.schema[disease_of(run.schema)]
    lines = [
        "## Figures",
        "",
        f"Test cases, each as models say that did not know its patient, at the temperature of the "
        f"validation cases. "
        f"Intervals are 95 %, resampling patients. Sensitivity and specificity call {disease.states[-1]} "
        f"at a half. Parts "
        f"of fewer than {FEW} cases, or {FEW_OF_CLASS} of a class, are marked few: read nothing into them.",
        "",
        "| by | part | cases | patients | " + ("positive | " if disease.size == 2 else "")
        + "AUC | accuracy | sensitivity | specificity | Brier |",
        "| --- | --- |" + " ---: |" * (8 if disease.size == 2 else 7),
    ]  # fmt: skip
    for row in scored:
        cells = [
            row.by,
            row.name + (" (few)" if row.few else ""),
            f"{row.cases:,}",
            f"{row.patients:,}",
            *([f"{row.positive:,}"] if disease.size == 2 else []),
            _bounded(row.auc),
            _bounded(row.accuracy),
            _number(row.sensitivity),
            _number(row.specificity),
            _number(row.brier),
        ]
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    lines += [
        "",
        "Parts differ in more than their name: sizes, classes and scanners go together. A difference "
        "between two "
        "parts is no proof that the name is its reason.",
        "",
        "### Grades",
        "",
        "| attribute | accuracy | within one | best constant |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, graded in attribute_table(schema, tested.final, tested.codes).items():
        told = [graded.get(key, float("nan")) for key in ("accuracy", "within_one", "constant_accuracy")]
        lines.append(f"| {_cell(name)} | " + " | ".join(_number(value) for value in told) + " |")
    return "\n".join([*lines, ""])


def _calibration(run: Diagnoser, tested: Tested) -> str:
    if not tested.cases:
        return ""
    disease = disease_of(run.schema)
    raw = tested.final[:, run.schema.slices()[disease]]
    warm, truth = tested.belief, tested.truth
    hot = [temperature(run, name) for name in run.models]
    cut = threshold(run, tuple(run.models))
    lines = [
        "## Calibration",
        "",
        "| | as it is | at the temperature |",
        "| --- | ---: | ---: |",
        *(
            f"| {words} | {_number(figure(raw, truth))} | {_number(figure(warm, truth))} |"
            for words, figure in (
                ("expected calibration error", metrics.ece),
                ("log loss", metrics.log_loss),
                ("Brier score", metrics.brier),
            )
        ),
        "",
        f"Temperature {_span(hot)}, from validation cases.",
    ]
    if cut is not None:
        lines.append(
            f"The threshold that balances sensitivity and specificity there is {cut:.2f} on the "
            f"calibrated belief."
        )
    return "\n".join([*lines, ""])


def _limits(run: Diagnoser, dataset: Dataset, tested: Tested) -> str:
    lines = ["## Limits", ""]
    if "phantom" in dataset.kind:
        lines.append("- Phantoms are drawings. What is measured on them says nothing about patients.")
    if len(run.models) == 1:
        lines.append("- One fold of one split: another split would give other figures.")
    if tested.cases and len(tested.cases) < len(dataset):
        lines.append(
            f"- {len(dataset) - len(tested.cases):,} of {len(dataset):,} cases were never test cases."
        )
    rare = [
        f"{name} {state}"
        for name in attributes_of(run.schema)
        for state, count in dataset.counts["states"][name].items()
        if count < LEAST_SHARE * len(dataset)
    ]
    if rare:
        lines.append(f"- Grades that fewer than one case in a hundred has, so that they were hardly learned: "
                     f"{', '.join(rare)}.")  # fmt: skip
    if len({len(case.readings) for case in dataset.cases} - {0}):
        lines.append("- The truth is what readers agree on, not what pathology or time have shown.")
    lines += [
        "- Figures are of cases prepared like the training cases, from the same source; elsewhere expect "
        "less.",
        "- A map of where the network looked, and a sentence of why, are no proof that it reasons as "
        "people do.",
        "",
    ]
    return "\n".join(lines)


def _load(run: Diagnoser, folder: Path) -> str:
    dims = ", ".join(map(str, run.patch))
    name = folder.name or "run"
    return "\n".join(
        [
            "## How to load it",
            "",
            "```python",
            "import radreason",
            "",
            f'model = radreason.load("{name}")  # {len(run.models)} model(s)',
            f"diagnosis = model(images)  # (cases, {dims}), as `radreason prepare` cuts them",
            "print(diagnosis.disease, diagnosis.stages.keys())",
            "```",
            "",
            f"```sh\nradreason diagnose {name} DATASET:CASE\nradreason report {name} DATASET:CASE --out "
            f"pages\n```",
            "",
            "Nothing in the folder is unpickled or executed: weights are safetensors, the rest is JSON "
            "and CSV.",
            "",
        ]
    )


def _name(run: Diagnoser) -> str:
    plan = next(iter(run.plans.values()))
    method = plan["settings"]["model"]["method"]
    return f"radreason {method}: {disease_of(run.schema)} from {plan['data']['kind']}"


def _kinds(dataset: Dataset) -> list[str]:
    words = dataset.kind.split("-")
    return ["ct", "lung-nodules"] if "ct" in words else ["chest-x-ray"] if "cxr" in words else words


def _image(run: Diagnoser) -> str:
    shape = " x ".join(map(str, run.patch))
    return (
        f"cubes of CT ({shape} voxels)"
        if len(run.patch) == 3
        else f"radiographs ({shape} pixels, both lungs)"
    )


def _window(run: Diagnoser) -> str:
    low, high = next(iter(run.plans.values()))["settings"]["data"]["window"]
    return f"{low:g} to {high:g}{' HU' if len(run.patch) == 3 else ''}"


def _rule(dataset: Dataset) -> str:
    said: Any = dataset.settings.get("consensus")
    if not isinstance(said, Mapping):
        return "as given with the dataset"
    return "consensus of the readers, " + ", ".join(
        f"{k} {v}" for k, v in said.items() if v not in (None, False)
    )


def _bounded(interval: Interval) -> str:
    if isnan(interval.value):
        return "-"
    if isnan(interval.low):
        return f"{interval.value:.3f}"
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _number(value: float) -> str:
    return "-" if isnan(value) else f"{value:.3f}"


def _range(values: Iterable[int]) -> str:
    known = sorted(set(values))
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"


def _span(values: Sequence[float]) -> str:
    return f"{values[0]:.2f}" if len(values) == 1 else f"{min(values):.2f} to {max(values):.2f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _yaml(text: str) -> str:
    """Write a text that YAML reads as that text: JSON's strings are YAML's."""
    return json.dumps(text, ensure_ascii=False)
