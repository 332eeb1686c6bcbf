"""Batch norm over two processes against torch's own in one process, on the joined batch."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed, nn
from torch.testing import assert_close

from radreason.errors import InputError
from radreason.nn.image_encoder import image_encoder
from radreason.nn.sync_norm import SyncNorm, synchronise

SPLIT = [3, 1]
"""Cases per process."""

NETS = {
    "1-D": lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)),
    "2-D": lambda: nn.BatchNorm2d(3, eps=0.1, momentum=0.3),
    "3-D": lambda: nn.Sequential(nn.BatchNorm3d(3), nn.ReLU(), nn.BatchNorm3d(3)),
    "mean of all batches": lambda: nn.BatchNorm2d(3, momentum=None),
    "no parameters": lambda: nn.BatchNorm2d(3, affine=False),
    "no running statistics": lambda: nn.BatchNorm2d(3, track_running_stats=False),
    "frozen": lambda: nn.BatchNorm2d(3).requires_grad_(False),
    "far from zero": lambda: nn.BatchNorm2d(3),
    "half precision": lambda: nn.BatchNorm2d(3),
    "a whole encoder": lambda: image_encoder(
        "compact", 2, in_channels=3, width=2, pyramid_channels=4, features=3
    ),
}
COARSE = {"far from zero": torch.float32, "half precision": torch.bfloat16}


def trained(name, rows, change=lambda net: net):
    """Take three steps on some rows of each batch; give all that can be seen of them."""
    torch.manual_seed(0)
    dtype = COARSE.get(name, torch.float64)
    net = NETS[name]().to(torch.promote_types(dtype, torch.float32))
    for parameter in net.parameters():
        nn.init.normal_(parameter)
    net = change(net)
    space = {"1-D": (), "3-D": (2, 3, 2)}.get(name, (9, 8))
    seen = {}
    for number in range(3):
        whole = torch.randn(sum(SPLIT), 3, *space, dtype=torch.float64)
        whole = whole * (1 + number) + (3000 if name == "far from zero" else number)
        x = whole.to(dtype)[rows].requires_grad_()
        net.zero_grad()
        y = net(x)
        target = torch.linspace(-1, 1, sum(SPLIT)).to(y)[rows]
        (y - target.reshape(-1, *[1] * (y.ndim - 1))).pow(3).sum().backward()
        seen |= {f"{number} output": y.detach(), f"{number} input gradient": x.grad}
        seen |= {f"{number} gradient of {n}": p.grad for n, p in net.named_parameters() if p.requires_grad}
        seen |= {f"{number} buffer {n}": b.clone() for n, b in net.named_buffers()}
    if name != "no running statistics":  # without them, evaluation takes those of the batch it has
        seen["answer"] = net.eval()(x).detach()
    return seen


def one_of_two(rank, folder):
    """Be a process that sees its own rows only."""
    meeting = (Path(folder) / "meeting").absolute().as_uri()
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    rows = slice(0, SPLIT[0]) if rank == 0 else slice(SPLIT[0], None)
    torch.save({name: trained(name, rows, synchronise) for name in NETS}, Path(folder) / f"{rank}.pt")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """Start them once for all tests, with shapes checked at run time as they are here."""
    folder = tmp_path_factory.mktemp("two")
    code = """if True:
        import jaxtyping, runpy, sys
        jaxtyping.install_import_hook("radreason", "beartype.beartype")
        runpy.run_path(sys.argv[1])["one_of_two"](int(sys.argv[2]), sys.argv[3])
        """
    started = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", code, __file__, str(rank), folder])
        for rank in range(2)
    ]
    try:
        assert [process.wait(timeout=120) for process in started] == [0, 0]
    finally:
        for process in started:
            process.kill()
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_two_processes_are_as_one_with_the_whole_batch(name, two_processes):
    here, there = (process[name] for process in two_processes)
    close = 5e-2 if name in COARSE else 1e-9
    for what, want in trained(name, slice(None)).items():
        if "gradient of" in what:
            got = here[what] + there[what]
        elif "buffer" in what:
            got = here[what]
            assert got.equal(there[what]), what
        else:
            got = torch.cat([here[what], there[what]])
        assert_close(got, want, rtol=close, atol=close, msg=lambda told, what=what: f"{what}: {told}")


@pytest.mark.parametrize("train", [True, False])
def test_one_process_has_torchs_own_batch_norm(train):
    x = torch.randn(4, 3, 5, 5)
    torchs, ours = nn.BatchNorm2d(3).train(train), SyncNorm(3).train(train)
    assert ours(x).equal(torchs(x))
    assert_close(ours.state_dict(), torchs.state_dict())


def test_names_tensors_and_modes_stay():
    net = nn.Sequential(
        nn.Conv2d(1, 2, 1),
        nn.BatchNorm2d(2, eps=0.5, momentum=None).eval(),
        nn.Sequential(nn.BatchNorm3d(2, affine=False), nn.BatchNorm1d(2, track_running_stats=False)),
    )
    net.append(net[1])
    options = [(m.eps, m.momentum, m.affine, m.track_running_stats, m.training) for m in norms(net)]
    tensors = dict(net.state_dict(keep_vars=True))

    synced = synchronise(net)
    assert synced is net
    assert [type(m) for m in norms(net)] == [SyncNorm] * 3
    assert options == [(m.eps, m.momentum, m.affine, m.track_running_stats, m.training) for m in norms(net)]
    assert list(net.state_dict()) == list(tensors)
    assert all(tensor is tensors[name] for name, tensor in net.state_dict(keep_vars=True).items())
    assert net[1] is net[3]
    assert isinstance(net[0], nn.Conv2d)


def norms(net):
    return [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]


def test_a_batch_norm_alone_is_replaced_by_what_is_given_back():
    norm = nn.BatchNorm1d(3)
    synced = synchronise(norm)
    assert isinstance(synced, SyncNorm)
    assert synced.weight is norm.weight


def test_an_optimiser_that_was_made_before_trains_them():
    net = nn.Sequential(nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    synchronise(net)(torch.randn(4, 2)).square().sum().backward()
    optimizer.step()
    assert not net[0].weight.equal(torch.ones(2))


@pytest.mark.parametrize("shape", [(4, 2), (4, 2, 5)])
def test_other_channels_are_refused(shape):
    with pytest.raises(InputError) as error:
        SyncNorm(3)(torch.rand(shape))
    assert str(error.value) == (
        f"batch norm was given a tensor of shape {shape}\n  expected: (batch, 3, ...)"
    )
