"""What an experiment is: every choice that training makes, typed and checked, without torch.

The defaults are the paper's, to the letter where it is one (docs/decisions.md says where it is
not). A preset is a set of other values; it lies below whatever an experiment file says.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from radreason.errors import InputError
from radreason.input_files import read_text

Preset = Literal["paper", "recommended"]
Positive = Annotated[int, Field(ge=1, strict=True)]
Natural = Annotated[int, Field(ge=0, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Weight = Annotated[float, Field(ge=0, strict=True)]
Rate = Annotated[float, Field(gt=0, strict=True)]

PAPER_FIGURE = ("spiculation", "subtlety", "calcification", "margin", "lobulation")
"""The attributes that the paper's figure joins to malignancy: what it trained with, as far as it says."""

MAX_BYTES = 1 << 20


class Section(BaseModel):
    """Keys that nobody knows are errors, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Data(Section):
    """Which cases and variables, and what is true of them.

    ``attributes``: "all" of the dataset; "blanket", the disease's Markov blanket in the network of the
    training cases; "figure", the five of the paper's figure; or a list. ``leave_out`` are dropped from the
    first two where the dataset has them. ``targets`` of the attributes: the dataset's "consensus", or the
    share of "readers" behind each state; the disease always keeps the dataset's label. ``image_size``:
    the edge of the images, cut from the middle of the dataset's own if smaller. ``fraction`` of the
    training cases; ``validation``: the share of them that only chooses epoch, temperature and threshold.
    ``negatives_per_positive``: how many in training, and in validation and testing, of a disease of two
    states; what is too many is left out. ``false`` is none, where what is extended sets them.
    """

    attributes: Literal["all", "blanket", "figure"] | tuple[str, ...] = "all"
    leave_out: tuple[str, ...] = ("size",)
    targets: Literal["consensus", "readers"] = "consensus"
    window: tuple[float, float] = (-1000.0, 400.0)
    image_size: Positive | None = None
    fraction: Share = 1.0
    validation: Annotated[float, Field(ge=0, le=0.5, strict=True)] = 0.1
    negatives_per_positive: tuple[Rate, Rate] | None = None

    @field_validator("negatives_per_positive", mode="before")
    @classmethod
    def _two_ratios(cls, ratios: object) -> object:
        if ratios is False:  # what is extended may set them, and TOML has no word for "not set"
            return None
        return tuple(ratios) if isinstance(ratios, list) else ratios

    @field_validator("attributes", mode="before")
    @classmethod
    def _list_or_word(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("fraction")
    @classmethod
    def _in_quarters(cls, fraction: float) -> float:
        if fraction not in (0.25, 0.5, 0.75, 1):
            raise ValueError("0.25, 0.5, 0.75 or 1: the nested parts that a dataset's splits have")
        return fraction

    @field_validator("window", mode="before")
    @classmethod
    def _rises(cls, window: object) -> object:
        match window:
            case [int() | float() as low, int() | float() as high] if low < high:
                return window
        raise ValueError("two numbers, the lower one first")


class Backbone(Section):
    """The network that sees the image; see `radreason.nn.image_encoder`. ``pyramid = false``: no pyramid.

    ``weights``: a file of weights published for ImageNet that training starts from, in two dimensions.
    """

    name: Literal["resnet50", "efficientnet-b4", "densenet121", "compact"] = "efficientnet-b4"
    weights: str | None = None
    conv1_stride: Literal[1, 2] | None = None
    width: Positive | None = None
    pyramid: Positive | Literal[False] = 256
    scales: Positive | None = None
    pooled_width: Positive | None = None
    features: Positive = 512
    rectify: bool = True


class Network(Section):
    """A Bayesian network and how evidence is put to it.

    ``structure``: the "best" graph by ``score``, a "tree", "naive" or "empty". ``given`` is a network folder
    or file to start from instead. ``disease``: its table in full, or of few parameters
    ("logistic", "ordinal"), as the child of all attributes. ``evidence``: the belief as it is
    ("likelihood", the paper's), or freed of its prior, "ratio" (p / prior)^t or "prior" p / prior^t, at
    a ``temperature`` t that is learned or not.
    """

    structure: Literal["best", "tree", "naive", "empty"] = "best"
    given: str | None = None
    score: Literal["bic", "aic", "bdeu"] = "bic"
    max_parents: Natural | None = None
    pseudocount: Weight = 0.0
    disease: Literal["full", "logistic", "ordinal"] = "full"
    evidence: Literal["likelihood", "ratio", "prior"] = "likelihood"
    temperature: Rate = 1.0
    learn_temperature: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> Network:
        if self.structure != "best" and self.disease != "full":
            raise ValueError(f"structure = 'best', with which alone disease = {self.disease!r} goes")
        if self.structure != "best" and self.max_parents is not None:
            raise ValueError("structure = 'best', with which alone max_parents goes")
        if self.disease != "full" and self.max_parents is not None:
            raise ValueError("no max_parents, for the disease is the child of all attributes")
        return self


class Graph(Section):
    """The graph branch; see `radreason.nn.gcn.GraphBranch`. ``attention = false``: none from BN-1."""

    channels: Positive = 64
    layers: Positive = 3
    edges: Literal["unit", "free", "uniform"] = "free"
    aggregate: Literal["max", "mean", "sum"] = "max"
    depth: Positive = 1
    squeeze_excite: bool = True
    attention: Literal["sigmoid", "softmax", False] = "sigmoid"
    shortcut: Literal["modulated", "plain"] = "modulated"
    shared: bool = False


class Fusion(Section):
    """The residual fusion; see `radreason.nn.fusion.ResidualFusion`."""

    form: Literal["probability", "log"] = "probability"
    attributes: Literal["each", "together"] = "each"


class Relation(Section):
    """The relation network behind the graph; see `radreason.nn.rivals.relation.RelationNetwork`."""

    width: Positive = 256
    depth: Positive = 4
    dropout: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.5


class Gru(Section):
    """Messages between variables; see `radreason.nn.rivals.gru.GatedMessages`."""

    channels: Positive = 64
    steps: Positive = 3


class Bottleneck(Section):
    """The disease from attributes alone; see `radreason.nn.rivals.bottleneck`. ``hidden``: units between."""

    training: Literal["sequential", "joint"] = "sequential"
    hidden: Positive | Literal[False] = False


class Embedding(Section):
    """Attributes as vectors; see `radreason.nn.rivals.embedding`."""

    length: Positive = 16
    corrected: Share = 0.25


class TwoBranches(Section):
    """The whole image and its hot region; see `radreason.nn.rivals.two_branches`."""

    threshold: Share = 0.7


class Primitives(Section):
    """Words for pieces of an image; see `radreason.classic.segments`."""

    looks: Positive = 32
    forms: Positive = 16


class Svm(Section):
    """One support vector machine per attribute; see `radreason.classic.machines`."""

    cost: Rate = 1.0


class Forest(Section):
    """The random forest of the oracle; see `radreason.classic.oracle`."""

    trees: Positive = 500


Method = Literal[
    "hybrid",
    "relation",
    "gru",
    "bottleneck",
    "embedding",
    "two-branches",
    "adinet",
    "primitives",
    "svm",
    "oracle-forest",
    "oracle-network",
]

WITHOUT_WEIGHTS = ("primitives", "svm", "oracle-forest", "oracle-network")
"""Methods that are no neural networks: they learn at once and leave predictions, but no weights."""


class Model(Section):
    """The parts of the network; ``false`` in the place of one switches it off.

    ``stand_in = false``: without BN-1 the graph's answer is the fused belief, and P0_B has no part in it.
    Another ``method`` than the hybrid has its own settings under its own name, and neither networks nor
    fusion; "relation" alone has the graph, without the beliefs of a network to attend by, and
    "oracle-network" the first network.
    """

    method: Method = "hybrid"
    backbone: Backbone = Backbone()
    bias: bool = True
    first_net: Network | Literal[False] = Network()
    graph: Graph | Literal[False] = Graph()
    fusion: Fusion | Literal[False] = Fusion()
    second_net: Network | Literal[False] = Network()
    through_nets: bool = True
    stand_in: bool = True
    relation: Relation = Relation()
    gru: Gru = Gru()
    bottleneck: Bottleneck = Bottleneck()
    embedding: Embedding = Embedding()
    two_branches: TwoBranches = TwoBranches()
    primitives: Primitives = Primitives()
    svm: Svm = Svm()
    forest: Forest = Forest()

    @model_validator(mode="after")
    def _parts_of_its_method(self) -> Model:
        if not self.stand_in:
            attends = self.graph is not False and self.graph.attention is not False
            if self.first_net is not False or self.fusion is not False or attends or self.graph is False:
                raise ValueError(
                    "stand_in = true, unless first_net, fusion and graph.attention are false and graph is not"
                )
        if self.method == "hybrid":
            return self
        own = {"relation": "graph", "oracle-network": "first_net"}.get(self.method)
        off = [name for name in ("first_net", "graph", "fusion", "second_net") if name != own]
        for name in off:
            if getattr(self, name) is not False:
                raise ValueError(f"{name} = false, for the method {self.method!r} has none")
        if self.method == "relation" and (self.graph is False or self.graph.attention is not False):
            raise ValueError("a graph, with attention = false, for no network has beliefs to attend by")
        if self.method == "oracle-network" and self.first_net is False:
            raise ValueError("first_net, the network that is asked")
        return self


class Loss(Section):
    """Weights of the losses; see `radreason.nn.losses.HybridLoss`. ``gcn_out`` is not the paper's.

    ``each_attribute``: what an attribute weighs where the disease weighs one.
    """

    gcn_in: Weight = 0.2
    evidence: Weight = 0.2
    attributes: Weight = 0.2
    disease: Weight = 0.2
    final: Weight = 0.2
    gcn_out: Weight = 0.0
    each_attribute: Weight = 1.0
    form: Literal["per_element", "cross_entropy"] = "per_element"
    balance: bool = False


class Refit(Section):
    """Phase 2: when the networks are learned anew, and from what.

    ``schedule = "once"``: from ground truth, before training, and never again. Otherwise after every
    ``every`` epochs, counted from the end of ``warm_up`` epochs, ``most`` times. ``truth_share`` of the
    weight of the labels stays with ground truth, the rest goes to the latest predictions. ``truth``: the
    consensus of a case, or one row per reader. ``predictions``: each case as the "product" of
    its beliefs, or as ``draws`` from their "joint" posterior under the network of before.
    ``structure = false`` learns tables alone anew.
    """

    schedule: Literal["alternate", "once"] = "alternate"
    every: Positive = 1
    most: Natural = 20
    warm_up: Natural = 0
    truth_share: Share = 0.0
    truth: Literal["consensus", "readers"] = "consensus"
    predictions: Literal["product", "joint"] = "product"
    draws: Positive = 8
    structure: bool = True


class Augment(Section):
    """Changes of the images in training; see `radreason.train.augment.Augmentation`."""

    flips: Annotated[bool, Field(strict=True)] | Literal["left-right"] = True
    turns: Literal["none", "plane", "cube"] = "cube"
    degrees: Annotated[float, Field(ge=0, le=180, strict=True)] = 0.0
    shift: Natural = 8
    scale: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.0


class Train(Section):
    """How the weights are learned.

    ``choose``: the "last" epoch, or the best by the validation cases, after the share ``choose_from`` of all.
    ``equal_steps``: an epoch of a ``data.fraction`` shows its cases 1 / fraction times, rounded, and so has
    as many steps as one of all cases.
    """

    epochs: Positive = 160
    batch: Annotated[int, Field(ge=2, strict=True)] = 6
    accumulate: Positive = 1
    equal_steps: bool = False
    optimizer: Literal["adam", "adamw"] = "adam"
    rate: Rate = 1e-3
    weight_decay: Weight = 1e-4
    schedule: Literal["step", "cosine"] = "step"
    step_every: Positive = 30
    step_factor: Rate = 0.1
    rising: Natural = 0
    clip: Rate | None = None
    augment: Augment | Literal[False] = Augment()
    choose: Literal["last", "log_loss", "auc"] = "log_loss"
    choose_from: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.0
    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] = "32-true"
    recompute: bool = False
    keep_images: bool = False
    seed: Natural = 0


class Experiment(Section):
    """One file, one experiment."""

    preset: Preset = "paper"
    data: Data = Data()
    model: Model = Model()
    loss: Loss = Loss()
    refit: Refit = Refit()
    train: Train = Train()


def load(path: Path | str, changes: Sequence[str] = ()) -> Experiment:
    """Read an experiment: its preset, what it extends, itself, and then ``key=value`` changes.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".toml") as file:
    ...     load(file.name, ["preset=recommended", "model.graph.layers=2"]).model.graph.layers
    2
    """
    path = Path(path)
    settings = _with_bases(path, ())
    for change in changes:
        _merge(settings, _change(change))
    return resolve(settings, str(path))


def resolve(settings: Mapping[str, Any], source: str = "experiment") -> Experiment:
    """Put a preset below settings and check the whole; what a plan holds is whole already."""
    preset = settings.get("preset", "paper")
    merged: dict[str, Any] = {}
    if isinstance(preset, str) and preset in preset_names():
        _merge(merged, tomllib.loads((files("radreason") / f"presets/{preset}.toml").read_text("utf-8")))
    _merge(merged, settings)
    try:
        return Experiment.model_validate(merged)
    except ValidationError as error:
        raise _explain(error, source) from None


def preset_names() -> tuple[str, ...]:
    """Name the presets that there are."""
    return ("paper", "recommended")


def _with_bases(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in below:
        raise InputError(found=f"{path} extends itself", expected="a base that stands alone")
    text = read_text(path, MAX_BYTES, "an experiment, a file of TOML")
    try:
        own = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(found=f"{path}: {error}", expected="an experiment in TOML") from None
    base = own.pop("extends", None)
    if base is None:
        return own
    if not isinstance(base, str):
        raise InputError(found=f"{path}: extends = {base!r:.60}", expected="the path of one experiment")
    settings = _with_bases(path.parent / base, (*below, path.resolve()))
    _merge(settings, own)
    return settings


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    """Let tables differ key by key; anything else replaces what was there."""
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(below.get(key), dict):
            _merge(below[key], value)
        else:
            below[key] = _copied(value)


def _copied(value: Any) -> Any:
    return {key: _copied(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _change(text: str) -> dict[str, Any]:
    """Read ``model.graph.layers=3``; what is no value of TOML is text."""
    key, equals, value = text.partition("=")
    names = [name.strip() for name in key.split(".")]
    if not equals or not all(names):
        raise InputError(
            found=f"--set {text[:80]}",
            expected="key=value, such as model.graph.layers=3 or model.graph=false",
        )
    try:
        said: Any = tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        said = value.strip()
    for name in reversed(names):
        said = {name: said}
    settings: dict[str, Any] = said
    return settings


def _explain(error: ValidationError, source: str) -> InputError:
    """Say the first thing that is wrong, with the key as a person would write it."""
    complaints = error.errors(include_url=False)
    # Where a part may also be false, pydantic complains of both: the one that looked inside says more.
    same = [c for c in complaints if c["loc"][:2] == complaints[0]["loc"][:2]]
    first = max(same, key=lambda complaint: len(complaint["loc"]))
    where = _path_of(first["loc"])
    if first["type"] == "extra_forbidden":
        where.append(str(first["loc"][-1]))
    source = f"{source}: {'.'.join(where) or 'experiment'} = {first['input']!r:.60}"
    if first["type"] == "extra_forbidden":
        known = _keys_beside(where)
        near = get_close_matches(where[-1], known, n=1)
        return InputError(
            found=source,
            expected=f"one of {', '.join(known)}",
            hint=f"{near[0]}, if that was meant" if near else "",
        )
    may_be_off = [_path_of(c["loc"]) for c in same if c.get("ctx", {}).get("expected") == "False"]
    or_off = " or false" if where in may_be_off and first["type"] != "value_error" else ""
    if first["type"] == "literal_error":
        return InputError(found=source, expected=f"one of {first['ctx']['expected']}")
    if first["type"].startswith("model"):
        return InputError(found=source, expected=f"a table of settings{or_off}")
    message = first["msg"].removeprefix("Value error, ").replace("Input should be ", "")
    return InputError(found=source, expected=message + or_off)


def _path_of(location: Sequence[int | str]) -> list[str]:
    """Keep the keys of a location, without pydantic's words for the kinds it tried."""
    keys: list[str] = []
    section: Any = Experiment
    for part in location:
        if isinstance(section, type) and issubclass(section, BaseModel):
            if part not in section.model_fields:
                continue
            section = _section_of(section, str(part)) or section.model_fields[str(part)].annotation
            keys.append(str(part))
    return keys


def _section_of(section: type[BaseModel], name: str) -> type[BaseModel] | None:
    annotation: Any = section.model_fields[name].annotation
    options = [annotation, *getattr(annotation, "__args__", ())]
    return next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)


def _keys_beside(where: Sequence[str]) -> list[str]:
    """List the keys of the section in which a key was looked for."""
    section: type[BaseModel] = Experiment
    for name in where[:-1]:
        section = _section_of(section, name) or section
    return list(section.model_fields)
