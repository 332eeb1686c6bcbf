"""Discrete Bayesian networks on tensors: learned exactly, asked exactly, trained through.

`BayesNet` is the network; `learn_structure` and `fit_tables` are the two halves of learning one.
"""

from radreason.prob.bayesnet import BayesNet, MostProbable
from radreason.prob.bootstrap import EdgeStrengths, bootstrap
from radreason.prob.compact import LogisticTable, OrdinalTable
from radreason.prob.ensemble import Ensemble
from radreason.prob.labels import Labels
from radreason.prob.structure import Structure, learn_structure
from radreason.prob.tables import fit_tables
from radreason.prob.tree import naive_bayes, tree_augmented

__all__ = [
    "BayesNet",
    "EdgeStrengths",
    "Ensemble",
    "Labels",
    "LogisticTable",
    "MostProbable",
    "OrdinalTable",
    "Structure",
    "bootstrap",
    "fit_tables",
    "learn_structure",
    "naive_bayes",
    "tree_augmented",
]
