"""Where the lungs are on a radiograph: a small network, its training, and the boxes that follow from it."""
