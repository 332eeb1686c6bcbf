"""What a network answers, against sums over the joint written out by hand; how it is learned and kept."""

import json
import math
from itertools import product

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from radreason import InputError, Schema, Variable
from radreason.prob import BayesNet, Ensemble, Labels

SCHEMA = Schema(
    (
        Variable("smoker", ("no", "yes")),
        Variable("cancer", ("no", "yes")),
        Variable("cough", ("none", "some", "much")),
        Variable("fever", ("no", "yes")),
    ),
    disease="cancer",
)
PARENTS = ((), (0,), (1, 3), ())
TABLES = (
    torch.tensor([0.7, 0.3], dtype=torch.float64),
    torch.tensor([[0.95, 0.05], [0.8, 0.2]], dtype=torch.float64),
    torch.tensor(
        [[[0.8, 0.15, 0.05], [0.3, 0.4, 0.3]], [[0.3, 0.3, 0.4], [0.1, 0.3, 0.6]]], dtype=torch.float64
    ),
    torch.tensor([0.9, 0.1], dtype=torch.float64),
)


@pytest.fixture
def net():
    return BayesNet(SCHEMA, PARENTS, TABLES)


def joint(smoker, cancer, cough, fever):
    t = [t.tolist() for t in TABLES]
    return t[0][smoker] * t[1][smoker][cancer] * t[2][cancer][fever][cough] * t[3][fever]


def by_hand(weight, variable):
    """Posterior of one variable by a sum over all 24 joint states."""
    total = [0.0] * SCHEMA.sizes[variable]
    for state in product(*map(range, SCHEMA.sizes)):
        total[state[variable]] += joint(*state) * weight(*state)
    return [x / sum(total) for x in total]


def test_hard_evidence(net):
    answer = net.posterior({"cough": "much", "smoker": "yes"})
    for v, name in enumerate(SCHEMA.names):
        expected = by_hand(lambda s, c, cough, f: cough == 2 and s == 1, v)
        assert answer[name][0].tolist() == pytest.approx(expected, abs=1e-14)


def test_soft_evidence_is_a_likelihood(net):
    answer = net.posterior({"cough": {"some": 0.5, "much": 1.5}})
    expected = by_hand(lambda s, c, cough, f: [0, 0.5, 1.5][cough], 1)
    assert answer["cancer"][0].tolist() == pytest.approx(expected, abs=1e-14)


def test_flat_evidence_says_nothing(net):
    assert_close(net.posterior({"cough": torch.full((3,), 0.2).double()}), net.posterior({}))


def test_a_posterior_is_divided_by_the_prior_it_holds(net):
    """Handing a network its own marginal back tells it nothing; a stated prior is used instead."""
    marginal = net.posterior({})["cough"]
    told = net.posterior({"cough": marginal}, reading="posterior")
    assert_close(told, net.posterior({}))
    belief, prior = (
        torch.tensor([[0.1, 0.2, 0.7]], dtype=torch.float64),
        torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64),
    )
    told = net.posterior({"cough": belief}, reading="posterior", prior={"cough": prior})
    assert_close(told, net.posterior({"cough": belief / prior}))
    assert not torch.allclose(told["cancer"], net.posterior({"cough": belief})["cancer"])
    for model in (net, Ensemble([net, net])):
        with pytest.raises(InputError, match="a prior beside evidence that is read as likelihoods"):
            model.posterior({"cough": belief}, prior={"cough": prior})


def test_intervention_cuts_incoming_edges(net):
    """Setting cough tells nothing of cancer; observing it does; what is set still has its effects."""
    assert_close(net.posterior({}, do={"cough": "much"})["cancer"], net.posterior({})["cancer"])
    seen, done = net.posterior({"cancer": "yes"}), net.posterior({}, do={"cancer": "yes"})
    assert seen["smoker"][0, 1] > 0.3 + 1e-3
    assert done["smoker"][0, 1].item() == pytest.approx(0.3)
    assert_close(done["cough"], seen["cough"])


