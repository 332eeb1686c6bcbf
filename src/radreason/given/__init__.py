"""Images that a trained run is asked about, wherever they come from, as patches like those it was trained on.

Three questions, a file for each, on the way from what a user points at to what a model sees:

    sources     what is meant: a case of a dataset, a patch, a place in a scan, a radiograph, a table or a
                folder of these; each is read when its turn comes
    takes       what the run takes: its plan says how its patches were cut and what their values were
    fits        whether the image is such a one; what is not is refused with the reason
    whom        which models of the run may be asked: none that knows the patient

`given_images` joins them. Scans are read and cut by the same functions as in `radreason prepare`, so that
an image given here and the same one prepared there are one patch, bit for bit; nothing is cut or scaled here.
A `GivenImage` has no name of a patient or a file in it, apart from what is shown to whoever gave it.
`answers` then asks the run, some images at a time.
"""

from radreason.given.image import GivenImage, Refused
from radreason.given.images import given_images, sources_of

__all__ = ["GivenImage", "Refused", "given_images", "sources_of"]
