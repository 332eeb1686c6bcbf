"""How fast are patches cut, from DICOM files to three cubes? One JSON line per scan.

    python benchmarks/bench_patches.py [--slices 133] [--repeats 3]

The rival is the obvious script with SimpleITK: load the series, resample the whole scan to 1 mm by
cubic spline, crop three cubes with their margins. Both run on one thread, on the same files (a phantom,
512 x 512, in memory's cache), in the same run; `ratio` is of the whole, from files to patches, and
`difference_hu` the largest between the two in the cubes. SimpleITK's linear interpolation, which
blurs, is timed too.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np
import SimpleITK

from radreason.data.dicom import read_series
from radreason.data.patch import cut_patch
from radreason.data.synthetic import Ball, phantom_scan, write_series

BALLS = (Ball((-60.0, 10.0, -40.0), 12), Ball((70.0, -30.0, 0.0), 8), Ball((40.0, 60.0, 55.0), 20))
LENGTH = 64 + 2 * 8


def ours(folder):
    volume = read_series(folder)
    return [cut_patch(volume, ball.centre_mm) for ball in BALLS]


def theirs(folder, how):
    reader = SimpleITK.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(folder))
    scan = reader.Execute()
    size = [round(n * s) for n, s in zip(scan.GetSize(), scan.GetSpacing(), strict=True)]
    resampled = SimpleITK.Resample(
        scan, size, SimpleITK.Transform(), how, scan.GetOrigin(), (1, 1, 1), scan.GetDirection(), -1000
    )
    corners = [
        [
            round(i - (LENGTH - 1) / 2)
            for i in resampled.TransformPhysicalPointToContinuousIndex(ball.centre_mm)
        ]
        for ball in BALLS
    ]
    crops = [SimpleITK.RegionOfInterest(resampled, [LENGTH] * 3, corner) for corner in corners]
    return [(SimpleITK.GetArrayFromImage(crop), crop) for crop in crops]


def seconds(work, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def difference(folder):
    """Cut at the centres to which the rival has rounded."""
    volume = read_series(folder)
    found = []
    for array, image in theirs(folder, SimpleITK.sitkBSpline):
        centre = image.TransformContinuousIndexToPhysicalPoint([(LENGTH - 1) / 2] * 3)
        found.append(np.abs(cut_patch(volume, centre).array - array.astype(int)).max())
    return int(max(found))


if __name__ == "__main__":
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--slices", type=int, default=133)
    options.add_argument("--repeats", type=int, default=3)
    given = options.parse_args()
    SimpleITK.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    spacing = (330 / given.slices, 0.7, 0.7)
    with tempfile.TemporaryDirectory() as folder:
        scan = phantom_scan(BALLS, (given.slices, 512, 512), spacing, noise_hu=30)
        write_series(folder, scan)
        volume = read_series(folder)
        line = {"slices": given.slices, "patches": len(BALLS), "length": LENGTH}
        line["difference_hu"] = difference(folder)
        line["seconds"] = seconds(lambda: ours(folder), given.repeats)
        line["of_which_reading"] = seconds(lambda: read_series(folder), given.repeats)
        cut = seconds(lambda: [cut_patch(volume, ball.centre_mm) for ball in BALLS], given.repeats)
        line["patches_per_s_in_memory"] = len(BALLS) / cut
        line["simpleitk_seconds"] = seconds(lambda: theirs(folder, SimpleITK.sitkBSpline), given.repeats)
        line["simpleitk_linear_seconds"] = seconds(
            lambda: theirs(folder, SimpleITK.sitkLinear), given.repeats
        )
        line["ratio"] = line["simpleitk_seconds"] / line["seconds"]
    line = {key: round(value, 2) for key, value in line.items()}
    line |= {"simpleitk": SimpleITK.Version.VersionString(), "python": platform.python_version()}
    print(json.dumps(line | {"machine": platform.machine()}), flush=True)