def test_intervention_by_a_distribution_against_the_mutilated_joint(net):
    total = [0.0] * 3
    for s, c, cough, f in product(*map(range, SCHEMA.sizes)):
        p = 0.7 if s == 0 else 0.3
        total[cough] += p * [0.4, 0.6][c] * TABLES[2][c, f, cough].item() * TABLES[3][f].item()
    answer = net.posterior({}, do={"cancer": torch.tensor([0.4, 0.6], dtype=torch.float64)})
    assert answer["cough"][0].tolist() == pytest.approx(total, abs=1e-14)
    assert net.log_evidence({}, do={"cancer": "yes"}).item() == pytest.approx(0.0, abs=1e-12)


def test_log_evidence(net):
    evidence = {"cough": ["much", "none", None], "smoker": ["yes", None, None]}
    expected = [
        sum(joint(*x) for x in product(*map(range, SCHEMA.sizes)) if x[2] == 2 and x[0] == 1),
        sum(joint(*x) for x in product(*map(range, SCHEMA.sizes)) if x[2] == 0),
        1.0,
    ]
    assert net.log_evidence(evidence).exp().tolist() == pytest.approx(expected, abs=1e-14)


def test_most_probable_is_joint_not_one_by_one(net):
    found = net.most_probable({"cough": "much"})
    states = max((x for x in product(*map(range, SCHEMA.sizes)) if x[2] == 2), key=lambda x: joint(*x))
    z = sum(joint(*x) for x in product(*map(range, SCHEMA.sizes)) if x[2] == 2)
    assert {n: s[0] for n, s in found.states.items()} == {
        v.name: v.states[i] for v, i in zip(SCHEMA, states, strict=True)
    }
    assert found.probability.item() == pytest.approx(joint(*states) / z)


def test_structure_by_name(net):
    assert net.edges == (("smoker", "cancer"), ("cancer", "cough"), ("fever", "cough"))
    assert net.compelled_edges == (("cancer", "cough"), ("fever", "cough"))
    assert net.markov_blanket("cancer") == ("smoker", "cough", "fever")
    assert_close(net.tables["cough"], TABLES[2])


def test_as_a_layer_it_passes_gradients_and_moves_with_its_model(net):
    model = torch.nn.Sequential(torch.nn.Linear(4, SCHEMA.width), torch.nn.Softmax(-1), net.float())
    out = model(torch.randn(5, 4))
    assert out.shape == (5, SCHEMA.width)
    assert out.dtype == torch.float32
    out.square().sum().backward()
    assert model[0].weight.grad.abs().sum() > 0
    assert not list(net.parameters())


def test_tables_changed_in_place_are_noticed(net):
    before = net.posterior({"smoker": "yes"})["cancer"].clone()
    net.tables["cancer"][1] = torch.tensor([0.5, 0.5])
    assert net.posterior({"smoker": "yes"})["cancer"][0].tolist() == pytest.approx([0.5, 0.5])
    assert before[0, 1].item() == pytest.approx(0.2)


def test_a_saved_state_brings_its_structure(net, tmp_path):
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    flat = [torch.full((k,), 1 / k).double() for k in SCHEMA.sizes]
    other = BayesNet(SCHEMA, ((),) * 4, flat)
    other.load_state_dict(load_file(tmp_path / "net.safetensors"))
    assert other.edges == net.edges
    assert_close(other.posterior({"cough": "much"}), net.posterior({"cough": "much"}))
    holder = torch.nn.ModuleDict({"first": BayesNet(SCHEMA, ((),) * 4, flat)})
    holder.load_state_dict({f"first.{k}": v for k, v in net.state_dict().items()})
    assert holder["first"].edges == net.edges


def test_another_tasks_state_is_refused(net):
    other = BayesNet(SCHEMA.subset(["smoker"]), ((),), TABLES[:1])
    with pytest.raises(InputError, match="a saved network of 4 variables"):
        other.load_state_dict(net.state_dict())


def test_json_there_and_back(net):
    again = BayesNet.from_dict(json.loads(json.dumps(net.to_dict())))
    assert again.schema == SCHEMA
    assert again.edges == net.edges
    assert_close(again.tables, net.tables, rtol=0, atol=0)


