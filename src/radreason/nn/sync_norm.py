"""Batch norm over the batches of all processes together, on any device.

torch has one for GPUs only; this one takes whatever tensors the processes can add up, so that a training
on two CPUs is the same as one on a single CPU with the whole batch.

Shape letters: B batch, C channels.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from radreason.errors import InputError


class SyncNorm(_BatchNorm):
    """Batch norm in 1-D, 2-D and 3-D alike, whose statistics in training are those of all processes.

    Every process must come by with a batch, of whatever size. As in one process, the gradient of the input is
    that of the sum of all processes' losses, and the gradients of the parameters are each process's
    share of it. In evaluation, and where there is one process only, it is torch's own batch norm.

    >>> SyncNorm(3)(torch.rand(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2 or input.shape[1] != self.num_features:
            raise InputError(
                found=f"batch norm was given a tensor of shape {tuple(input.shape)}",
                expected=f"(batch, {self.num_features}, ...)",
            )

    def forward(self, input: Float[Tensor, "B C *space"]) -> Float[Tensor, "B C *space"]:
        """Normalise each channel."""
        if not (self.training and _processes() > 1):
            normalised: Tensor = super().forward(input)
            return normalised
        self._check_input_dim(input)
        x = input.to(torch.promote_types(input.dtype, torch.float32))  # sums in half precision are none
        others, like_x = [0, *range(2, x.ndim)], (1, -1, *[1] * (x.ndim - 2))

        # Mean first and then the squares around it: squares around zero cancel where the mean is large.
        size = x.new_tensor([x.numel() / self.num_features])
        sums, count = _sum_of_all(torch.cat([x.sum(others), size])).split([self.num_features, 1])
        mean = sums / count
        centred = x - mean.reshape(like_x)
        squares = _sum_of_all(centred.square().sum(others))
        self._follow(mean.detach(), (squares / (count - 1)).detach())

        scale = (squares / count + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        normalised = centred * scale.reshape(like_x)
        if self.bias is not None:
            normalised = normalised + self.bias.reshape(like_x)
        return normalised.to(input.dtype)

    @torch.no_grad()
    def _follow(self, mean: Float[Tensor, " C"], variance: Float[Tensor, " C"]) -> None:
        """Let the running statistics follow those of the batch, as torch does."""
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        share = self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if share is None:  # the mean over all batches so far
                share = 1 / float(self.num_batches_tracked)
        share = share or 0.0
        self.running_mean.lerp_(mean.to(self.running_mean), share)
        self.running_var.lerp_(variance.to(self.running_var), share)


def synchronise(module: nn.Module) -> nn.Module:
    """Put a `SyncNorm` in the place of every batch norm; parameters, buffers and their names stay.

    In place, and given back, because a module that is itself a batch norm can only be replaced by its owner.

    >>> net = synchronise(nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3)))
    >>> type(net[1]).__name__, list(net[1].state_dict())
    ('SyncNorm', ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'])
    """
    made: dict[nn.Module, SyncNorm] = {}  # a norm in two places is one norm afterwards, too
    for parent in list(module.modules()):
        for name, child in parent._modules.items():
            if isinstance(child, BATCH_NORMS):
                if child not in made:
                    made[child] = _synchronised(child)
                parent._modules[name] = made[child]
    return _synchronised(module) if isinstance(module, BATCH_NORMS) else module


BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def _synchronised(norm: _BatchNorm) -> SyncNorm:
    """Share the tensors, so that an optimiser that was made before keeps training them."""
    synced = SyncNorm(
        norm.num_features, norm.eps, norm.momentum, affine=False, track_running_stats=norm.track_running_stats
    )
    synced.affine = norm.affine
    for name, parameter in norm._parameters.items():
        synced.register_parameter(name, parameter)
    for name, buffer in norm._buffers.items():
        synced.register_buffer(name, buffer)
    return synced.train(norm.training)


def _processes() -> int:
    there = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if there else 1


class _SumOfAll(torch.autograd.Function):
    """The sum over processes; what it means to their losses is the sum over processes, too.

    torch has this one as well, but in a module of which it warns that it is going to leave.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        total = own.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, by_total: Tensor) -> Tensor:
        return _sum_of_all(by_total)


def _sum_of_all(own: Tensor) -> Tensor:
    total: Tensor = _SumOfAll.apply(own)  # type: ignore[no-untyped-call]
    return total
