"""What people write in an experiment, and what they are told when it cannot be meant."""

import subprocess
import sys

import pytest

from radreason import InputError, config

GRAPH_KEYS = "channels, layers, edges, aggregate, depth, squeeze_excite, attention, shortcut, shared"
NETWORK_KEYS = (
    "structure, given, score, max_parents, pseudocount, disease, evidence, temperature, learn_temperature"
)
AN_EXPERIMENT = "preset, data, model, loss, refit, train"


@pytest.fixture
def write(tmp_path):
    def written(text, name="experiment.toml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return written


def refused(path, changes=()):
    with pytest.raises(InputError) as error:
        config.load(path, changes)
    return str(error.value).replace(str(path), "experiment.toml")


@pytest.fixture
def complaint(write):
    """Give the whole message about one change of an empty experiment."""
    return lambda change: refused(write(""), [change])


@pytest.mark.parametrize(
    "off",
    [
        ("model.fusion=false", "model.graph.attention=false"),
        ("model.first_net=false", "model.graph.attention=false"),
        ("model.first_net=false", "model.fusion=false"),
        ("model.first_net=false", "model.fusion=false", "model.graph=false"),
    ],
)
def test_the_graph_stands_alone_only_where_nothing_of_the_first_network_is_left(write, off):
    said = refused(write(""), ["model.stand_in=false", *off])
    assert "expected: stand_in = true, unless first_net, fusion and graph.attention are false" in said


@pytest.mark.parametrize(
    ("change", "said", "expected", "meant"),
    [
        ("modle.bias=true", "modle = {'bias': True}", AN_EXPERIMENT, "model"),
        ("model.graph.layer=3", "model.graph.layer = 3", GRAPH_KEYS, "layers"),
        ("model.first_net.max_parent=2", "model.first_net.max_parent = 2", NETWORK_KEYS, "max_parents"),
        (
            "train.augment.flip=true",
            "train.augment.flip = True",
            "flips, turns, degrees, shift, scale",
            "flips",
        ),
        ("model.graph.x=3", "model.graph.x = 3", GRAPH_KEYS, None),
        ("extends=lidc.toml", "extends = 'lidc.toml'", AN_EXPERIMENT, None),
    ],
)
def test_a_key_that_nobody_knows_is_told_its_likely_name(complaint, change, said, expected, meant):
    hint = f"\n  try: {meant}, if that was meant" if meant else ""
    assert complaint(change) == f"experiment.toml: {said}\n  expected: one of {expected}{hint}"


@pytest.mark.parametrize(
    ("change", "said", "expected"),
    [
        ("train.epochs=0", "train.epochs = 0", "greater than or equal to 1"),
        ("train.epochs=2.5", "train.epochs = 2.5", "a valid integer"),
        ("train.epochs=true", "train.epochs = True", "a valid integer"),
        ("train.epochs='3'", "train.epochs = '3'", "a valid integer"),
        ("train.batch=1", "train.batch = 1", "greater than or equal to 2"),
        ("train.rate=0", "train.rate = 0", "greater than 0"),
        ("train.rate=nan", "train.rate = nan", "a finite number"),
        ("train.rate=", "train.rate = ''", "a valid number"),
        ("train.clip=fast", "train.clip = 'fast'", "a valid number"),
        ("train.optimizer=adamW", "train.optimizer = 'adamW'", "one of 'adam' or 'adamw'"),
        ("train.augment.scale=1", "train.augment.scale = 1", "less than 1"),
        ("train=3", "train = 3", "a table of settings"),
        ("loss.final=-1", "loss.final = -1", "greater than or equal to 0"),
        ("refit.truth_share=1.5", "refit.truth_share = 1.5", "less than or equal to 1"),
        ("data.validation=0.6", "data.validation = 0.6", "less than or equal to 0.5"),
        ("data.attributes=none", "data.attributes = 'none'", "one of 'all', 'blanket' or 'figure'"),
        ("data.window=[400, -1000]", "data.window = [400, -1000]", "two numbers, the lower one first"),
        ("data.window=[1]", "data.window = [1]", "two numbers, the lower one first"),
        (
            "data.fraction=0.3",
            "data.fraction = 0.3",
            "0.25, 0.5, 0.75 or 1: the nested parts that a dataset's splits have",
        ),
        ("preset=papers", "preset = 'papers'", "one of 'paper' or 'recommended'"),
        ("preset=3", "preset = 3", "one of 'paper' or 'recommended'"),
    ],
)
def test_a_value_that_cannot_be_is_told_what_can(complaint, change, said, expected):
    assert complaint(change) == f"experiment.toml: {said}\n  expected: {expected}"


@pytest.mark.parametrize(
    ("change", "said", "expected"),
    [
        ("model.graph=true", "model.graph = True", "a table of settings or false"),
        ("model.first_net=3", "model.first_net = 3", "a table of settings or false"),
        ("train.augment=true", "train.augment = True", "a table of settings or false"),
        ("model.backbone=false", "model.backbone = False", "a table of settings"),
        ("model.backbone.pyramid=true", "model.backbone.pyramid = True", "a valid integer or false"),
        (
            "model.graph.attention=bayes",
            "model.graph.attention = 'bayes'",
            "one of 'sigmoid', 'softmax' or False",
        ),
        # what lies within a part that may be off may not itself be off
        ("model.graph.layers=0", "model.graph.layers = 0", "greater than or equal to 1"),
        ("model.graph.layers=false", "model.graph.layers = False", "a valid integer"),
        (
            "model.first_net.max_parents=-1",
            "model.first_net.max_parents = -1",
            "greater than or equal to 0",
        ),
        ("train.augment.degrees=200", "train.augment.degrees = 200", "less than or equal to 180"),
    ],
)
def test_only_what_can_be_off_is_said_to_be(complaint, change, said, expected):
    assert complaint(change) == f"experiment.toml: {said}\n  expected: {expected}"


@pytest.mark.parametrize("part", ["graph", "first_net", "second_net", "fusion"])
def test_false_switches_a_part_off_and_leaves_the_others(write, part):
    found = config.load(write(""), [f"model.{part}=false"]).model
    assert getattr(found, part) is False
    assert found == config.Model().model_copy(update={part: False})


@pytest.mark.parametrize(
    ("option", "what"), [("disease='logistic'", "disease = 'logistic'"), ("max_parents=2", "max_parents")]
)
def test_options_of_the_best_graph_do_not_go_with_another(write, option, what):
    path = write(f"[model.second_net]\nstructure = 'tree'\n{option}")
    assert refused(path).endswith(f"\n  expected: structure = 'best', with which alone {what} goes")


def test_a_disease_that_is_the_child_of_all_has_no_limit_of_parents(write):
    path = write("[model.second_net]\ndisease = 'ordinal'\nmax_parents = 2")
    assert refused(path).endswith(
        "\n  expected: no max_parents, for the disease is the child of all attributes"
    )


def test_a_file_that_is_no_toml_is_refused(write):
    assert refused(write("epochs")).endswith("\n  expected: an experiment in TOML")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert refused(tmp_path / "x.toml") == (
        "experiment.toml: no such file\n  expected: an experiment, a file of TOML"
    )


def test_a_file_differs_from_what_it_extends_key_by_key(write):
    write("[train]\nepochs = 7\nrate = 0.5\n[model.graph]\nlayers = 2\nchannels = 8", "base.toml")
    write('extends = "../base.toml"\n[train]\nrate = 0.25\n[model]\nfusion = false', "sub/middle.toml")
    top = write('extends = "middle.toml"\n[model.graph]\nchannels = 16', "sub/top.toml")
    found = config.load(top)
    assert (found.train.epochs, found.train.rate, found.model.fusion) == (7, 0.25, False)
    assert (found.model.graph.layers, found.model.graph.channels) == (2, 16)


def test_a_part_that_a_base_switched_off_begins_anew_from_its_defaults(write):
    write("[model]\ngraph = false", "base.toml")
    top = write('extends = "base.toml"\n[model.graph]\nlayers = 2')
    assert config.load(top).model.graph == config.Graph(layers=2)


@pytest.mark.parametrize("length", [1, 3])
def test_files_that_extend_each_other_in_a_ring_are_refused(write, tmp_path, length):
    for n in range(length):
        write(f'extends = "{(n + 1) % length}.toml"', f"{n}.toml")
    first = tmp_path / "0.toml"
    assert refused(first) == "experiment.toml extends itself\n  expected: a base that stands alone"


def test_a_file_extends_one_file_by_its_path(write):
    path = write("extends = ['a.toml', 'b.toml']")
    assert refused(path) == (
        "experiment.toml: extends = ['a.toml', 'b.toml']\n  expected: the path of one experiment"
    )


@pytest.mark.parametrize(
    ("change", "part", "key", "value"),
    [
        ("train.epochs=3", "train", "epochs", 3),
        (" train . epochs = 3 ", "train", "epochs", 3),
        ("train.rate=1e-2", "train", "rate", 0.01),
        ("train.rate=1", "train", "rate", 1.0),
        ("train.optimizer=adamw", "train", "optimizer", "adamw"),
        ('train.optimizer="adamw"', "train", "optimizer", "adamw"),
        ("train.augment=false", "train", "augment", False),
        ("data.negatives_per_positive=false", "data", "negatives_per_positive", None),
        ("data.negatives_per_positive=[8, 3]", "data", "negatives_per_positive", (8.0, 3.0)),
        ("train.augment={shift=2}", "train", "augment", config.Augment(shift=2)),
        ("data.attributes=['a', 'b']", "data", "attributes", ("a", "b")),
        ("data.leave_out=[]", "data", "leave_out", ()),
        ("model.first_net.given=a=b.bif", "model", "first_net", config.Network(given="a=b.bif")),
    ],
)
def test_set_takes_values_of_toml_and_bare_words(write, change, part, key, value):
    found = config.load(write(""), [change])
    assert getattr(getattr(found, part), key) == value
    assert found == config.Experiment().model_copy(
        update={part: getattr(config.Experiment(), part).model_copy(update={key: value})}
    )


@pytest.mark.parametrize("change", ["train", "=3", "train..rate=3", ".rate=3"])
def test_set_without_key_and_value_is_refused(complaint, change):
    assert complaint(change) == (
        f"--set {change}\n  expected: key=value, such as model.graph.layers=3 or model.graph=false"
    )


def test_later_changes_win(write):
    assert config.load(write(""), ["train.seed=1", "train.seed=2"]).train.seed == 2


def test_a_preset_lies_below_the_file_wherever_it_is_named(write):
    write("[refit]\nevery = 7", "base.toml")
    path = write('extends = "base.toml"\n[model.graph]\nedges = "uniform"')
    found = config.load(path, ["preset=recommended", "refit.warm_up=1"])
    assert (found.refit.every, found.refit.warm_up, found.model.graph.edges) == (7, 1, "uniform")
    assert (found.refit.predictions, found.loss.gcn_out) == ("joint", 0.2)


def test_the_presets_differ_by_settings_alone():
    assert config.preset_names() == ("paper", "recommended")
    paper, recommended = (config.resolve({"preset": name}) for name in config.preset_names())
    assert paper == config.Experiment()
    before, after = paper.model_dump(), recommended.model_dump()
    assert {key for key in before if before[key] != after[key]} == set(after) - {"train"}
    assert type(recommended) is type(paper)


@pytest.mark.parametrize("preset", config.preset_names())
def test_what_a_plan_holds_is_the_whole_experiment(preset):
    settings = config.resolve({"preset": preset, "train": {"seed": 3}, "data": {"attributes": ["a"]}})
    assert config.resolve(settings.model_dump(mode="json")) == settings


def test_what_was_read_does_not_change():
    with pytest.raises(ValueError, match="frozen"):
        config.Experiment().train.epochs = 3


def test_the_defaults_are_the_figures_of_the_paper():
    """Each figure with its place in the paper: Medical Image Diagnosis, and Algorithm, Training Scheme."""
    settings = config.Experiment()
    # "Pulmonary Nodule Classification", Experimental Setup: 160 epochs, Adam, initial rate 1e-3, reduced by
    # a factor of 10 after every 30 epochs, weight decay 1e-4, batch size 6
    train = settings.train
    assert (train.epochs, train.optimizer, train.rate, train.weight_decay) == (160, "adam", 1e-3, 1e-4)
    assert (train.schedule, train.step_every, train.step_factor, train.batch) == ("step", 30, 0.1, 6)
    assert (train.rising, train.clip, train.accumulate) == (0, None, 1)
    # "Training Loss": five losses, w_i = 0.2
    paper_has = ("gcn_in", "evidence", "attributes", "disease", "final")
    assert [getattr(settings.loss, name) for name in paper_has] == [0.2] * 5
    assert (settings.loss.gcn_out, settings.loss.form) == (0, "per_element")
    # "Training Scheme": two phases that alternate, 20 updates at most; ground truth for the first networks
    # only, then the latest predictions; dynamic programming, maximum likelihood
    refit = settings.refit
    assert (refit.schedule, refit.every, refit.most, refit.warm_up) == ("alternate", 1, 20, 0)
    assert (refit.truth_share, refit.predictions, refit.structure) == (0, "product", True)
    for net in (settings.model.first_net, settings.model.second_net):
        assert (net.structure, net.score, net.max_parents, net.pseudocount) == ("best", "bic", None, 0)
        assert (net.disease, net.evidence) == ("full", "likelihood")
    # "BN-1 learned from LIDC-IDRI", the figure: SPI, SUB, CAL, MAR and LOB around MAL
    assert set(config.PAPER_FIGURE) == {"spiculation", "subtlety", "calcification", "margin", "lobulation"}


def test_reading_an_experiment_imports_no_torch():
    code = (
        "import sys; from radreason import config; config.resolve({'preset': 'recommended'});"
        "print(sorted({'torch', 'numpy', 'monai', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