def planted(n=4000, seed=0):
    drawn = BayesNet(SCHEMA, PARENTS, TABLES).sample(n, seed)
    return {name: codes.numpy() for name, codes in drawn.items()}


def test_samples_follow_the_joint():
    drawn = planted(20000)
    for state in product(*map(range, SCHEMA.sizes)):
        hits = np.logical_and.reduce([drawn[n] == s for n, s in zip(SCHEMA.names, state, strict=True)])
        p = joint(*state)
        assert abs(hits.mean() - p) < 4.5 * math.sqrt(p * (1 - p) / 20000)


@pytest.mark.parametrize("n", [-1, True])
def test_a_sample_is_of_a_whole_number_of_cases(net, n):
    with pytest.raises(InputError, match=f"a sample of {n} cases"):
        net.sample(n)
    assert all(len(codes) == 0 for codes in net.sample(0).values())


def test_a_state_dict_keeps_the_answers_of_a_compact_table_not_its_coefficients():
    learned = BayesNet.learn(planted(), SCHEMA, forms={"cancer": "logistic"})
    loaded = BayesNet(SCHEMA, PARENTS, TABLES)
    loaded.load_state_dict(learned.state_dict())
    assert_close(loaded.posterior({"cough": "much"}), learned.posterior({"cough": "much"}))
    assert not loaded.compact


def test_learning_finds_what_was_planted():
    learned = BayesNet.learn(planted(), SCHEMA)
    assert {frozenset(e) for e in learned.edges} == {
        frozenset(e) for e in BayesNet(SCHEMA, PARENTS, TABLES).edges
    }
    assert_close(
        learned.posterior({"cough": "much"})["cancer"],
        BayesNet(SCHEMA, PARENTS, TABLES).posterior({"cough": "much"})["cancer"],
        rtol=0,
        atol=0.05,
    )


def test_refit_learns_again_in_place_with_the_same_recipe():
    net = BayesNet.learn(planted(), SCHEMA, forbidden=[("cancer", "cough")], pseudocount=0.5)
    assert ("cancer", "cough") not in net.edges
    before = net.edges
    net.refit(planted(seed=1), keep_edges=True)
    assert net.edges == before
    net.refit({**planted(seed=2), "smoker": np.random.default_rng(0).integers(0, 2, 4000)})
    assert not any("smoker" in edge for edge in net.edges)
    assert ("cancer", "cough") not in net.edges
    again = BayesNet.from_dict(json.loads(json.dumps(net.to_dict())))
    assert (
        again.refit(planted()).edges
        == BayesNet.learn(planted(), SCHEMA, forbidden=[("cancer", "cough")]).edges
    )


def test_a_logistic_disease_is_the_child_of_all_others():
    learned = BayesNet.learn(planted(), SCHEMA, forms={"cancer": "logistic"})
    assert {parent for parent, child in learned.edges if child == "cancer"} == {"smoker", "cough", "fever"}
    assert set(learned.compact) == {"cancer"}
    again = BayesNet.from_dict(json.loads(json.dumps(learned.to_dict())))
    assert_close(again.tables, learned.tables, rtol=0, atol=1e-15)
    truth = BayesNet(SCHEMA, PARENTS, TABLES).posterior({"cough": "much", "smoker": "yes"})["cancer"]
    assert_close(learned.posterior({"cough": "much", "smoker": "yes"})["cancer"], truth, rtol=0, atol=0.08)


def parents_of(name, **rules):
    learned = BayesNet.learn(planted(), SCHEMA, forms={"cancer": "logistic"}, **rules)
    return {parent for parent, child in learned.edges if child == name}


