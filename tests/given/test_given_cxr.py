"""A radiograph given to a run is the patch that would have been prepared of it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import radreason
from radreason import InputError
from radreason.data.synthetic_radiograph import phantom_chest, write_radiograph
from radreason.given import given_images
from radreason.given.answers import answers
from radreason.given.takes import Takes
from radreason.lungs.drawing import BEHIND_HEART
from radreason.lungs.finder import write_net
from radreason.nn.lung_net import LungNet

WHOLE = (28, 20)


@pytest.fixture(scope="module")
def run(cxr):
    return radreason.load(cxr.run)


def one(run, spec, **options):
    (image,) = given_images(run, [str(spec)], **options)
    return image


def test_a_radiograph_is_the_case_that_was_prepared(cxr, run):
    for number in range(12):
        image = one(run, cxr.folder / f"Doe_Jane-{number}.png")
        assert np.array_equal(image.patch, cxr.dataset.patches_at([number], WHOLE)[0])
        assert np.array_equal(image.mask, cxr.dataset.masks_at([number], WHOLE)[0])
        (answer,) = answers(run, [image])
        for stage, belief in run(cxr.dataset.patches_at([number])).stages.items():
            assert np.array_equal(answer.stages[stage], belief[0].numpy())
        assert "Doe" not in json.dumps(answer.to_dict())


def test_a_folder_gives_each_radiograph_in_it(cxr, run, tmp_path):
    grey = phantom_chest((120, 110)).grey
    write_radiograph(tmp_path / "a.dcm", np.rint(grey * 4095).astype(int), PatientOrientation=["L", "F"])
    write_radiograph(tmp_path / "b", np.rint(grey * 4095).astype(int), PatientOrientation=["L", "F"])
    (tmp_path / "c.png").write_bytes(b"no picture")
    (tmp_path / "notes.txt").write_text("no radiograph")
    refused = []
    a, b = given_images(run, [str(tmp_path)], refused=refused.append)
    assert np.array_equal(a.patch, b.patch)
    assert (a.number, b.number) == (1, 2)
    assert [one.number for one in refused] == [3]
    table = one(run, f"{cxr.dataset.folder}:{cxr.dataset.cases[cxr.tested()[0]].id}")
    assert table.truth["tb"] is not None


def test_a_table_of_radiographs(cxr, run):
    found = list(given_images(run, [str(cxr.folder / "cases.csv")], refused=lambda one: None))
    assert [image.name for image in found] == [cxr.dataset.cases[row].id for row in cxr.tested()]
    rows = np.array(cxr.tested())
    assert np.array_equal([image.patch for image in found], cxr.dataset.patches_at(rows, WHOLE))


def test_lungs_are_found_by_the_network_of_the_run(cxr, run, tmp_path):
    write_net(tmp_path / "other.safetensors", LungNet((2, 2)), (2, 2), 32, BEHIND_HEART)
    with pytest.raises(InputError, match="lungs found by the weights") as refusal:
        one(run, cxr.folder / "Doe_Jane-0.png", weights=tmp_path / "other.safetensors")
    assert "--weights" in refusal.value.hint


def test_a_run_on_phantoms_takes_real_radiographs_and_says_so(cxr, run):
    """Phantoms are drawn side by side: their plan does not say how lungs are cut."""
    plan = run.plans[""]
    phantoms = plan | {"data": plan["data"] | {"kind": "phantom-cxr", "settings": {"size": 24}}}
    image = one(replace(run, plans={"": phantoms}), cxr.folder / "Doe_Jane-3.png")
    assert "trained on phantom-cxr" in " ".join(image.trace["notes"])
    assert np.array_equal(image.patch, cxr.dataset.patches_at([3], WHOLE)[0])  # --pad has its default there


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (lambda grey: grey / 4095, "scaled to 0..1"),
        (lambda grey: grey / 4095 * 255, "8-bit grey"),
        (lambda grey: grey - 1000, "beyond black and white"),
        (lambda grey: grey * 4, "beyond black and white"),
        (lambda grey: grey * 0 + 2000, "one value everywhere"),
    ],
)
def test_patches_that_are_no_grey_are_refused(cxr, run, tmp_path, values, said):
    np.save(tmp_path / "patch.npy", values(cxr.dataset.patches_at([0], WHOLE)[0].astype(float)))
    with pytest.raises(InputError, match=said):
        one(run, tmp_path / "patch.npy")


def test_a_patch_of_a_radiograph(cxr, run, tmp_path):
    np.save(tmp_path / "patch.npy", cxr.dataset.patches_at([4], WHOLE)[0])
    assert np.array_equal(one(run, tmp_path / "patch.npy").patch, cxr.dataset.patches_at([4], WHOLE)[0])
    assert not Takes.of(run).is_ct
