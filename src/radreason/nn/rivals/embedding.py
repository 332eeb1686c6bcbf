"""A concept embedding model: attributes as vectors that hold more than their grade.

After Espinosa Zarlenga et al. (2022), for variables of any number of states. The disease is read off
the vectors of all attributes; a correction swaps the vector of an attribute for that of the grade given.

Shape letters: B batch, V variables, D features of the image, E length of an embedding, K states in all,
A of the attributes, k of one.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from radreason.nn import packed
from radreason.nn.hybrid import Diagnosis, ImageDiagnoser
from radreason.nn.rivals.concepts import attribute_schema, corrected, put_together, take_attributes, undecided
from radreason.schema import Schema


class StateEmbeddings(nn.Module):
    r"""An embedding of the image for every state of every attribute, and the belief that they give.

    .. math:: c_{vs} = \mathrm{LeakyReLU}(W_{vs} F_0), \qquad p_v = \sigma(W_{k_v} [c_{v1} \dots c_{vk_v}])

    As in the original one :math:`W_k` scores all attributes; here, all of the same number of states.
    """

    def __init__(self, attributes: Schema, in_features: int, length: int) -> None:
        super().__init__()
        self.attributes, self.length = attributes, length
        self.embed = nn.Sequential(nn.Linear(in_features, attributes.width * length), nn.LeakyReLU())
        self.score = nn.ModuleDict({str(k): nn.Linear(k * length, k) for k in sorted(set(attributes.sizes))})

    def forward(self, feature: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B A E"], Float[Tensor, "B A"]]:
        """Give the embeddings of all states, and the beliefs in them."""
        embeddings: Tensor = self.embed(feature).unflatten(1, (-1, self.length))
        pieces = embeddings.split(self.attributes.sizes, dim=1)
        grades = [
            self.score[str(k)](piece.flatten(1))
            for k, piece in zip(self.attributes.sizes, pieces, strict=True)
        ]
        return embeddings, packed.softmax(self.attributes, torch.cat(grades, dim=1))


class EmbeddingReader(nn.Module):
    r"""The disease off the mixed embeddings: :math:`P_d = \sigma(W [\sum_s p_{vs} c_{vs}]_v)`."""

    def __init__(self, schema: Schema, length: int) -> None:
        super().__init__()
        self.attributes = attribute_schema(schema)
        self.read = nn.Linear(len(self.attributes) * length, schema[packed.disease_of(schema)].size)

    def forward(
        self, embeddings: Float[Tensor, "B A E"], beliefs: Float[Tensor, "B A"]
    ) -> Float[Tensor, "B k"]:
        """Give the belief in the disease."""
        pieces = (embeddings * beliefs[:, :, None]).split(self.attributes.sizes, dim=1)
        grades: Tensor = self.read(torch.cat([piece.sum(dim=1) for piece in pieces], dim=1))
        return grades.softmax(dim=1)


class EmbeddingDiagnoser(ImageDiagnoser):
    """Backbone, embeddings, disease.

    In training each known attribute of a case is corrected with probability ``corrected_share``, so that
    the model learns to follow corrections; 0.25 in the original.
    """

    evidence: StateEmbeddings
    reasoner: EmbeddingReader

    def __init__(
        self,
        schema: Schema,
        backbone: nn.Module,
        evidence: StateEmbeddings,
        reasoner: EmbeddingReader,
        corrected_share: float = 0.25,
    ) -> None:
        super().__init__(schema, backbone, evidence)
        self.reasoner, self.corrected_share = reasoner, corrected_share

    def forward(self, images: Float[Tensor, "B ..."], given: Float[Tensor, "B K"] | None = None) -> Diagnosis:
        """Diagnose; attributes that are ``given`` (NaN elsewhere) stand in for what the image says."""
        return self.reason(self.backbone(images), given)

    def reason(self, feature: Float[Tensor, "B D"], given: Float[Tensor, "B K"] | None = None) -> Diagnosis:
        """Diagnose from the feature of an image."""
        embeddings, beliefs = self.evidence(feature)
        evidence = undecided(self.schema, beliefs)
        attributes = take_attributes(self.schema, corrected(evidence, given))
        disease = self.reasoner(embeddings, attributes)
        fusion = put_together(self.schema, attributes, disease)
        return Diagnosis(self.schema, evidence, None, None, None, fusion, None)

    def learn(
        self,
        images: Float[Tensor, "B ..."],
        beliefs: Float[Tensor, "B K"],
        known: Bool[Tensor, "B V"],
    ) -> Diagnosis:
        """Diagnose in training: some attributes are given as they are."""
        chosen = known & (torch.rand(known.shape, device=known.device) < self.corrected_share)
        sizes = torch.tensor(self.schema.sizes, device=known.device)
        within = chosen.repeat_interleave(sizes, dim=1)
        return self.forward(images, beliefs.masked_fill(~within, torch.nan))
