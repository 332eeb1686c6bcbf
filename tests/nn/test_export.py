"""Exported files against the model that they were made of, through two other runtimes."""

import json
import subprocess
import sys

import onnxruntime
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from radreason import InputError, Schema, Variable
from radreason.nn import export as export_module
from radreason.nn.export import export
from radreason.nn.heads import EvidenceHead
from radreason.nn.hybrid import HybridDiagnoser
from radreason.prob import BayesNet

STAGES = ["evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2"]
torchs_own = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.:FutureWarning")


class Pt2:
    """A .pt2 as PyTorch runs it."""

    def __init__(self, path):
        found = {"schema.json": "", "stages.json": ""}
        self.program = torch.export.load(path, extra_files=found).module()
        self.schema, self.stages = (json.loads(found[name]) for name in found)

    def __call__(self, images):
        return dict(zip(self.stages, self.program(images), strict=True))


class Onnx:
    """An .onnx as its runtime runs it."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path)
        about = self.session.get_modelmeta().custom_metadata_map
        self.schema, self.stages = (json.loads(about[name]) for name in ("schema", "stages"))

    def __call__(self, images):
        names = [output.name for output in self.session.get_outputs()]
        beliefs = self.session.run(names, {"images": images.numpy()})
        return {name: torch.from_numpy(belief) for name, belief in zip(names, beliefs, strict=True)}


def stirred(model, images):
    """Nothing is where it began: batch norms have seen something, there are priors and trade-offs."""
    with torch.no_grad():
        for _ in range(2):
            model(images)
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for evidence in (model.first_evidence, model.second_evidence):
            if evidence is not None:
                pieces = [torch.rand(v.size) + 0.1 for v in model.schema]
                evidence.set_prior(torch.cat([piece / piece.sum() for piece in pieces]))
    return model.eval()


@pytest.mark.slow
@torchs_own
@pytest.mark.parametrize(
    ("preset", "dims", "ending"),
    [
        ("paper", 2, ".pt2"),
        ("paper", 3, ".pt2"),
        ("recommended", 2, ".pt2"),
        ("recommended", 3, ".pt2"),
        ("paper", 3, ".onnx"),
        ("recommended", 2, ".onnx"),
    ],
)
def test_a_file_answers_as_the_model_does(preset, dims, ending, built, images, tmp_path):
    other = {"first_net": {"disease": "full"}, "second_net": {"disease": "logistic"}}
    x = images(dims)
    model = stirred(built(preset, dims, **other), x)
    assert model.first_net.edges
    assert model.second_net.edges
    assert (list(model.first_net.compact), list(model.second_net.compact)) == ([], ["b"])

    path = export(model, x[:1], tmp_path / f"model{ending}")
    assert path == tmp_path / f"model{ending}"
    file = {".pt2": Pt2, ".onnx": Onnx}[ending](path)
    assert Schema.from_dict(file.schema) == model.schema
    assert file.stages == STAGES
    for n in (1, 2, 5):
        want, got = model(x[-n:]).stages, file(x[-n:])
        assert list(got) == STAGES
        for stage, belief in want.items():
            assert_close(got[stage], belief.detach(), rtol=0, atol=1e-5, msg=f"{stage} of {n}")
            assert n == 1 or (belief.std(dim=0) > 1e-4).any()


@pytest.mark.slow
def test_a_pt2_runs_without_this_package_and_without_stages_that_are_off(built, images, tmp_path):
    x = images(2)
    model = built("recommended", 2, graph=False).eval()
    assert Pt2(export(model, x, tmp_path / "model.pt2")).stages == ["evidence", "bn1", "fusion", "bn2"]
    torch.save(x, tmp_path / "images.pt")
    elsewhere = """if True:
        import sys, torch
        sys.modules["radreason"] = None  # an import of it is an error
        answers = torch.export.load("model.pt2").module()(torch.load("images.pt"))
        torch.save(answers, "answers.pt")
        """
    subprocess.run([sys.executable, "-c", elsewhere], cwd=tmp_path, check=True)
    for got, belief in zip(torch.load(tmp_path / "answers.pt"), model(x).stages.values(), strict=True):
        assert_close(got, belief, rtol=0, atol=1e-5)


def test_the_model_goes_on_as_it_was(built, images, tmp_path):
    """Tracing puts tensors without numbers where networks keep their tables laid out."""
    x = images(2)
    model = built("paper", 2).eval()
    before, weights = model(x).stages, {name: t.clone() for name, t in model.state_dict().items()}
    export(model, x, tmp_path / "model.pt2")
    assert_close(model(x).stages, before)
    assert_close(model.state_dict(), weights)
    model.train()(x).disease.sum().backward()


def test_evidence_that_contradicts_itself_is_no_number_in_a_file(tmp_path):
    schema = Schema((Variable("sign", ("no", "yes")), Variable("flu", ("no", "yes"))), disease="flu")
    net = BayesNet(schema, ((), (0,)), (torch.tensor([1.0, 0.0]), torch.full((2, 2), 0.5)))
    head = EvidenceHead(schema, 1, bias=False)
    nn.init.constant_(head.linear.weight[0], -200.0)
    nn.init.constant_(head.linear.weight[1:], 0.0)
    model = HybridDiagnoser(schema, nn.Flatten(), head, first_net=net).eval()
    possible, impossible = torch.zeros(1, 1), torch.ones(1, 1)
    file = Pt2(export(model, possible, tmp_path / "model.pt2"))
    assert file(torch.cat([possible, impossible]))["bn1"].isnan().all(dim=1).tolist() == [False, True]
    with pytest.raises(InputError, match="the evidence contradicts itself"):
        model(impossible)


@pytest.mark.parametrize(("name", "ending"), [("model.pt", "'.pt'"), ("model", "'a file without an ending'")])
def test_another_ending_is_refused(name, ending, tmp_path):
    with pytest.raises(InputError) as error:
        export(nn.Identity().eval(), torch.ones(1, 1), tmp_path / name)
    assert str(error.value) == (
        f"{name}: a model cannot be exported as {ending}\n"
        "  expected: .pt2 (torch.export, for PyTorch) or .onnx (ONNX, for other runtimes)"
    )


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "nowhere" / "model.onnx"
    with pytest.raises(InputError) as error:
        export(nn.Identity().eval(), torch.ones(1, 1), path)
    assert str(error.value) == f"{path}: there is no folder {path.parent}\n  expected: a folder to write into"


def test_a_model_in_training_is_refused_even_in_part(tmp_path):
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)).eval()
    model[1].train()
    with pytest.raises(InputError) as error:
        export(model, torch.ones(1, 1), tmp_path / "model.pt2")
    assert str(error.value) == (
        "a model in training mode, whose answers depend on the rest of the batch\n"
        "  expected: one in eval mode\n"
        "  try: export(model.eval(), ...)"
    )
    assert not list(tmp_path.iterdir())


def test_without_its_packages_onnx_is_refused_and_pt2_is_not(monkeypatch, built, images, tmp_path):
    monkeypatch.setattr(export_module, "find_spec", lambda name: None)
    model, x = built("paper", 2, graph=False).eval(), images(2)
    with pytest.raises(InputError) as error:
        export(model, x, tmp_path / "model.onnx")
    assert str(error.value) == (
        "model.onnx: the packages that write ONNX are not installed\n"
        "  expected: onnx and onnxscript\n"
        "  try: pip install 'radreason[export]', or the ending .pt2, which needs neither"
    )
    assert export(model, x, tmp_path / "model.pt2").is_file()
