"""From a dataset on disk to tensors of images, as they are or augmented, and cases in batches.

Shape letters: B batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float32, Int16, Int64
from torch import Tensor

from radreason.data.dataset import PATCHES, Dataset
from radreason.errors import InputError
from radreason.train.augment import Augmentation, centred
from radreason.train.patch_file import PatchFile

_READ_AT_ONCE = 256
_NAMED = 10

Rows = Sequence[int] | np.ndarray


class Images:
    """The images of a dataset, in HU or whatever it holds: models normalise for themselves.

    ``core`` is the shape that a model sees; what lies around it in the patches is room to shift and turn.
    ``keep`` holds all patches on the device instead of reading them each time; images are the same.
    """

    def __init__(
        self,
        dataset: Dataset,
        core: tuple[int, ...] | None = None,
        device: torch.device | str = "cpu",
        keep: bool = False,
    ) -> None:
        self.dataset = dataset
        self.core = dataset.core if core is None else tuple(core)
        self.device = torch.device(device)
        self.space: tuple[int, ...] = dataset.patches.shape[1:]
        self._corner = centred(self.space, self.core)
        self._kept = self._all() if keep else None

    def training(
        self, rows: Rows, augmentation: Augmentation, seed: int, epoch: int
    ) -> Float32[Tensor, "B 1 *core"]:
        """Give some cases as they look in an epoch of a training."""
        indices = self._indices(rows)
        parameters = augmentation.draw(seed, epoch, indices)
        patches = self._patches(indices, self.space).float()
        return augmentation.apply(patches, parameters, self.core)[:, None]

    def plain(self, rows: Rows) -> Float32[Tensor, "B 1 *core"]:
        """Give the centred core of some cases."""
        return self._patches(self._indices(rows), self.core).float()[:, None]

    def _indices(self, rows: Rows) -> Int64[np.ndarray, " B"]:
        """Refuse what is no row; a row counted from the end would be augmented as another case."""
        indices = np.asarray(rows)
        n_cases = len(self.dataset)
        if indices.ndim != 1 or (
            indices.size and (indices.dtype.kind not in "iu" or indices.min() < 0 or indices.max() >= n_cases)
        ):
            raise InputError(
                found=f"rows {indices.ravel()[:5].tolist()!r:.60}",
                expected=f"a list of whole numbers from 0 to {n_cases - 1:,}",
            )
        return indices.astype(np.int64)

    def _patches(
        self, indices: Int64[np.ndarray, " B"], shape: tuple[int, ...]
    ) -> Int16[Tensor, " B *shape"]:
        if self._kept is None:
            return self._read(indices, shape)
        kept = self._kept
        if shape == self.core:
            window = tuple(slice(a, a + n) for a, n in zip(self._corner, self.core, strict=True))
            kept = kept[(slice(None), *window)]
        return kept[torch.from_numpy(indices).to(self.device)]

    def _all(self) -> Int16[Tensor, " B *space"]:
        """Copy all patches to the device, some at a time: they may fill its memory, but not ours too."""
        n_cases = len(self.dataset)
        kept = torch.empty((n_cases, *self.space), dtype=torch.int16, device=self.device)
        for start in range(0, n_cases, _READ_AT_ONCE):
            stop = min(start + _READ_AT_ONCE, n_cases)
            kept[start:stop] = self._read(np.arange(start, stop), self.space)
        return kept

    def _read(self, indices: Int64[np.ndarray, " B"], shape: tuple[int, ...]) -> Int16[Tensor, " B *shape"]:
        try:
            patches = PatchFile(self.dataset.folder / PATCHES).read(indices, shape)
        except OSError as error:
            ids = [self.dataset.cases[row].id for row in indices]
            more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
            raise InputError(
                found=f"{self.dataset.folder}: the images of {', '.join(ids[:_NAMED])}{more} "
                f"cannot be read: {error}",
                expected="a dataset that stays readable for as long as a training takes",
                hint="copy the dataset to a disk of this machine, or hold it in memory (keep=True)",
            ) from None
        return torch.from_numpy(patches).to(self.device)


def epoch_batches(n: int, size: int, seed: int, epoch: int) -> list[Int64[np.ndarray, " _"]]:
    """Shuffle cases and deal all of them out in batches of nearly equal size, at most ``size``.

    Batch norm cannot learn from one case: an odd number of cases in pairs has one batch of three, and a
    single case is a batch of its own only where there is no other.

    >>> [len(batch) for batch in epoch_batches(10, 4, seed=0, epoch=0)]
    [4, 3, 3]
    """
    if n < 1:
        raise InputError(found=f"batches of {n} cases", expected="one case or more")
    if size < 2:
        raise InputError(
            found=f"batches of size {size}",
            expected="2 or more: batch norm takes its statistics from them",
        )
    if seed < 0 or epoch < 0:
        raise InputError(found=f"batches of seed {seed}, epoch {epoch}", expected="0 or more")
    source = np.random.SeedSequence(seed, spawn_key=(epoch,))
    order = np.random.default_rng(source).permutation(n)
    n_batches = max(1, min(-(-n // size), n // 2))
    return np.array_split(order, n_batches)