def test_rules_hold_for_a_variable_with_a_form():
    assert parents_of("cancer", forbidden=[("fever", "cancer"), ("cancer", "cough")]) == {"smoker", "cough"}
    assert parents_of("cancer", tiers=[["smoker"], ["fever", "cancer"], ["cough"]]) == {"smoker", "fever"}
    assert parents_of("cancer", required=[("cough", "cancer")], max_parents=1) == {"cough"}
    assert "cough" in parents_of("smoker", tiers=[["cancer", "cough"], ["smoker"]])
    assert not parents_of("cough", tiers=[["cancer", "cough"], ["smoker", "fever"]])
    assert not parents_of("cough", forbidden=[("smoker", "cough"), ("fever", "cough"), ("cancer", "cough")])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"required": [("cancer", "cough")]},
            "required edge cancer -> cough from a variable with a logistic table\n"
            "  expected: such variables as children only: they are left out of the search",
        ),
        (
            {"edge_log_prior": {("smoker", "cancer"): 1.0}},
            "a prior of edge smoker -> cancer and a logistic table for 'cancer'\n"
            "  expected: priors of edges that are searched for\n  try: say required or forbidden",
        ),
        (
            {"max_parents": 2},
            "3 parents of 'cancer', which has a logistic table\n  expected: at most max_parents = 2\n"
            "  try: say which by required, or leave others out by forbidden",
        ),
        (
            {"required": [("cough", "cancer")], "tiers": [["cancer"], ["cough"]]},
            "required edge cough -> cancer against the tiers\n"
            "  expected: a parent in the same tier as its child, or in an earlier one",
        ),
    ],
)
def test_rules_that_cannot_hold_for_a_variable_with_a_form(rules, message):
    with pytest.raises(InputError) as caught:
        parents_of("cancer", **rules)
    assert str(caught.value) == message


def test_required_edges_are_compelled():
    """Two variables score the same either way: an arrow is earned only by being required."""
    pair = SCHEMA.subset(["smoker", "cancer"])
    drawn = {name: codes for name, codes in planted().items() if name in pair}
    assert not BayesNet.learn(drawn, pair).compelled_edges
    learned = BayesNet.learn(drawn, pair, required=[("cancer", "smoker")])
    assert learned.compelled_edges == (("cancer", "smoker"),)


def test_simpler_graphs_to_compare_with():
    naive = BayesNet.learn(planted(), SCHEMA, structure="naive")
    assert {parent for parent, _ in naive.edges} == {"cancer"}
    tree = BayesNet.learn(planted(), SCHEMA, structure="tree")
    assert len(tree.edges) == len(SCHEMA) - 1 + len(SCHEMA) - 2
    assert not BayesNet.learn(planted(), SCHEMA, structure="empty").edges
    with pytest.raises(InputError, match="max_parents together with structure 'tree'"):
        BayesNet.learn(planted(), SCHEMA, structure="tree", max_parents=2)
    with pytest.raises(InputError, match="unknown structure 'star'"):
        BayesNet.learn(planted(), SCHEMA).refit(planted(), structure="star")


def test_an_ensemble_is_the_mixture_of_its_networks(net):
    other = BayesNet(SCHEMA, ((),) * 4, [torch.full((k,), 1 / k).double() for k in SCHEMA.sizes])
    both = Ensemble([net, other], [0.75, 0.25])
    evidence = {"cough": ["much", "none"]}
    p, q = net.log_evidence(evidence).exp(), other.log_evidence(evidence).exp()
    assert_close(both.log_evidence(evidence).exp(), 0.75 * p + 0.25 * q)
    for name in SCHEMA.names:
        mixed = 0.75 * p[:, None] * net.posterior(evidence)[name]
        mixed = mixed + 0.25 * q[:, None] * other.posterior(evidence)[name]
        assert_close(both.posterior(evidence)[name], mixed / (0.75 * p + 0.25 * q)[:, None])


def test_an_ensemble_is_learned_from_resamples():
    both = Ensemble.learn(planted(500), SCHEMA, resamples=3, seed=1)
    again = Ensemble.learn(planted(500), SCHEMA, resamples=3, seed=1)
    assert_close(both.posterior({"cough": "much"}), again.posterior({"cough": "much"}), rtol=0, atol=0)
    assert max(both.edge_shares().values()) <= 1 + 1e-12


