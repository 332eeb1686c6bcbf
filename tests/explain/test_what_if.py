"""What-ifs, counterfactuals and consistency, against parts put together by hand and against trying all."""

import itertools

import numpy as np
import pytest
import torch

from radreason import InputError
from radreason.explain.consistency import consistency, disagreement, log_evidence, usual
from radreason.explain.counterfactual import counterfactual
from radreason.explain.what_if import node_means, what_if
from radreason.explain.why import edge_strengths, strongest_path

DISEASE = slice(6, 8)


def final(seen, bayes, nodes):
    model = seen.model
    with torch.no_grad():
        for layer in model.graph.layers:
            nodes = layer(nodes, bayes)
        fused = model.fusion(model.graph.classify_output(nodes), bayes)
        return model.second_net(model.second_evidence(fused))


def test_set_in_the_network_in_the_graph_or_in_both(seen, schema, truth):
    means = node_means(seen, {n: c[:10] for n, c in truth.items()})
    grades = truth["spiculation"][:10]
    nodes = seen.nodes.clone()
    moved = nodes.clone()
    moved[:, 0] = nodes[torch.from_numpy(np.flatnonzero(grades == 2)), 0].mean(dim=0)
    told = seen.first.clone()
    told[:, :3] = torch.tensor([0.0, 0.0, 1.0])
    with torch.no_grad():
        before, after = seen.model.first_net(seen.first), seen.model.first_net(told)
    for where, bayes, at in (("bn1", after, nodes), ("graph", before, moved), ("both", after, moved)):
        found = what_if(seen, {"spiculation": "3"}, means, where=where)
        assert torch.allclose(found.final, final(seen, bayes, at), atol=1e-6), where
    half = what_if(seen, {"spiculation": {"2": 0.5, "3": 0.5}}, means, where="graph")
    mixed = nodes.clone()
    mixed[:, 0] = (means["spiculation"][1] + means["spiculation"][2]) / 2
    assert torch.allclose(half.final, final(seen, before, mixed), atol=1e-6)


def test_what_is_done_tells_nothing_of_its_causes(seen, schema):
    """The child of all hears it all the same."""
    net = seen.model.first_net
    child = next(n for n in schema.names if net.parents[schema.position(n)] and n != "cancer")
    parent = schema.names[net.parents[schema.position(child)][0]]
    state = schema[child].states[0]
    at = schema.slices()[parent]
    done = what_if(seen, {child: state}, do=True, where="bn1")
    evidence = {v.name: p for v, p in zip(schema, schema.split(seen.first), strict=True) if v.name != child}
    with torch.no_grad():
        expected = net.posterior(evidence, do={child: state})
    assert torch.allclose(done.bn1[:, at], expected[parent], atol=1e-6)
    observed = what_if(seen, {child: state}, where="bn1")
    assert not torch.allclose(done.bn1[:, at], observed.bn1[:, at], atol=1e-4)


def test_a_what_if_without_sense_is_refused(seen):
    with pytest.raises(InputError, match="mean nodes"):
        what_if(seen, {"spiculation": "3"})
    with pytest.raises(InputError, match="cancer"):
        what_if(seen, {"cancer": "yes"}, where="bn1")
    with pytest.raises(InputError, match="sum to"):
        what_if(seen, {"spiculation": {"3": 0.5}}, where="bn1")


START = {"spiculation": "1", "calcification": "solid", "margin": "1", "texture": "2"}


def tried(net, schema, evidence, names, most):
    """Every change of grades, the best of those that turn it: attributes, steps, belief."""
    here = int(net(evidence[None])[0, DISEASE].argmax())
    best = None
    choices = [schema[n].states if n in names else (START[n],) for n in START]
    for states in itertools.product(*choices):
        changed = {n: s for (n, old), s in zip(START.items(), states, strict=True) if s != old}
        if not 0 < len(changed) <= most:
            continue
        given = {n: p for n, p in zip(schema.names, schema.split(evidence), strict=True)} | changed
        belief = net.posterior(given)["cancer"][0]
        steps = sum(
            1 if n == "calcification" else abs(schema[n].index(s) - schema[n].index(START[n]))
            for n, s in changed.items()
        )
        if int(belief.argmax()) != here and (
            best is None or (len(changed), steps, float(belief[here])) < best[0]
        ):
            best = ((len(changed), steps, float(belief[here])), changed)
    return best


