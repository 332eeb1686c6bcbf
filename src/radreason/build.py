"""From an experiment to a model: the only file that turns settings into objects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from radreason import config
from radreason.artefacts import read_network
from radreason.errors import InputError
from radreason.nn.evidence import TemperedEvidence
from radreason.nn.fusion import ResidualFusion
from radreason.nn.gcn import GraphBranch
from radreason.nn.heads import EvidenceHead
from radreason.nn.hybrid import HybridDiagnoser, ImageDiagnoser
from radreason.nn.image_encoder import ImageEncoder, image_encoder
from radreason.nn.losses import HybridLoss
from radreason.nn.rivals.adinet import AdinetDiagnoser, WeighedAttributes
from radreason.nn.rivals.bottleneck import Bottleneck, BottleneckDiagnoser
from radreason.nn.rivals.concepts import attribute_schema
from radreason.nn.rivals.embedding import EmbeddingDiagnoser, EmbeddingReader, StateEmbeddings
from radreason.nn.rivals.gru import GruDiagnoser, GruReasoner
from radreason.nn.rivals.relation import RelationDiagnoser, RelationNetwork
from radreason.nn.rivals.two_branches import TwoBranchDiagnoser
from radreason.nn.window import Window
from radreason.prob import BayesNet, Labels
from radreason.schema import Schema

if TYPE_CHECKING:  # scikit-learn takes seconds to import, and a network needs none of it
    from radreason.classic.methods import PrimitivesMethod, SvmMethod
    from radreason.classic.oracle import ForestOracle


def model(
    settings: config.Model,
    schema: Schema,
    dims: int,
    window: tuple[float, float],
    first_net: BayesNet | None = None,
    second_net: BayesNet | None = None,
) -> ImageDiagnoser:
    """Build the whole network around the two that were learned; it takes images as they were prepared."""
    backbone, graph = settings.backbone, settings.graph
    looks, encoder = Window(*window), _encoder(backbone, dims)
    sees = nn.Sequential(looks, encoder)
    evidence = EvidenceHead(schema, backbone.features, settings.bias)
    match settings.method:
        case "hybrid":
            return HybridDiagnoser(
                schema,
                sees,
                evidence,
                graph=None if graph is False else _graph(graph, schema, backbone.features, settings.bias),
                fusion=None
                if settings.fusion is False
                else ResidualFusion(schema, settings.fusion.form, settings.fusion.attributes),
                first_net=first_net,
                second_net=second_net,
                first_evidence=_evidence(settings.first_net, schema),
                second_evidence=_evidence(settings.second_net, schema),
                through_nets=settings.through_nets,
                stand_in=settings.stand_in,
            )
        case "relation":
            assert graph is not False  # settings without a graph were refused
            relation = RelationNetwork(schema, graph.channels, **settings.relation.model_dump())
            branch = _graph(graph, schema, backbone.features, settings.bias)
            return RelationDiagnoser(schema, sees, evidence, branch, relation)
        case "gru":
            messages = GruReasoner(schema, backbone.features, bias=settings.bias, **settings.gru.model_dump())
            return GruDiagnoser(schema, sees, evidence, messages)
        case "bottleneck":
            grades = EvidenceHead(attribute_schema(schema), backbone.features, settings.bias)
            reader = Bottleneck(schema, settings.bottleneck.hidden or None)
            return BottleneckDiagnoser(schema, sees, grades, reader, settings.bottleneck.training)
        case "embedding":
            chosen = settings.embedding
            states = StateEmbeddings(attribute_schema(schema), backbone.features, chosen.length)
            vectors = EmbeddingReader(schema, chosen.length)
            return EmbeddingDiagnoser(schema, sees, states, vectors, chosen.corrected)
        case "two-branches":
            both = EvidenceHead(schema, 2 * backbone.features, settings.bias)
            part, threshold = _encoder(backbone, dims), settings.two_branches.threshold
            return TwoBranchDiagnoser(schema, looks, encoder, part, evidence, both, threshold)
        case "adinet":
            weighed = WeighedAttributes(schema, backbone.features)
            return AdinetDiagnoser(schema, sees, evidence, weighed)
        case other:
            raise InputError(found=f"the method {other!r}", expected="a neural network")


def classic(settings: config.Model, schema: Schema, seed: int) -> PrimitivesMethod | SvmMethod:
    """Build a method of hand-made features."""
    from radreason.classic.methods import PrimitivesMethod, SvmMethod

    if settings.method == "svm":
        return SvmMethod(schema, seed, **settings.svm.model_dump())
    return PrimitivesMethod(schema, seed, **settings.primitives.model_dump())


def forest(settings: config.Model, schema: Schema, seed: int) -> ForestOracle:
    """Build the oracle that reads the true grades."""
    from radreason.classic.oracle import ForestOracle

    return ForestOracle(schema, seed, **settings.forest.model_dump())


def _encoder(backbone: config.Backbone, dims: int) -> ImageEncoder:
    return image_encoder(
        backbone.name,
        dims,
        conv1_stride=backbone.conv1_stride,
        width=backbone.width,
        pyramid_channels=backbone.pyramid or None,
        scales=backbone.scales,
        pooled_width=backbone.pooled_width,
        features=backbone.features,
        rectify=backbone.rectify,
    )


def _graph(settings: config.Graph, schema: Schema, features: int, bias: bool) -> GraphBranch:
    options = settings.model_dump() | {"attention": settings.attention or None}
    return GraphBranch(schema, features, bias=bias, **options)


def _evidence(net: config.Network | bool, schema: Schema) -> TemperedEvidence | None:
    if isinstance(net, bool) or net.evidence == "likelihood":
        return None
    return TemperedEvidence(schema, net.evidence, net.temperature, net.learn_temperature)


def loss(settings: config.Loss, schema: Schema, balance: Tensor | None = None) -> HybridLoss:
    """Build the sum of the losses; ``balance`` are weights per state, if they were asked for."""
    weights = settings.model_dump(exclude={"balance"})
    return HybridLoss(schema, balance=balance if settings.balance else None, **weights)


def recipe(settings: config.Network, schema: Schema) -> dict[str, Any]:
    """Give the options with which `BayesNet.learn` follows the settings of a network."""
    options: dict[str, Any] = {"structure": settings.structure, "pseudocount": settings.pseudocount}
    if settings.structure == "best":
        options |= {"max_parents": settings.max_parents, "score": settings.score}
    if settings.disease != "full" and schema.disease is not None:
        options["forms"] = {schema.disease: settings.disease}
    return options


def network(settings: config.Network, labels: Labels) -> BayesNet:
    """Learn a network from ground truth, or take over one that was learned elsewhere."""
    if settings.given is None:
        return BayesNet.learn(labels, labels.schema, **recipe(settings, labels.schema))
    net = read_net(Path(settings.given))
    mine = {v.name: v.states for v in labels.schema}
    its = {v.name: v.states for v in net.schema}
    if its != mine:
        differ = sorted(set(its) ^ set(mine)) or [name for name in mine if its[name] != mine[name]]
        raise InputError(
            found=f"{settings.given}: a network that differs in {', '.join(differ)}",
            expected=f"the variables and states of the data: {', '.join(mine)}",
        )
    return _in_order(net, labels.schema, recipe(settings, labels.schema))


def read_net(path: Path) -> BayesNet:
    """Read a network from its folder, or from a file of another program."""
    if path.is_file() and path.suffix.lower() != ".json":
        return BayesNet.read(path)
    return BayesNet.from_dict(read_network(path), str(path))


def _in_order(net: BayesNet, schema: Schema, options: Mapping[str, Any]) -> BayesNet:
    """Lay a network out in another order of its variables."""
    tables, parents = [], []
    for name in schema.names:
        theirs = net.parents[net.schema.position(name)]
        ours = [schema.position(net.schema.names[p]) for p in theirs]
        order = sorted(range(len(ours)), key=ours.__getitem__)
        table = net.tables[name].permute(*order, len(ours)) if ours else net.tables[name]
        parents.append(tuple(sorted(ours)))
        tables.append(table.to(torch.float64).contiguous())
    return BayesNet(schema, tuple(parents), tables, **options)
