"""Phantoms of chest radiographs: drawings with known findings, never images of patients.

findings    which findings a phantom has, drawn from the network that PadChest's labels imply
anatomy     chest, lungs, heart, ribs
signs       what each finding looks like
render      one phantom: the whole radiograph, or both lungs side by side
prepare     many of them, as a dataset
"""
