"""Relation network, gated messages, bottleneck and embeddings against loops over their equations."""

import pytest
import torch
from torch import nn

from radreason import InputError, Schema, Variable
from radreason.nn.heads import EvidenceHead
from radreason.nn.rivals.bottleneck import Bottleneck, BottleneckDiagnoser
from radreason.nn.rivals.concepts import attribute_schema, corrected, put_together, take_attributes
from radreason.nn.rivals.embedding import EmbeddingDiagnoser, EmbeddingReader, StateEmbeddings
from radreason.nn.rivals.gru import GatedMessages
from radreason.nn.rivals.relation import RelationNetwork

SCHEMA = Schema(
    (
        Variable("a", ("1", "2", "3")),
        Variable("d", ("no", "yes")),
        Variable("b", ("1", "2")),
        Variable("c", ("1", "2")),
    ),
    "d",
)
B, C = 3, 4
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def test_the_relation_network_sums_over_all_ordered_pairs():
    net = RelationNetwork(SCHEMA, C, width=6, depth=2).eval()
    nodes = torch.randn(B, len(SCHEMA), C)
    told = net(nodes)
    g, f = net.pair, net.conclude
    for case in range(B):
        total = torch.zeros(6)
        for i in range(len(SCHEMA)):
            for j in range(len(SCHEMA)):
                one, other = torch.zeros(len(SCHEMA)), torch.zeros(len(SCHEMA))
                one[i], other[j] = 1, 1
                pair = torch.cat([nodes[case, i], one, nodes[case, j], other])
                hidden = (g[0].weight @ pair + g[0].bias).clamp(min=0)
                total += (g[2].weight @ hidden + g[2].bias).clamp(min=0)
        for layer in (f[0], f[2]):
            total = (layer.weight @ total + layer.bias).clamp(min=0)
        grades = f[5].weight @ total + f[5].bias
        wanted = torch.cat([torch.exp(g) / torch.exp(g).sum() for g in grades.split(SCHEMA.sizes)])
        torch.testing.assert_close(told[case], wanted, **CLOSE)


def test_the_relation_network_has_the_published_sizes():
    """g: four layers of 256; f: 256, 256, and the answer."""
    net = RelationNetwork(SCHEMA, C)
    linears = [m for m in net.modules() if isinstance(m, nn.Linear)]
    assert [m.out_features for m in linears] == [256] * 6 + [SCHEMA.width]
    assert [m.p for m in net.modules() if isinstance(m, nn.Dropout)] == [0.5]


@pytest.mark.parametrize("steps", [1, 3])
def test_messages_and_gates_are_the_equations_of_a_gated_unit(steps):
    net = GatedMessages(len(SCHEMA), C, steps)
    nn.init.normal_(net.strengths)
    h = torch.randn(B, len(SCHEMA), C)
    told = net(h)
    gates = net.gates
    for _ in range(steps):
        after = torch.empty_like(h)
        for case in range(B):
            for i in range(len(SCHEMA)):
                m = torch.zeros(C)
                for j in range(len(SCHEMA)):
                    if j != i:
                        heard = net.message.weight @ h[case, j] + net.message.bias
                        m += net.strengths[i, j] * heard / (len(SCHEMA) - 1)
                x = (gates.weight_ih @ m + gates.bias_ih).split(C)
                y = (gates.weight_hh @ h[case, i] + gates.bias_hh).split(C)
                reset, keep = torch.sigmoid(x[0] + y[0]), torch.sigmoid(x[1] + y[1])
                new = torch.tanh(x[2] + reset * y[2])
                after[case, i] = (1 - keep) * new + keep * h[case, i]
        h = after
    torch.testing.assert_close(told, h, **CLOSE)


def test_one_node_has_nobody_to_hear_from():
    with pytest.raises(InputError, match="messages between 1 node"):
        GatedMessages(1, C, 1)


def test_attributes_and_disease_come_apart_and_together_again():
    beliefs = torch.arange(2.0 * SCHEMA.width).reshape(2, -1)
    attributes = take_attributes(SCHEMA, beliefs)
    assert attributes[0].tolist() == [0, 1, 2, 5, 6, 7, 8]
    assert torch.equal(put_together(SCHEMA, attributes, beliefs[:, 3:5]), beliefs)
    assert attribute_schema(SCHEMA).names == ("a", "b", "c")


def test_corrections_stand_where_they_are_given():
    beliefs, given = torch.rand(2, 4), torch.full((2, 4), torch.nan)
    given[1, 2:] = torch.tensor([0.0, 1.0])
    told = corrected(beliefs, given)
    assert torch.equal(told[0], beliefs[0])
    assert told[1].tolist() == [*beliefs[1, :2].tolist(), 0.0, 1.0]
    assert torch.equal(corrected(beliefs, None), beliefs)


def bottleneck(training="joint"):
    attributes = attribute_schema(SCHEMA)
    return BottleneckDiagnoser(
        SCHEMA, nn.Flatten(), EvidenceHead(attributes, 6), Bottleneck(SCHEMA), training
    )


