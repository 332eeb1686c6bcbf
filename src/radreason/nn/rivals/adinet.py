r"""ADINet without its increments: attributes weighed by image, and the disease from image and attributes.

The paper's S2 (Meng and Satoh 2020). What makes theirs incremental, distillation from a teacher of earlier
classes, has nothing to do where no class comes later. What is left is one network for class and attributes in
which each attribute has a weight per image.

Shape letters: B batch, V variables, D features of the image, K states in all, A of the attributes, k of one.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.nn import packed
from radreason.nn.hybrid import Diagnosis, ImageDiagnoser
from radreason.nn.rivals.concepts import attribute_schema, put_together, take_attributes
from radreason.schema import Schema


class WeighedAttributes(nn.Module):
    r"""A weight for every attribute, read off all of them, and the disease from weighed attributes and image.

    .. math:: c = \mathrm{sigmoid}(W_c P_a), \quad P'_{a,v} = \sigma(2 c_v \log P_{a,v}), \quad
        P_d = \sigma(W_d [F_0, c \cdot P_a])

    The weights begin at a half, where the attributes stay what they are.
    """

    def __init__(self, schema: Schema, in_features: int) -> None:
        super().__init__()
        self.schema, self.attributes = schema, attribute_schema(schema)
        self.weigh = nn.Linear(self.attributes.width, len(self.attributes))
        self.read = nn.Linear(in_features + self.attributes.width, schema[packed.disease_of(schema)].size)

    def forward(self, feature: Float[Tensor, "B D"], beliefs: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """Give all beliefs anew."""
        attributes = take_attributes(self.schema, beliefs)
        weights = self.weigh(attributes).sigmoid()
        each = torch.cat(
            [
                w.expand(-1, size)
                for w, size in zip(weights.split(1, dim=1), self.attributes.sizes, strict=True)
            ],
            dim=1,
        )
        anew = packed.softmax(self.attributes, 2 * each * packed.log(attributes, 1e-6))
        disease = self.read(torch.cat([feature, each * attributes], dim=1)).softmax(dim=1)
        return put_together(self.schema, anew, disease)


class AdinetDiagnoser(ImageDiagnoser):
    """Backbone, beliefs in everything, attributes weighed, beliefs anew."""

    reasoner: WeighedAttributes

    def __init__(
        self, schema: Schema, backbone: nn.Module, evidence: nn.Module, reasoner: WeighedAttributes
    ) -> None:
        super().__init__(schema, backbone, evidence)
        self.reasoner = reasoner

    def forward(self, images: Float[Tensor, "B ..."]) -> Diagnosis:
        """Diagnose a batch of images."""
        feature = self.backbone(images)
        evidence = self.evidence(feature)
        fusion = self.reasoner(feature, evidence)
        return Diagnosis(self.schema, evidence, None, None, None, fusion, None)
