"""One thread and fixed seeds: a test that fails once fails again."""

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_draws_every_time():
    random.seed(0)
    np.random.seed(0)  # the packages we compare with draw from it
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def shared_data():
    """Real data that the project does not hold, wherever they are; without them a test is skipped."""
    beside = Path(__file__).parents[2] / "shared/data"
    folder = Path(os.environ.get("RADREASON_DATA", beside))
    if not folder.is_dir():
        pytest.skip("no real data: set RADREASON_DATA to their folder")
    return folder
