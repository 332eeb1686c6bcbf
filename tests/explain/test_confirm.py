"""A grade as evidence, against a network that has the reader as a node, and against enumeration."""

import itertools

import numpy as np
import pytest
import torch

from radreason import InputError, Schema, Variable
from radreason.explain.confirm import Corrector, as_evidence, as_fact, freed, label_network, shift
from radreason.explain.reliability import Reliability
from radreason.prob import BayesNet

DISEASE = slice(6, 8)


@pytest.fixture(scope="module")
def reliability(schema):
    rng = np.random.default_rng(7)
    tables = {v.name: rng.dirichlet(np.ones(v.size), size=v.size) for v in schema if v.name != "cancer"}
    usual = {name: rng.dirichlet(np.ones(len(table))) for name, table in tables.items()}
    return Reliability(schema, tables, {n: np.ones(len(t)) for n, t in tables.items()}, usual)


def joint(net):
    """Probability of every joint state, by the product of the tables."""
    states = [range(size) for size in net.schema.sizes]
    found = {}
    for combination in itertools.product(*states):
        p = 1.0
        for v, table in enumerate(net.tables.values()):
            p *= float(table[tuple(combination[u] for u in net.parents[v])][combination[v]])
        found[combination] = p
    return found


def test_a_grade_given_is_a_child_of_the_true_one(net, schema, reliability):
    """The reader as a node of a larger network, whose state is seen."""
    at = schema.position("spiculation")
    said = Variable("said", schema["spiculation"].states)
    larger = BayesNet(
        Schema((*schema.variables, said), "cancer"),
        (*net.parents, (at,)),
        [*net.tables.values(), torch.from_numpy(reliability.tables["spiculation"])],
    )
    image = torch.rand(3, schema.width, dtype=torch.float64) + 0.1
    codes = np.array([0, 2, 1])
    seen = torch.eye(3, dtype=torch.float64)[codes]
    expected = larger(torch.cat([image, seen], dim=1))[:, : schema.width]
    found = net(image * as_evidence(schema, {"spiculation": codes}, reliability))
    assert torch.allclose(found, expected, atol=1e-9)


def test_a_shift_is_the_likelihood_of_the_answers_given_the_disease(net, schema, reliability):
    """By enumeration; and what the image says of the disease itself is not in it."""
    grades = {"spiculation": np.array([2]), "texture": np.array([-1]), "margin": np.array([0])}
    said = as_evidence(schema, grades, reliability)
    image = torch.rand(1, schema.width, dtype=torch.float64) + 0.1
    given, before = np.zeros(2), np.zeros(2)
    starts = np.cumsum([0, *schema.sizes])
    for states, p in joint(net).items():
        weight = p
        for v, (start, state) in enumerate(zip(starts, states, strict=False)):
            if schema.names[v] != "cancer":
                weight *= float(image[0, start + state])
        before[states[2]] += weight
        for name, code in (("spiculation", 2), ("margin", 0)):
            weight *= reliability.tables[name][states[schema.position(name)], code]
        given[states[2]] += weight
    expected = np.log(given / before)
    for tilt in (1.0, 50.0):
        image[0, DISEASE] = torch.tensor([1.0, tilt])
        found = shift(net, image, said)[0].numpy()
        assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], abs=1e-6)


def test_nothing_said_leaves_the_calibrated_belief(seen, schema, net):
    flat = torch.ones(10, schema.width, dtype=torch.float64)
    final = seen.diagnosis.final[:, DISEASE].double()
    cooled = final ** (1 / 2.5)
    for mode in ("labels", "bn1", "bn2", "again"):
        found = Corrector(mode, 2.5, 1.7, net)(seen, flat)
        assert torch.allclose(found, cooled / cooled.sum(dim=1, keepdim=True), atol=1e-5), mode


def test_answers_add_the_shift_of_the_network_that_hears_them(seen, schema, net, reliability):
    said = as_evidence(schema, {"spiculation": np.arange(10) % 3}, reliability)
    places = {
        "bn1": (seen.model.first_net, seen.model.first_evidence(seen.diagnosis.evidence).detach()),
        "bn2": (seen.model.second_net, seen.model.second_evidence(seen.diagnosis.fusion).detach()),
        "labels": (net, freed(net, seen.diagnosis.evidence)),
    }
    for mode, (hears, before) in places.items():
        found = Corrector(mode, 2.0, 0.7, net)(seen, said)
        logit = torch.logit(seen.diagnosis.final[:, 7].double()) / 2.0
        moved = torch.logit(hears(before * said)[:, 7]) - torch.logit(hears(before.double())[:, 7])
        assert torch.allclose(torch.logit(found[:, 1]), logit + 0.7 * moved, atol=1e-4), mode


def test_beliefs_are_freed_of_the_marginals_of_the_network(net, schema):
    prior = net(torch.ones(1, schema.width, dtype=torch.float64))
    assert torch.allclose(net(freed(net, prior)), prior, atol=1e-9)  # what is expected says nothing


def test_run_again_both_networks_hear_it(seen, schema, reliability):
    said = as_evidence(schema, {"spiculation": np.arange(10) % 3}, reliability).float()
    model = seen.model
    with torch.no_grad():
        evidence = model.evidence(seen.feature)
        bayes = model.first_net(model.first_evidence(evidence) * said)
        fused = model.fusion(model.graph(seen.feature, bayes)[1], bayes)
        expected = model.second_net(model.second_evidence(fused) * said)[:, DISEASE]
    assert torch.allclose(Corrector("again")(seen, said).float(), expected, atol=1e-5)


def test_a_fact_rules_out_every_other_grade(net, schema):
    said = as_fact(schema, {"spiculation": np.array([2, -1])})
    found = net(said)
    expected = net.posterior({"spiculation": "3"})["cancer"]
    assert torch.allclose(found[:1, DISEASE], expected)
    assert torch.allclose(found[1:], net(torch.ones(1, schema.width, dtype=torch.float64)))


def test_how_sure_the_reader_is_weighs_what_he_says(net, schema, reliability):
    flat = torch.ones(1, schema.width, dtype=torch.float64)
    moved = [
        float(shift(net, flat, as_evidence(schema, {"spiculation": np.array([2])}, reliability, sure))[0, 1])
        for sure in (0.0, 0.5, 1.0)
    ]
    assert moved[0] == pytest.approx(0, abs=1e-9)
    assert abs(moved[0]) < abs(moved[1]) < abs(moved[2])


def test_the_network_of_labels_has_the_disease_as_child_of_all(schema, truth):
    columns = {v.name: np.eye(v.size)[truth[v.name]] for v in schema}
    found = label_network(columns, schema)
    assert len(found.parents[schema.position("cancer")]) == 4


def test_what_nobody_can_say_is_refused(seen, schema, reliability):
    for grades, word in (
        ({"colour": np.array([0])}, "colour"),
        ({"cancer": np.array([0])}, "cancer"),
        ({"margin": np.array([2])}, "margin"),
        ({}, "no grades"),
    ):
        with pytest.raises(InputError, match=word):
            as_evidence(schema, grades, reliability)
    with pytest.raises(InputError, match="without a network"):
        Corrector("labels")(seen, torch.ones(10, schema.width, dtype=torch.float64))
