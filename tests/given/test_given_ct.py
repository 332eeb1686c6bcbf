"""What is given to a run is what would have been prepared: one patch, and the same beliefs bit for bit."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pydicom
import pytest
import SimpleITK

import radreason
from radreason import InputError
from radreason.data.case import Case
from radreason.data.case_table import LPS
from radreason.data.dataset import Dataset
from radreason.data.dataset_writer import DatasetWriter
from radreason.data.image_files import write_image
from radreason.data.place import MaskFile, Position
from radreason.data.volume import Volume
from radreason.given import given_images
from radreason.given.answers import answers
from radreason.given.fits import middle
from radreason.run_folder import patient_key, read_plan, refuse_another
from radreason.train.intensities import intensities


def one(run, spec, place=None, **options):
    (image,) = given_images(run, [str(spec)], place, **options)
    return image


def rows_of(study):
    with (study.folder / "cases.csv").open() as stream:
        return list(csv.DictReader(stream))


def given_by(study, row):
    """Give a row of the table as an image and a place, as somebody would on the command line."""
    if row["mask"]:
        return study.folder / row["image"], MaskFile(study.folder / row["mask"])
    return study.folder / row["image"], Position(tuple(float(row[a]) for a in "xyz"), row["position"])


@pytest.fixture(scope="module")
def run(ct):
    return radreason.load(ct.run)


@pytest.fixture
def where(ct):
    """A scan that the run has not seen, and its middle."""
    number = next(n for n in (3, 4, 7, 8, 0) if n % 5 != 1)
    return ct.folder / f"Doe_Jane-{number}.nii.gz", Position((0.0, 0.0, 0.0), LPS)


def test_a_scan_with_a_place_is_the_case_that_was_prepared(ct, run):
    patches = ct.dataset.patches_at(range(12), (16,) * 3)
    seen = set()
    for number, row in enumerate(rows_of(ct)):
        image = one(run, *given_by(ct, row))
        assert np.array_equal(image.patch, patches[number])
        prepared = run(ct.dataset.patches_at([number]))
        (answer,) = answers(run, [image])
        for stage, belief in prepared.stages.items():
            assert np.array_equal(answer.stages[stage], belief[0].numpy()), stage
        assert image.trace["transforms"][0]["centre_mm"] == list(ct.dataset.cases[number].centre_mm)
        assert (image.mask is not None) == bool(row["mask"])
        if image.mask is not None:
            assert np.array_equal(image.mask, ct.dataset.masks_at([number], (16,) * 3)[0])
        seen.add((row["position"], image.trace["image"]["from"]))
    assert len(seen) >= 5


def test_the_affine_says_where_the_patch_lies(ct, run):
    for number in (0, 2, 4):
        image = one(run, *given_by(ct, rows_of(ct)[number]))
        bright = np.argwhere(image.patch > -400).mean(axis=0)
        at = image.affine[:3, :3] @ bright + image.affine[:3, 3]
        assert at == pytest.approx(ct.balls[number].centre_mm, abs=0.4)
        assert image.spacing_mm == (1.0, 1.0, 1.0)


def test_a_table_gives_every_row_of_it(ct, run):
    rows = {case.id: n for n, case in enumerate(ct.dataset.cases)}
    tested = {ct.dataset.cases[row].id for row in ct.tested()}
    found = list(given_images(run, [str(ct.folder / "cases.csv")], refused=lambda one: None))
    assert {image.name for image in found} == tested  # the rest trained it
    whole = (16,) * 3
    for image in found:
        assert np.array_equal(image.patch, ct.dataset.patches_at([rows[image.name]], whole)[0])


def test_a_case_of_a_dataset_brings_what_is_known_of_it(ct, run):
    row = ct.tested()[0]
    case = ct.dataset.cases[row]
    image = one(run, f"{ct.dataset.folder}:{case.id}")
    assert np.array_equal(image.patch, ct.dataset.patches_at([row], (16,) * 3)[0])
    assert (image.truth, image.readings, image.name) == (case.labels, case.readings, case.id)
    names = [i.name for i in given_images(run, [str(ct.dataset.folder)], refused=lambda one: None)]
    assert names == [ct.dataset.cases[row].id for row in ct.tested()]
    with pytest.raises(InputError, match="unknown case"):
        one(run, f"{ct.dataset.folder}:nodule-x")


@pytest.mark.parametrize("shape", [(16,) * 3, (12,) * 3])
def test_a_patch_as_an_array(ct, run, tmp_path, shape):
    patch = ct.dataset.patches_at([3], shape)[0]
    np.save(tmp_path / "patch.npy", patch.astype(np.float32))
    image = one(run, tmp_path / "patch.npy")
    assert np.array_equal(image.patch, patch)
    (answer,) = answers(run, [image])
    assert np.array_equal(answer.stages["bn2"], run(ct.dataset.patches_at([3])).final[0].numpy())


@pytest.mark.parametrize("axes", ["LPS", "RAS", "SLP", "ARI", "IPR"])
def test_a_patch_in_an_image_file_is_turned_as_patches_are(ct, run, tmp_path, axes):
    """ITK turns the file; what comes back is the patch, where it was."""
    for number in (0, 2):
        image = one(run, *given_by(ct, rows_of(ct)[number]))
        write_image(tmp_path / "as-cut.nii.gz", Volume(image.patch, image.affine))
        turned = SimpleITK.DICOMOrient(SimpleITK.ReadImage(str(tmp_path / "as-cut.nii.gz")), axes)
        SimpleITK.WriteImage(turned, str(tmp_path / "turned.nii.gz"))
        again = one(run, tmp_path / "turned.nii.gz")
        assert np.array_equal(again.patch, image.patch)
        assert again.affine == pytest.approx(image.affine, abs=1e-4)
        assert again.spacing_mm == pytest.approx((1, 1, 1), abs=1e-5)


def test_a_cross_validation_is_asked_out_of_fold(ct):
    run = radreason.load(ct.crossval)
    found = list(given_images(run, [str(ct.dataset.folder)]))
    assert len(found) == 12
    for row, (image, answer) in enumerate(zip(found, answers(run, found, at_once=1), strict=True)):
        (fold,) = [fold for fold in (0, 1) if row in ct.tested(fold)]
        assert image.models == (f"repeat-0/fold-{fold}",)
        alone = radreason.load(ct.crossval / image.models[0])(ct.dataset.patches_at([row]))
        assert np.array_equal(answer.stages["fusion"], alone.fusion[0].numpy())
        assert "out of fold" in image.trace["asked"]


def test_a_new_image_is_asked_of_all_models(ct, where):
    run = radreason.load(ct.crossval)
    image = one(run, *where)
    (answer,) = answers(run, [image])
    each = [radreason.load(ct.crossval / f"repeat-0/fold-{n}") for n in (0, 1)]
    for stage, belief in answer.stages.items():
        said = [model(middle(image.patch, (12,) * 3)[None]).stages[stage][0].numpy() for model in each]
        assert belief == pytest.approx((said[0] + said[1]) / 2, abs=1e-6)
    assert image.trace["asked"] == "the mean of all 2 models"
    assert list(image.trace["models"]) == ["repeat-0/fold-0", "repeat-0/fold-1"]


def test_whoever_trained_a_run_is_not_asked_about(ct, run, tmp_path):
    trained = next(row for row in range(12) if row not in ct.tested())
    spec = f"{ct.dataset.folder}:{ct.dataset.cases[trained].id}"
    with pytest.raises(InputError, match="trained the run") as refusal:
        one(run, spec)
    assert "--allow-seen" in refusal.value.hint
    image = one(run, spec, allow_seen=True)
    assert image.trace["seen"]
    assert "recalled" in " ".join(image.trace["notes"])
    # the same patients in another dataset, and in a table, under other names of cases
    shape = (16,) * 3
    writer = DatasetWriter(tmp_path / "other", ct.dataset.schema, {}, shape, "ct", "made up", 2)
    with writer.open():
        with writer.shard("all") as shard:
            for row in (trained, ct.tested()[0]):
                old = ct.dataset.cases[row]
                shard.add(Case(f"x-{row}", old.patient, "s", {}), ct.dataset.patches_at([row], shape)[0])
        writer.finish()
    refused = []
    free = list(given_images(run, [str(tmp_path / "other")], refused=refused.append))
    assert [image.name for image in free] == [f"x-{ct.tested()[0]}"]
    assert [one.name for one in refused] == [f"x-{trained}"]
    both = radreason.load(ct.crossval)
    for image in given_images(both, [str(tmp_path / "other")]):
        (knows_not,) = [
            name
            for name, plan in both.plans.items()
            if patient_key(image.case.patient) not in plan["patients"]
        ]
        assert image.models == (knows_not,)


def refusal(run, spec, place=None):
    with pytest.raises(InputError) as raised:
        one(run, spec, place)
    assert raised.value.expected
    return str(raised.value)


def test_values_that_are_no_hu_are_refused(run, where, tmp_path):
    path, place = where
    image = SimpleITK.ReadImage(str(path))
    hu = SimpleITK.GetArrayFromImage(image).astype(np.float32)
    eight = np.clip((hu + 1000) / 1400, 0, 1) * 255
    wrong = {
        "8-bit": eight,
        "scaled": np.clip((hu + 1000) / 1400, 0, 1),
        "scaled to a small": np.clip((hu + 300) / 700, -1, 1),
        "no air": hu + 1100,
        "no air, and": np.abs(np.random.default_rng(0).normal(300, 200, hu.shape)),
        "nothing but air": np.full(hu.shape, -1000) + np.random.default_rng(0).normal(0, 15, hu.shape),
        "one value": np.full(hu.shape, -500.0),
        "no finite": np.full(hu.shape, np.nan),
    }
    for said, array in wrong.items():
        other = SimpleITK.GetImageFromArray(array.astype(np.float32))
        other.CopyInformation(image)
        SimpleITK.WriteImage(other, str(tmp_path / "wrong.nii.gz"))
        assert said in refusal(run, tmp_path / "wrong.nii.gz", place), said


def test_patches_whose_values_are_no_hu_are_refused(ct, run, tmp_path):
    patch = middle(one(run, f"{ct.dataset.folder}:{ct.dataset.cases[ct.tested()[0]].id}").patch, (12,) * 3)
    eight = np.clip((patch + 1000) / 1400, 0, 1) * 255
    for said, array in {
        "8-bit": eight.astype(np.uint8),
        "scaled": eight / 255,
        "no air": patch + 1100,
        "one value": patch * 0 - 1000,
        "no numbers": patch * np.nan,
    }.items():
        np.save(tmp_path / "patch.npy", array)
        assert said in refusal(run, tmp_path / "patch.npy")


def test_geometry_that_does_not_fit_is_refused(ct, run, where, tmp_path):
    path, place = where
    image = SimpleITK.ReadImage(str(path))
    image.SetSpacing([mm / 1000 for mm in image.GetSpacing()])
    image.SetOrigin([mm / 1000 for mm in image.GetOrigin()])
    SimpleITK.WriteImage(image, str(tmp_path / "metres.mha"))
    assert "metres" in refusal(run, tmp_path / "metres.mha", place)
    patch = ct.dataset.patches_at([0], (16,) * 3)[0]
    write_image(tmp_path / "half.nii.gz", Volume(patch, np.diag([0.5, 0.5, 0.5, 1.0])))
    assert "0.5 x 0.5 x 0.5 mm" in refusal(run, tmp_path / "half.nii.gz")
    np.save(tmp_path / "large.npy", np.zeros((20, 20, 20), np.int16))
    assert "20 x 20 x 20" in refusal(run, tmp_path / "large.npy")
    assert "no place in them" in refusal(run, path)
    assert "lies outside of the scan" in refusal(run, path, Position((500.0, 0, 0), LPS))
    assert "no place in it" in refusal(run, ct.folder / "series-1")
    assert "a place for a scan alone" in refusal(run, f"{ct.dataset.folder}:nodule-0", place)


def test_another_modality_is_refused(ct, cxr, run, where, tmp_path):
    film = cxr.folder / "Doe_Jane-0.png"
    assert "a picture, as radiographs are" in refusal(run, film)
    assert "a dataset of radiographs" in refusal(run, f"{cxr.dataset.folder}:film-0")
    sees_films = radreason.load(cxr.run)
    assert "a dataset of CT" in refusal(sees_films, f"{ct.dataset.folder}:nodule-0")
    assert "picture in one plane" in refusal(sees_films, where[0])
    (a_slice, *_) = sorted((ct.folder / "series-1").iterdir())
    assert "CT Image Storage" in refusal(sees_films, a_slice)
    np.save(tmp_path / "patch.npy", ct.dataset.patches_at([0])[0])
    assert "an array of 12 x 12 x 12" in refusal(sees_films, tmp_path / "patch.npy")
    (tmp_path / "mr").mkdir()
    for path in (ct.folder / "series-6").iterdir():
        header = pydicom.dcmread(path)
        header.SOPClassUID, header.Modality = "1.2.840.10008.5.1.4.1.1.4", "MR"
        header.file_meta.MediaStorageSOPClassUID = header.SOPClassUID
        header.save_as(tmp_path / "mr" / path.name)
    assert "modality MR" in refusal(run, tmp_path / "mr", where[1])


def test_no_name_of_a_file_or_a_patient_enters_an_answer(ct, run, where):
    refused = []
    specs = [str(where[0]), str(ct.folder / "Doe_Jane-99.nii.gz")]
    image = one(run, *where)
    (answer,) = answers(run, [image])
    assert "Doe" not in json.dumps(answer.to_dict()) + repr(image)
    assert image.shown == str(where[0])
    with pytest.raises(InputError, match="no such file"):
        list(given_images(run, specs, where[1]))
    list(given_images(run, [specs[0]], Position((900.0, 0, 0), LPS), refused=refused.append))
    assert "outside of the scan" in refused[0].anonymous
    table = ct.folder / "gone.csv"
    table.write_text(
        "case,patient,image,x,y,z,position\na,p,Doe_Jane-77.nii.gz,1,1,1,LPS mm\nb,p,,1,1,1,voxel\n"
    )
    assert list(given_images(run, [str(table)], refused=refused.append)) == []
    assert [one.name for one in refused[1:]] == ["b", "a"]
    assert all("Doe" not in one.anonymous for one in refused)


def test_the_plan_says_which_values_were_trained_on(ct, run, where):
    plan = read_plan(ct.run)
    rows = [n for n, case in enumerate(ct.dataset.cases) if case.id in plan["cases"]["training"]]
    by_hand = np.array(
        [np.quantile(ct.dataset.patches_at([row])[0].astype(float), (0.01, 0.5, 0.99)) for row in rows]
    )
    for place, (least, most) in enumerate(plan["intensities"].values()):
        assert (least, most) == pytest.approx((by_hand[:, place].min(), by_hand[:, place].max()), abs=0.01)
    assert intensities(ct.dataset, np.array(rows)) == plan["intensities"]
    before = {key: value for key, value in plan.items() if key != "intensities"}
    refuse_another(before, plan, Path("run"))  # an older training goes on
    older = replace(run, plans={"": before})
    assert "does not say what values" in " ".join(one(older, *where).trace["notes"])
    far = {"median": [300, 400], "99 % quantile": [900, 950]}
    refused = refusal(replace(run, plans={"": plan | {"intensities": far}}), *where)
    assert "the median -" in refused
    assert "300 to 400, 900 to 950" in refused
    one_figure = replace(run, plans={"": plan | {"intensities": {"median": [300, 400]}}})
    assert "in training cases 300 to 400" in " ".join(one(one_figure, *where).trace["notes"])
    near = replace(run, plans={"": plan | {"intensities": {"median": [-700, 400]}}})
    assert "median of the values is" in " ".join(one(near, *where).trace["notes"])


def test_beliefs_are_calibrated_as_each_model_says(ct, where):
    run = radreason.load(ct.crossval)
    said = {
        name: {"calibration": {"bn2": {"temperature": T}}}
        for name, T in zip(run.models, (2.0, 0.5), strict=True)
    }
    run = replace(run, summaries=said)
    image = one(run, *where)
    (answer,) = answers(run, [image])
    by_hand = []
    for name, T in zip(run.models, (2.0, 0.5), strict=True):
        p = run[name](middle(image.patch, (12,) * 3)[None]).disease[0].double().numpy()
        by_hand.append(p ** (1 / T) / (p ** (1 / T)).sum())
    assert answer.calibrated == pytest.approx(np.mean(by_hand, axis=0), abs=1e-6)
    assert answer.to_dict()["disease"]["temperatures"] == [2.0, 0.5]


def test_a_dataset_of_another_spacing_is_refused(ct, run, tmp_path):
    shape = (16,) * 3
    settings = {"cut": {"spacing_mm": 0.7}}
    writer = DatasetWriter(tmp_path / "other", ct.dataset.schema, settings, shape, "lidc", "made up", 2)
    with writer.open():
        with writer.shard("all") as shard:
            shard.add(Case("a", "b", "s", {}), ct.dataset.patches_at([0], shape)[0])
        writer.finish()
    assert "0.7 x 0.7 x 0.7 mm" in refusal(run, f"{tmp_path / 'other'}:a")
    assert Dataset.open(tmp_path / "other").core == (12, 12, 12)
