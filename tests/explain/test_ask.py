"""Expected information against every answer played through, and the order against doing so each time."""

import numpy as np
import pytest
import torch

from radreason.explain import answered, ask
from radreason.explain.confirm import Corrector, as_evidence, shift
from radreason.explain.reliability import Reliability

DISEASE = slice(6, 8)
NAMES = ("spiculation", "calcification", "margin", "texture")


@pytest.fixture(scope="module")
def reliability(schema):
    rng = np.random.default_rng(11)
    tables = {n: rng.dirichlet(np.full(schema[n].size, 0.5), size=schema[n].size) for n in NAMES}
    usual = {n: np.full(schema[n].size, 1 / schema[n].size) for n in NAMES}
    return Reliability(schema, tables, {n: np.ones(len(t)) for n, t in tables.items()}, usual)


def entropy(belief):
    belief = np.asarray(belief, dtype=float)
    return float(-(belief[belief > 0] * np.log(belief[belief > 0])).sum())


def played(net, likelihoods, table, at):
    """Entropy of the disease now, minus what it is on average after the answer."""
    now, log_z = net.answer(likelihoods[None])
    expected = 0.0
    for answer in range(table.shape[1]):
        after = likelihoods.clone()
        after[at] *= torch.from_numpy(table[:, answer])
        belief, log_after = net.answer(after[None])
        expected += float((log_after - log_z).exp()) * entropy(belief[0, DISEASE])
    return entropy(now[0, DISEASE]) - expected


def test_information_is_what_entropy_falls_by_on_average(net, schema, reliability):
    likelihoods = torch.rand(4, schema.width, dtype=torch.float64) + 0.05
    found = ask.ask_next(net, likelihoods, reliability)
    for row in range(4):
        for a, name in enumerate(NAMES):
            at = schema.slices()[name]
            expected = played(net, likelihoods[row], reliability.tables[name], at)
            assert float(found[row, a]) == pytest.approx(expected, abs=1e-9)


def test_a_belief_from_elsewhere_takes_the_place_of_the_networks(net, schema, reliability):
    """The same as putting it to the network as evidence on the disease, for attributes are as they were."""
    likelihoods = torch.rand(3, schema.width, dtype=torch.float64) + 0.05
    believed = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.02, 0.98]], dtype=torch.float64)
    tilted = likelihoods.clone()
    tilted[:, DISEASE] *= believed / net(likelihoods)[:, DISEASE]
    assert torch.allclose(net(tilted)[:, DISEASE], believed)
    found = ask.ask_next(net, likelihoods, reliability, disease=believed)
    assert torch.allclose(found, ask.ask_next(net, tilted, reliability), atol=1e-9)


def test_nothing_is_learned_from_a_guess_or_of_what_goes_with_nothing(net, schema, reliability):
    likelihoods = torch.rand(2, schema.width, dtype=torch.float64) + 0.05
    assert float(ask.ask_next(net, likelihoods, reliability, sure=0.0).abs().max()) < 1e-12
    found = ask.ask_next(net, likelihoods, reliability, ("texture", "spiculation"))
    assert (found >= 0).all()
    assert (found[:, 0] < found[:, 1]).all()


def test_the_disease_given_each_of_its_states(net, schema):
    likelihoods = torch.rand(2, schema.width, dtype=torch.float64) + 0.05
    given, disease = ask.given_disease(net, likelihoods)
    whole = net(likelihoods)
    assert torch.allclose(disease, whole[:, DISEASE], atol=1e-9)
    assert torch.allclose((disease[:, :, None] * given).sum(dim=1), whole, atol=1e-9)


def test_each_question_is_the_best_one_given_all_answers_before(seen, net, schema, reliability):
    """Case by case: ask, hear, believe; by `played` and by the corrector."""
    rng = np.random.default_rng(2)
    grades = {n: rng.integers(schema[n].size, size=10) for n in NAMES}
    grades["calcification"][:3] = -1
    corrector = Corrector("bn1", 1.3, 0.8)
    beliefs, order = answered.beliefs_as_asked(corrector, seen, NAMES, grades, reliability)
    for case in range(10):
        one, heard = seen.at([case]), seen.first[case].double()
        said = torch.ones(1, schema.width, dtype=torch.float64)
        left = [n for n in NAMES if grades[n][case] >= 0]
        for step in range(len(NAMES)):
            believed = corrector(one, said)[0]
            assert np.allclose(beliefs[step, case], believed, atol=1e-5)
            if not left:
                assert NAMES[order[case, step]] == "calcification"
                continue
            tilted = heard.clone()
            tilted[DISEASE] *= believed / one.model.first_net(heard[None])[0, DISEASE]
            gain = {
                n: played(one.model.first_net, tilted, reliability.tables[n], schema.slices()[n])
                for n in left
            }
            asked = NAMES[order[case, step]]
            assert gain[asked] > max(gain.values()) - 1e-6
            told = as_evidence(schema, {asked: grades[asked][[case]]}, reliability)
            said, heard = said * told, heard * told[0]
            left.remove(asked)
        assert np.allclose(beliefs[-1, case], corrector(one, said)[0], atol=1e-5)


def test_in_a_given_order_each_step_hears_one_answer_more(seen, schema, reliability):
    rng = np.random.default_rng(4)
    grades = {n: rng.integers(schema[n].size, size=10) for n in NAMES}
    grades["margin"][4] = -1
    order = answered.known_first(answered.random_order(10, 4, seed=1), NAMES, grades)
    assert NAMES[order[4, -1]] == "margin"
    said = as_evidence(schema, grades, reliability)
    corrector = Corrector("bn1", 1.0, 1.0)
    found = answered.beliefs_in_order(corrector, seen, order, NAMES, said)
    for case in range(10):
        told = {}
        for step in range(5):
            row = as_evidence(schema, {"texture": np.array([-1])} | told, reliability)
            assert np.allclose(found[step, case], corrector(seen.at([case]), row)[0], atol=1e-5)
            if step < 4:
                name = NAMES[order[case, step]]
                told[name] = grades[name][[case]]


def test_all_answers_end_in_the_same_belief_whatever_the_order(seen, schema, reliability):
    grades = {n: np.arange(10) % schema[n].size for n in NAMES}
    corrector = Corrector("bn1", 1.0, 0.9)
    said = as_evidence(schema, grades, reliability)
    asked, _ = answered.beliefs_as_asked(corrector, seen, NAMES, grades, reliability)
    ordered = answered.beliefs_in_order(corrector, seen, answered.random_order(10, 4, seed=3), NAMES, said)
    assert np.allclose(asked[-1], ordered[-1], atol=1e-5)
    moved = shift(seen.net, seen.first, said)
    assert not np.allclose(moved, 0)