def test_a_state_may_be_said_by_its_meaning(net):
    cough = Variable("cough", ("0", "1", "2"), meanings=("1", "dry", "wet"))
    words = BayesNet(Schema((*SCHEMA.variables[:2], cough, SCHEMA.variables[3])), PARENTS, TABLES)
    for said, meant in (
        ("wet", "much"),
        (["dry", None, "2"], ["some", None, "much"]),
        ({"dry": 0.2, "2": 0.5}, {"some": 0.2, "much": 0.5}),
        ("1", "some"),  # the name goes before the meaning
    ):
        expected = net.posterior({"cough": meant})["cancer"]
        assert_close(words.posterior({"cough": said})["cancer"], expected, rtol=0, atol=0)
    cut = words.posterior({"fever": "yes"}, do={"cough": "wet"})["cancer"]
    assert_close(cut, net.posterior({"fever": "yes"}, do={"cough": "much"})["cancer"], rtol=0, atol=0)
    with pytest.raises(InputError, match="evidence on 'cough': state '2' twice"):
        words.posterior({"cough": {"wet": 0.5, "2": 0.5}})


def test_a_meaning_of_two_states_names_neither():
    grade = Variable("grade", ("1", "2", "3"), meanings=("no", "maybe", "maybe"))
    alone = BayesNet(Schema((grade,)), ((),), (torch.tensor([0.5, 0.3, 0.2]),))
    with pytest.raises(InputError, match="unknown state of 'grade': 'maybe'"):
        alone.posterior({"grade": "maybe"})


WRONG = {
    "a bare number": ({"cough": 2}, "evidence on 'cough': 2"),
    "an unknown variable": ({"cuogh": "much"}, "unknown variable in the evidence: 'cuogh'"),
    "an unknown state": ({"cough": "lots"}, "unknown state of 'cough': 'lots'"),
    "a wrong width": ({"cough": torch.ones(2)}, "a tensor of torch.float32 with shape (2,)"),
    "a code too large": ({"cough": torch.tensor([0, 3])}, "sample 1: state 3"),
    "nothing possible": ({"cough": torch.zeros(1, 3)}, "sample 0: every state is impossible"),
    "below zero": ({"cough": torch.tensor([1.0, -0.5, 0])}, "sample 0: -0.5 for state 'some'"),
    "no number": ({"cough": {"much": "often"}}, "evidence on 'cough': 'often' for state 'much'"),
    "nothing for a number": ({"cough": {"much": None}}, "evidence on 'cough': None for state 'much'"),
    "two batch sizes": ({"cough": ["much", "none"], "fever": ["no"] * 3}, "different numbers of samples"),
}


@pytest.mark.parametrize(("evidence", "message"), WRONG.values(), ids=WRONG.keys())
def test_evidence_that_cannot_be_used(net, evidence, message):
    with pytest.raises(InputError) as error:
        net.posterior(evidence)
    assert message in str(error.value)


def test_tables_that_are_none():
    with pytest.raises(InputError, match=r"table of 'smoker', row \(\): \[0.7, 0.2\]"):
        BayesNet(SCHEMA, PARENTS, (torch.tensor([0.7, 0.2]), *TABLES[1:]))
    with pytest.raises(InputError, match=r"a table of shape \(3,\) for 'smoker'"):
        BayesNet(SCHEMA, PARENTS, (torch.tensor([0.7, 0.2, 0.1]), *TABLES[1:]))


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"schema": 3}, {"schema": SCHEMA.to_dict()}, {"schema": SCHEMA.to_dict(), "parents": {}}],
)
def test_json_that_is_no_network(data):
    with pytest.raises(InputError):
        BayesNet.from_dict(data)


def test_missing_labels_are_learned_from():
    labels = {name: codes.astype(float) for name, codes in planted().items()}
    rng = np.random.default_rng(3)
    for column in labels.values():
        column[rng.random(len(column)) < 0.1] = math.nan
    learned = BayesNet.learn(Labels.of(labels, SCHEMA))
    truth = BayesNet(SCHEMA, PARENTS, TABLES)
    assert {frozenset(e) for e in learned.edges} == {frozenset(e) for e in truth.edges}
