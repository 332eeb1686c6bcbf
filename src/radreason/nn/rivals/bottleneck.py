"""A concept bottleneck: the disease is read off the beliefs in the attributes, and off nothing else.

After Koh et al. (2020). The stage ``evidence`` is what the image says of the attributes, with a disease of
which it says nothing; ``fusion`` adds the disease that follows from them.

Shape letters: B batch, V variables, D features of the image, K states in all, A of the attributes, k of one.
"""

from __future__ import annotations

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from radreason.nn import packed
from radreason.nn.heads import EvidenceHead
from radreason.nn.hybrid import Diagnosis, ImageDiagnoser
from radreason.nn.rivals.concepts import attribute_schema, corrected, put_together, take_attributes, undecided
from radreason.schema import Schema

Training = Literal["sequential", "joint"]


class Bottleneck(nn.Module):
    """The disease from beliefs in the attributes: a linear layer, or with ``hidden`` units between two."""

    def __init__(self, schema: Schema, hidden: int | None = None) -> None:
        super().__init__()
        width, size = attribute_schema(schema).width, schema[packed.disease_of(schema)].size
        self.read = (
            nn.Linear(width, size)
            if hidden is None
            else nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, size))
        )

    def forward(self, attributes: Float[Tensor, "B A"]) -> Float[Tensor, "B k"]:
        """Give the belief in the disease."""
        grades: Tensor = self.read(attributes)
        return grades.softmax(dim=1)


class BottleneckDiagnoser(ImageDiagnoser):
    """Backbone, attributes, disease.

    ``training="sequential"`` lets no gradient of the disease through to the attributes, so that these are
    what the radiologists' grades made them; with ``"joint"`` they also become what serves the disease.
    """

    reasoner: Bottleneck

    def __init__(
        self,
        schema: Schema,
        backbone: nn.Module,
        evidence: EvidenceHead,
        reasoner: Bottleneck,
        training: Training = "sequential",
    ) -> None:
        super().__init__(schema, backbone, evidence)
        self.reasoner, self.through = reasoner, training == "joint"

    def forward(self, images: Float[Tensor, "B ..."], given: Float[Tensor, "B K"] | None = None) -> Diagnosis:
        """Diagnose; attributes that are ``given`` (NaN elsewhere) stand in for what the image says."""
        return self.reason(self.backbone(images), given)

    def reason(self, feature: Float[Tensor, "B D"], given: Float[Tensor, "B K"] | None = None) -> Diagnosis:
        """Diagnose from the feature of an image."""
        evidence = undecided(self.schema, self.evidence(feature))
        return Diagnosis(self.schema, evidence, None, None, None, self.conclude(evidence, given), None)

    def conclude(
        self, evidence: Float[Tensor, "B K"], given: Float[Tensor, "B K"] | None = None
    ) -> Float[Tensor, "B K"]:
        """Read the disease off a stage ``evidence``, after correction: for that no image is needed."""
        attributes = take_attributes(self.schema, corrected(evidence, given))
        disease = self.reasoner(attributes if self.through else attributes.detach())
        return put_together(self.schema, attributes, disease)
