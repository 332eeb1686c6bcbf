"""How good beliefs are, stage by stage, and how sure that is: arrays in, numbers out; no torch, no files."""