@pytest.mark.parametrize("names", [tuple(START), ("calcification", "margin", "texture"), ("texture",)])
def test_the_smallest_change_is_that_of_trying_all(net, schema, names):
    found_any = 0
    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        evidence = torch.rand(schema.width, dtype=torch.float64, generator=generator) + 0.05
        evidence[[0, 4]] += 2.0
        evidence[6] += 0.6 * seed
        found = counterfactual(
            schema, evidence, START, lambda e: net(e)[:, DISEASE], changeable=names, most=2
        )
        expected = tried(net, schema, evidence, names, 2)
        assert (found is None) == (expected is None)
        if found is not None:
            found_any += 1
            (size, steps, belief), changed = expected
            assert (len(found.grades), found.steps) == (size, steps)
            assert dict(found.grades) == changed
            here = int(net(evidence[None])[0, DISEASE].argmax())
            assert found.belief[here] == pytest.approx(belief)
            assert all(found.before[n] == START[n] for n in found.grades)
    assert found_any or names == ("texture",)


def test_evidence_that_goes_together_is_less_surprising(net, schema, truth):
    cases = torch.cat([torch.eye(v.size, dtype=torch.float64)[truth[v.name]] for v in schema], dim=1)
    cases = 0.9 * cases + 0.1 / 3
    known = usual(net, cases)
    odd = torch.zeros(2, schema.width, dtype=torch.float64)
    odd[0, [0, 4, 7, 9, 10]] = 1.0  # cancer without spiculation or missing calcification, margin marked
    odd[1, [2, 5, 7, 9, 10]] = 1.0
    found = consistency(known, 0.9 * odd + 0.1 / 3)
    assert found.surprise[0] > 0.9 > 0.5 > found.surprise[1]
    scores = [float(log_evidence(net, row[None])) for row in cases]
    for row in range(2):
        assert float(found.surprise[row]) == pytest.approx(
            np.mean([s > float(found.log_evidence[row]) for s in scores])
        )
        for a in range(4):
            others = disagreement(net, cases, known.names)[:, a]
            assert float(found.odd[row, a]) == pytest.approx(
                float((others < found.disagreement[row, a]).double().mean())
            )


def test_log_evidence_is_that_of_all_over_that_of_each_alone(net, schema):
    evidence = torch.rand(1, schema.width, dtype=torch.float64) + 0.1
    pieces = dict(zip(schema.names, schema.split(evidence), strict=True))
    together = float(net.log_evidence(pieces))
    alone = sum(float(net.log_evidence({name: piece})) for name, piece in pieces.items())
    assert float(log_evidence(net, evidence)) == pytest.approx(together - alone)
    scaled = evidence.clone()
    scaled[:, :3] *= 7.0
    assert float(log_evidence(net, scaled)) == pytest.approx(together - alone)


def test_disagreement_is_between_own_evidence_and_all_other(net, schema):
    evidence = torch.rand(1, schema.width, dtype=torch.float64) + 0.1
    pieces = dict(zip(schema.names, schema.split(evidence), strict=True))
    found = disagreement(net, evidence, ("margin",))
    own = net.posterior({"margin": pieces["margin"]})["margin"]
    rest = net.posterior({n: p for n, p in pieces.items() if n != "margin"})["margin"]
    assert float(found) == pytest.approx(float((own - rest).abs().sum() / 2))


def test_the_strongest_path_is_the_best_of_all_paths(net, schema):
    strength = edge_strengths(net)
    assert all(0 <= s <= 1 for s in strength.values())
    both = strength | {(b, a): s for (a, b), s in strength.items()}
    for name in (n for n in schema.names if n != "cancer"):
        best, path = 0.0, ()
        others = [n for n in schema.names if n not in (name, "cancer")]
        for size in range(len(others) + 1):
            for between in itertools.permutations(others, size):
                way = (name, *between, "cancer")
                steps = [both.get(pair, 0.0) for pair in itertools.pairwise(way)]
                if np.prod(steps) > best:
                    best, path = np.prod(steps), way
        assert strongest_path(net, name) == path
