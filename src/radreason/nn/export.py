"""A trained model as one file that runs without this package: .pt2 for PyTorch, .onnx for everything else.

Shape letters: B batch, K states of all variables together.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError

OPSET = 20
"""Of ONNX; runtimes know it since early 2024."""


def export(model: nn.Module, example: Float[Tensor, "B ..."], path: Path) -> Path:
    """Write a `HybridDiagnoser` in eval mode as .pt2 or .onnx, by the ending of the file's name.

    The file takes batches of any size of images like ``example``, and gives a tuple of packed beliefs, one
    per stage that is on; in ONNX they bear the names of the stages. Schema and stages lie in the file:
    as JSON in ``metadata_props`` of ONNX, as ``schema.json`` and ``stages.json`` beside the program of a
    .pt2, where ``torch.export.load(path, extra_files={"schema.json": "", "stages.json": ""})`` finds them.

    A file cannot look at its numbers to choose another way, so it has no errors to raise: evidence that
    contradicts itself has beliefs that are no numbers.
    """
    path = Path(path)
    if path.suffix not in (".pt2", ".onnx"):
        raise InputError(
            found=f"{path.name}: a model cannot be exported as {path.suffix or 'a file without an ending'!r}",
            expected=".pt2 (torch.export, for PyTorch) or .onnx (ONNX, for other runtimes)",
        )
    if not path.parent.is_dir():
        raise InputError(found=f"{path}: there is no folder {path.parent}", expected="a folder to write into")
    if path.suffix == ".onnx" and not all(find_spec(name) for name in ("onnx", "onnxscript")):
        raise InputError(
            found=f"{path.name}: the packages that write ONNX are not installed",
            expected="onnx and onnxscript",
            hint="pip install 'radreason[export]', or the ending .pt2, which needs neither",
        )
    if any(module.training for module in model.modules()):
        raise InputError(
            found="a model in training mode, whose answers depend on the rest of the batch",
            expected="one in eval mode",
            hint="export(model.eval(), ...)",
        )
    with torch.no_grad():
        program = _traced(model, example)
        diagnosis = model(example[:1])  # for real, after the trace: nets lay their tables out again
    about = {
        "schema": json.dumps(diagnosis.schema.to_dict(), ensure_ascii=False),
        "stages": json.dumps(list(diagnosis.stages)),
    }
    if path.suffix == ".pt2":
        torch.export.save(program, path, extra_files={f"{name}.json": text for name, text in about.items()})
    else:
        _save_as_onnx(program, path, list(diagnosis.stages), about)
    return path


class _Stages(nn.Module):
    """The beliefs alone: a file knows tensors and tuples, but no `Diagnosis`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.model(images).stages.values())


def _traced(model: nn.Module, example: Tensor) -> torch.export.ExportedProgram:
    """Trace with a batch of two: of one, torch would take it that all batches are."""
    images = torch.cat([example, example])[:2]
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(_Stages(model).eval(), (images,), dynamic_shapes=({0: batch},))
    return program


def _save_as_onnx(
    program: torch.export.ExportedProgram, path: Path, stages: list[str], about: dict[str, str]
) -> None:
    written = torch.onnx.export(
        program, input_names=["images"], output_names=stages, opset_version=OPSET, dynamo=True, verbose=False
    )
    assert written is not None  # it is without dynamo only
    written.model.metadata_props.update(about)
    written.save(path)
