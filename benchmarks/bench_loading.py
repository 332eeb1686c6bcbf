"""How fast do batches come from a dataset, beside the same bytes from NumPy's own memory map?

    python benchmarks/bench_loading.py [--dataset FOLDER] [--cases 256] [--batch 32]

Patches are read in random order from files that the system holds in memory, as in the second epoch of
training: whole (80 cubed) and without the margin (64 cubed). `ratio` is the median over passes of our
seconds to NumPy's, which take turns within each pass; 1.2 is the most that it may be.
"""

import argparse
import json
import statistics
import tempfile
import time

import numpy as np

from radreason import Schema, Variable
from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.data.dataset_writer import DatasetWriter

SCHEMA = Schema((Variable("malignancy", ("1", "2")),), "malignancy")


def make(folder, n_cases):
    draw = np.random.default_rng(0)
    shape = (80, 80, 80)
    with DatasetWriter(folder, SCHEMA, {}, shape, "noise", "random numbers", 8).open() as writer:
        with writer.shard("all") as shard:
            for number in range(n_cases):
                patch = draw.integers(-1000, 400, shape, dtype=np.int16)
                shard.add(Case(f"{number}", f"{number}", "noise", {"malignancy": (1.0, 0.0)}), patch)
        return writer.finish()


def from_dataset(dataset, order, batch, shape):
    total = 0
    for _, patches in dataset.batches(batch, order, shape):
        total += int(patches[:, 0, 0, 0].sum())
    return total


def from_numpy(dataset, order, batch, shape):
    mapped = np.load(dataset.folder / "patches.npy", mmap_mode="r")
    inner = tuple(slice((m - n) // 2, (m - n) // 2 + n) for n, m in zip(shape, mapped.shape[1:], strict=True))
    total = 0
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        patches = (
            mapped[rows] if shape == mapped.shape[1:] else np.stack([mapped[row][inner] for row in rows])
        )
        total += int(patches[:, 0, 0, 0].sum())
    return total


def seconds(read, *what):
    started = time.perf_counter()
    result = read(*what)
    return time.perf_counter() - started, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset")
    parser.add_argument("--cases", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--passes", type=int, default=9)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dataset = Dataset.open(args.dataset) if args.dataset else make(folder, args.cases)
        order = np.random.default_rng(1).permutation(len(dataset))[: args.cases]
        for name, shape in (("whole", dataset.patches.shape[1:]), ("core", dataset.core)):
            ours, theirs = [], []
            for number in range(args.passes + 1):
                a, b = (
                    seconds(read, dataset, order, args.batch, shape) for read in (from_dataset, from_numpy)
                )
                assert a[1] == b[1]
                if number:  # the first brings the file into memory
                    ours.append(a[0])
                    theirs.append(b[0])
            found = {
                "what": f"batches of {args.batch} patches, {name} {'x'.join(map(str, shape))}",
                "patches_per_s": round(len(order) / statistics.median(ours)),
                "numpy_patches_per_s": round(len(order) / statistics.median(theirs)),
                "ratio": round(statistics.median(x / y for x, y in zip(ours, theirs, strict=True)), 3),
            }
            print(json.dumps(found))


if __name__ == "__main__":
    main()