def embedding(share=0.25):
    attributes = attribute_schema(SCHEMA)
    states = StateEmbeddings(attributes, 6, C)
    return EmbeddingDiagnoser(SCHEMA, nn.Flatten(), states, EmbeddingReader(SCHEMA, C), share)


def truth(n=B):
    states = [torch.eye(k)[torch.randint(k, (n,))] for k in SCHEMA.sizes]
    return torch.cat(states, dim=1)


def test_a_bottleneck_reads_the_disease_off_the_attributes():
    model, images = bottleneck(), torch.randn(B, 6)
    told = model(images)
    a, d, b, c = SCHEMA.split(told.fusion)
    read = model.reasoner.read
    wanted = (torch.cat([a, b, c], dim=1) @ read.weight.T + read.bias).softmax(dim=1)
    torch.testing.assert_close(d, wanted, **CLOSE)
    for before, after in zip(SCHEMA.split(told.evidence), (a, None, b, c), strict=True):
        assert torch.equal(before, torch.full((B, 2), 0.5) if after is None else after)


def test_with_all_attributes_given_the_image_does_not_matter_to_a_bottleneck():
    model, given = bottleneck(), truth()
    told = model(torch.randn(B, 6), given).fusion
    assert torch.equal(told, model(torch.randn(B, 6), given).fusion)
    assert torch.equal(take_attributes(SCHEMA, told), take_attributes(SCHEMA, given))
    assert torch.equal(told, model.conclude(model(torch.randn(B, 6)).evidence, given))


@pytest.mark.parametrize("training", ["joint", "sequential"])
def test_the_disease_changes_the_attributes_of_a_joint_bottleneck_alone(training):
    model = bottleneck(training)
    diagnosis = model(torch.randn(B, 6))
    diagnosis.disease[:, 1].sum().backward()
    assert model.reasoner.read.weight.grad.any()
    assert bool(model.evidence.linear.weight.grad.any()) == (training == "joint")
    diagnosis = model(torch.randn(B, 6))
    diagnosis.fusion[:, 0].sum().backward()
    assert model.evidence.linear.weight.grad.any()


def test_embeddings_are_mixed_by_the_beliefs_that_they_give():
    model, images = embedding(), torch.randn(B, 6)
    told = model(images)
    linear, read = model.evidence.embed[0], model.reasoner.read
    for case in range(B):
        rows = iter((linear.weight @ images[case] + linear.bias).split(C))
        mixed, said = [], {}
        for name in ("a", "b", "c"):
            size = SCHEMA[name].size
            states = [torch.where((x := next(rows)) > 0, x, 0.01 * x) for _ in range(size)]
            score = model.evidence.score[str(size)]
            p = (score.weight @ torch.cat(states) + score.bias).softmax(dim=0)
            said[name] = p
            mixed.append(sum(weight * state for weight, state in zip(p, states, strict=True)))
        said["d"] = (read.weight @ torch.cat(mixed) + read.bias).softmax(dim=0)
        wanted = torch.cat([said[v.name] for v in SCHEMA])
        torch.testing.assert_close(told.fusion[case], wanted, **CLOSE)


def test_a_correction_swaps_the_embedding_of_its_attribute_alone():
    model, images, given = embedding(), torch.randn(B, 6), torch.full((B, SCHEMA.width), torch.nan)
    given[:, :3] = torch.tensor([0.0, 0.0, 1.0])
    told, plain = model(images, given), model(images)
    assert torch.equal(told.evidence, plain.evidence)
    assert torch.equal(told.fusion[:, :3], given[:, :3])
    assert torch.equal(told.fusion[:, 5:], plain.fusion[:, 5:])
    assert not torch.allclose(told.disease, plain.disease)
    vectors, beliefs = model.evidence(images)
    b, c = beliefs[:, 3:5], beliefs[:, 5:]
    mixed = [vectors[:, 2]]
    mixed += [sum(p[:, s, None] * vectors[:, at + s] for s in (0, 1)) for at, p in ((3, b), (5, c))]
    torch.testing.assert_close(told.disease, model.reasoner.read(torch.cat(mixed, dim=1)).softmax(dim=1))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_training_corrects_a_share_of_what_is_known(share):
    model, n = embedding(share), 2000
    beliefs, known = truth(n), torch.rand(n, len(SCHEMA)) < 0.5
    told = model.learn(torch.randn(n, 6), beliefs, known).fusion
    counts = {True: [], False: []}
    for v, name in enumerate(SCHEMA.names):
        if name != "d":
            at = SCHEMA.slices()[name]
            same = (told[:, at] == beliefs[:, at]).all(dim=1)
            for is_known in counts:
                counts[is_known].append(same[known[:, v] == is_known].float().mean().item())
    assert max(counts[False]) == 0
    assert counts[True] == pytest.approx([share] * 3, abs=0.05)
