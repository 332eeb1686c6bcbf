"""From files to cases: tables, readings, scans, datasets; no neural network, no probability."""

from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.data.lidc_xml import read_lidc_xml
from radreason.data.pylidc_readings import read_pylidc, read_pylidc_readings
from radreason.data.reading_table import read_reading_table
from radreason.data.splits import Splits, split
from radreason.data.state_table import StateTable, read_states

__all__ = [
    "Case",
    "Dataset",
    "Splits",
    "StateTable",
    "read_lidc_xml",
    "read_pylidc",
    "read_pylidc_readings",
    "read_reading_table",
    "read_states",
    "split",
]
