"""The window against its definition, intensity by intensity."""

import pytest
import torch
from torch.testing import assert_close

from radreason import InputError
from radreason.nn.window import Window


def by_definition(value, low, high):
    return 2 * (min(max(value, low), high) - low) / (high - low) - 1


@pytest.mark.parametrize("bounds", [(-1000, 400), (0.25, 0.75), (-3e4, -2e4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_clips_and_scales(bounds, dtype):
    low, high = bounds
    images = torch.linspace(low - (high - low), high + (high - low), 60, dtype=dtype).reshape(2, 1, 5, 6)
    seen = Window(low, high)(images)
    want = [by_definition(value, low, high) for value in images.flatten().tolist()]
    assert seen.dtype == dtype
    assert_close(seen, torch.tensor(want, dtype=dtype).reshape(2, 1, 5, 6))
    assert (seen.min(), seen.max()) == (-1, 1)


def test_integers_do_not_run_over():
    stored = torch.tensor([-32768, -1000, 400, 32767], dtype=torch.int16)
    assert Window(-1000, 400)(stored).tolist() == [-1, -1, 1, 1]


def test_infinities_stay_at_the_ends_and_what_is_no_number_stays_none():
    seen = Window(-1000, 400)(torch.tensor([-torch.inf, torch.inf, torch.nan]))
    assert seen[:2].tolist() == [-1, 1]
    assert seen[2].isnan()


def test_gradients_pass_within_the_window_alone():
    images = torch.tensor([-2000.0, -300.0, 3000.0], requires_grad=True)
    Window(-1000, 400)(images).sum().backward()
    assert_close(images.grad, torch.tensor([0.0, 2 / 1400, 0.0]))


def test_its_bounds_are_shown_and_no_weights():
    window = Window(-1000, 400)
    assert repr(window) == "Window(-1000, 400)"
    assert not window.state_dict()


@pytest.mark.parametrize("bounds", [(400, -1000), (0, 0), (0, float("inf")), (float("nan"), 1)])
def test_what_is_no_window_is_refused(bounds):
    with pytest.raises(InputError) as error:
        Window(*bounds)
    assert str(error.value) == (
        f"a window from {bounds[0]:g} to {bounds[1]:g}\n"
        "  expected: two finite numbers, the lower one first\n"
        "  try: Window(-1000, 400), which suits lungs in Hounsfield units"
    )
