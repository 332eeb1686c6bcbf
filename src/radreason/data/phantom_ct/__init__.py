"""CT phantoms: invented lung, real outlines, real grades. A phantom is not a patient's image.

`looks` says what each grade looks like, `shape` takes the outlines, `nodule` and `lung` render,
`planted` invents grades with a known answer, `prepare` writes the dataset.
"""
