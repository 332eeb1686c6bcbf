"""DICOM radiographs whose stored values we wrote: what comes out is what the standard's formulas say.

The second opinion on windows and tables is pydicom's own code.
"""

from __future__ import annotations

import warnings
from math import exp

import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.encaps import encapsulate
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.uid import UID

from radreason import InputError
from radreason.data.grey_scale import LookUp, Window
from radreason.data.radiograph import Limits
from radreason.data.radiograph_files import read_radiograph
from radreason.data.synthetic_radiograph import write_radiograph

STORED = np.random.default_rng(0).integers(0, 4096, (70, 80))
UPRIGHT = {"PatientOrientation": ["L", "F"]}


def read(tmp_path, stored=STORED, limits=None, **how):
    write_radiograph(tmp_path / "x.dcm", stored, **(UPRIGHT | how))
    return read_radiograph(tmp_path / "x.dcm", limits)


def test_without_any_window_the_bits_stored_are_the_range(tmp_path):
    assert read(tmp_path).grey == pytest.approx(STORED / 4095, abs=1e-6)
    assert read(tmp_path, kind="CR", bits=16, stored=STORED * 16).grey == pytest.approx(
        STORED * 16 / 65535, abs=1e-6
    )
    assert read(tmp_path, bits=8, stored=STORED >> 4).grey == pytest.approx((STORED >> 4) / 255, abs=1e-6)
    signed = read(tmp_path, bits=12, signed=True, stored=STORED - 2048)
    assert signed.grey == pytest.approx(STORED / 4095, abs=1e-6)


def test_monochrome1_is_a_negative_and_is_turned_once(tmp_path):
    for shape in ({}, {"PresentationLUTShape": "INVERSE"}):
        found = read(tmp_path, negative=True, **shape)
        assert found.grey == pytest.approx(1 - STORED / 4095, abs=1e-6)
        assert found.notes == ()
    contradiction = "photometric interpretation and presentation shape contradict: the first is believed"
    found = read(tmp_path, negative=True, PresentationLUTShape="IDENTITY")
    assert found.grey == pytest.approx(1 - STORED / 4095, abs=1e-6)
    assert found.notes == (contradiction,)
    found = read(tmp_path, PresentationLUTShape="INVERSE")
    assert found.grey == pytest.approx(STORED / 4095, abs=1e-6)
    assert found.notes == (contradiction,)


def by_pydicom(path):
    """What pydicom makes of rescaling and window, in shares of its own output range."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = pydicom.dcmread(path)
        rescaled = apply_modality_lut(dataset.pixel_array, dataset)
        shown = apply_voi_lut(rescaled, dataset).astype(float)
    if "VOILUTSequence" in dataset:
        return shown / (2 ** int(dataset.VOILUTSequence[0].LUTDescriptor[2]) - 1)
    slope = float(dataset.get("RescaleSlope", 1))
    intercept = float(dataset.get("RescaleIntercept", 0))
    top = 2**dataset.BitsStored - 1
    low = -(2 ** (dataset.BitsStored - 1)) if dataset.PixelRepresentation else 0
    high = low + top
    return (shown - (low * slope + intercept)) / ((high - low) * slope)


@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID", None])
@pytest.mark.parametrize("rescale", [{}, {"RescaleSlope": "0.5", "RescaleIntercept": "100"}])
def test_windows_are_those_of_pydicom(tmp_path, function, rescale):
    how = {"WindowCenter": "1500.5", "WindowWidth": "1801", **rescale}
    if function:
        how["VOILUTFunction"] = function
    found = read(tmp_path, **how)
    assert found.grey == pytest.approx(by_pydicom(tmp_path / "x.dcm"), abs=1e-5)
    assert 0.05 < found.grey.mean() < 0.95


def test_windows_by_the_formulas_of_the_standard():
    for x in (-5.0, 0.0, 37.5, 50.0, 99.0, 100.0, 300.0):
        value = np.array([x])
        if x <= 50 - 0.5 - 100 / 2:
            linear = 0.0
        elif x > 50 - 0.5 + 100 / 2:
            linear = 1.0
        else:
            linear = (x - (50 - 0.5)) / 100 + 0.5
        assert Window(50, 101)(value) == pytest.approx(linear)
        assert Window(50, 101, "SIGMOID")(value) == pytest.approx(1 / (1 + exp(-4 * (x - 50) / 101)))
    assert Window(50, 1)(np.array([49.5, 49.6])).tolist() == [0, 1]
    with pytest.raises(InputError, match="a window of width 0"):
        Window(50, 0, "SIGMOID")
    with pytest.raises(InputError, match="unknown function"):
        Window(50, 10, "CUBIC")


def table(first=100, n=3000, bits=12):
    entries = np.rint((np.linspace(0, 1, n) ** 0.5) * (2**bits - 1)).astype(int)
    return (n, first, bits), entries


def test_look_up_tables_are_those_of_pydicom(tmp_path):
    found = read(tmp_path, tables={"VOILUTSequence": table()})
    assert found.grey == pytest.approx(by_pydicom(tmp_path / "x.dcm"), abs=1e-6)
    window = {"WindowCenter": "1500", "WindowWidth": "100"}
    both = read(tmp_path, tables={"VOILUTSequence": table()}, **window)
    assert np.array_equal(both.grey, found.grey)  # a table goes before a window, as in pydicom
    whole = read(tmp_path, stored=STORED * 16, bits=16, tables={"VOILUTSequence": ((0, 0, 12), ramp())})
    assert whole.grey == pytest.approx(ramp()[STORED * 16] / 4095, abs=1e-6)
    below = read(
        tmp_path,
        stored=STORED - 2048,
        signed=True,
        tables={"VOILUTSequence": ((4096, -2048, 16), np.arange(4096) * 16)},
    )
    assert below.grey == pytest.approx(STORED * 16 / 65535, abs=1e-6)


def ramp():
    return np.arange(65536) // 16


def test_a_modality_table_comes_before_the_window(tmp_path):
    bent = (np.arange(4096) ** 2) // 4096
    found = read(
        tmp_path,
        tables={"ModalityLUTSequence": ((4096, 0, 12), bent)},
        WindowCenter="2048",
        WindowWidth="4096",
    )
    assert found.grey == pytest.approx(np.clip((bent[STORED] - 2047.5) / 4095 + 0.5, 0, 1), abs=1e-6)
    assert read(tmp_path, tables={"ModalityLUTSequence": ((4096, 0, 12), bent)}).grey == pytest.approx(
        bent[STORED] / 4095, abs=1e-6
    )


def test_a_presentation_table_gives_what_is_shown(tmp_path):
    falling = np.arange(255, -1, -1)
    found = read(tmp_path, negative=True, tables={"PresentationLUTSequence": ((256, 0, 8), falling)})
    assert found.grey == pytest.approx(1 - np.rint(STORED / 4095 * 255) / 255, abs=1e-6)


def test_a_table_that_is_none(tmp_path):
    with pytest.raises(InputError, match="a look-up table of 4 entries up to 900, said to be of 8 bits"):
        LookUp.of((4, 0, 8), [1, 2, 3, 900], False)
    with pytest.raises(InputError, match="a look-up table of 3 entries"):
        LookUp.of((4, 0, 8), [1, 2, 3], False)
    assert LookUp.of((3, 0, 8), b"\1\2\3", False).entries.tolist() == [1, 2, 3]
    assert LookUp.of((1, 65535, 8), [7], True).first == -1


@pytest.mark.parametrize(
    ("orientation", "as_stored"),
    [
        (["L", "F"], lambda a: a),
        (["R", "F"], lambda a: a[:, ::-1]),
        (["L", "H"], lambda a: a[::-1]),
        (["RA", "HL"], lambda a: a[::-1, ::-1]),
        (["F", "L"], lambda a: a.T),
        (["H", "R"], lambda a: a.T[::-1, ::-1]),
    ],
)
def test_the_patients_right_is_at_the_left(tmp_path, orientation, as_stored):
    """What is asked: the picture as stored is what its orientation says of the upright one."""
    upright = STORED
    found = read(
        tmp_path, stored=np.ascontiguousarray(as_stored(upright)), PatientOrientation=orientation,
        PixelSpacing=["0.2", "0.1"],
    )  # fmt: skip
    assert found.grey == pytest.approx(upright / 4095, abs=1e-6)
    turned = orientation[0][0] in "FH"
    assert found.spacing_mm == ((0.1, 0.2) if turned else (0.2, 0.1))
    said = " ".join(found.notes)
    assert ("turned upright" in said) == turned
    assert ("mirrored" in said) == (orientation[0][0] == "R" or orientation[-1][0] == "R")


def test_spacing_padding_and_shutters(tmp_path):
    stored = STORED.copy()
    stored[:, :10] = 77
    found = read(
        tmp_path, stored=stored, negative=True, PixelPaddingValue=77, ImagerPixelSpacing=["0.3", "0.3"]
    )
    assert (found.grey[stored == 77] == 0).all()
    assert found.spacing_mm == (0.3, 0.3)
    assert found.frame.left == 10
    shut = read(
        tmp_path, ShutterShape="RECTANGULAR", ShutterLeftVerticalEdge=5, ShutterRightVerticalEdge=75,
        ShutterUpperHorizontalEdge=4, ShutterLowerHorizontalEdge=66, negative=True,
    )  # fmt: skip
    assert (shut.frame.top, shut.frame.left, shut.frame.bottom, shut.frame.right) == (3, 4, 66, 75)
    assert shut.grey[3:66, 4:75] == pytest.approx(1 - STORED[3:66, 4:75] / 4095, abs=1e-6)
    round_ = read(tmp_path, ShutterShape="CIRCULAR")
    assert round_.notes == ("a shutter that is no rectangle is not applied",)


def test_what_the_picture_says_against_itself_is_flagged(tmp_path):
    assert read(tmp_path, BurnedInAnnotation="YES", BodyPartExamined="HAND").flags == (
        "burned-in text",
        "another body part",
    )
    assert read(tmp_path, BodyPartExamined="CHEST").flags == ()
    found = read(tmp_path, WindowCenter=["1500", "900"], WindowWidth=["3000", "50"])
    assert "2 windows: the first is taken" in found.notes
    unsaid = read(tmp_path, PatientOrientation=None)
    assert unsaid.notes == ("states no orientation: the patient's right is taken to be at the left",)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"kind": "for processing"}, "values of the detector, for processing"),
        ({"PresentationIntentType": "FOR PROCESSING"}, "values of the detector, for processing"),
        ({"kind": "mammogram"}, "Digital Mammography X-Ray Image Storage - For Presentation"),
        ({"ViewPosition": "LL"}, "a view from the side"),
        ({"PatientOrientation": ["A", "F"]}, "a view from the side"),
        ({"PatientOrientation": ["L", "R"]}, "rows and columns that run the same way"),
        ({"NumberOfFrames": 2}, "several frames"),
        ({"PhotometricInterpretation": "RGB"}, "a picture in colours"),
        ({"stored": STORED // 16}, "values from 0 to 255, where its number of bits has black at 0 and white"),
    ],
)
def test_what_is_no_radiograph_to_look_at_is_refused(tmp_path, how, reason):
    with pytest.raises(InputError) as caught:
        read(tmp_path, **how)
    assert caught.value.found.startswith(f"{tmp_path / 'x.dcm'}: ")
    assert reason in caught.value.found


def test_limits_of_the_table_hold_instead_of_the_window(tmp_path):
    dark = read(tmp_path, stored=STORED // 16, limits=Limits(0, 255), WindowCenter="9000", WindowWidth="3")
    assert dark.grey == pytest.approx(STORED // 16 / 255, abs=1e-6)
    negative = read(tmp_path, limits=Limits(4095, 0))
    assert negative.grey == pytest.approx(1 - STORED / 4095, abs=1e-6)


def test_no_word_of_the_header_reaches_a_message(tmp_path):
    with pytest.raises(InputError) as caught:
        read(tmp_path, WindowCenter="1", WindowWidth="2", PatientName="Doe^Jane", stored=STORED * 0 + 3)
    assert "Doe" not in str(caught.value)
    write_radiograph(tmp_path / "x.dcm", STORED)
    whole = (tmp_path / "x.dcm").read_bytes()
    (tmp_path / "y.dcm").write_bytes(whole[:-2000])
    with pytest.raises(InputError, match="pixels cannot be decoded"):
        read_radiograph(tmp_path / "y.dcm")
    (tmp_path / "z.dcm").write_bytes(b"GIF89a")
    with pytest.raises(InputError, match=r"z\.dcm: not DICOM"):
        read_radiograph(tmp_path / "z.dcm")


@pytest.mark.parametrize("negative", [False, True])
def test_jpeg_inside_dicom_keeps_its_photometric_sense(tmp_path, negative):
    smooth = np.rint(127 + 100 * np.sin(np.arange(96)[:, None] / 9) * np.cos(np.arange(96) / 7)).astype(
        np.uint8
    )
    write_radiograph(tmp_path / "x.dcm", smooth, bits=8, negative=negative, **UPRIGHT)
    dataset = pydicom.dcmread(tmp_path / "x.dcm")
    Image.fromarray(smooth).save(tmp_path / "x.jpg", quality=95)
    dataset.PixelData = encapsulate([(tmp_path / "x.jpg").read_bytes()])
    dataset["PixelData"].VR = "OB"
    dataset.file_meta.TransferSyntaxUID = UID("1.2.840.10008.1.2.4.50")
    dataset.save_as(tmp_path / "j.dcm", enforce_file_format=True)
    expected = 1 - smooth / 255 if negative else smooth / 255
    assert read_radiograph(tmp_path / "j.dcm").grey == pytest.approx(expected, abs=0.03)
