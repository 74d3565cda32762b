"""A device that there is not: CPU memory that torch takes for a device's, so that columns of two devices never meet.

The shim's device is the CPU itself, where a tensor that was left on the host goes unnoticed; here it is an error, as on
a GPU. An operation runs on the memory below, after a check that all its tensors are on one device.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from hyphae_gpu.backends.cuda.launcher import Argument
from tests.kernels.shim_launcher import ShimLauncher

#: Of the devices that every build of torch knows the one without memory of its own.
DEVICE = torch.device("meta")
#: What takes index tensors from anywhere.
_INDEXING = ("aten.index.", "aten.index_put_.", "aten._index_put_impl_.")
_BETWEEN_DEVICES = ("aten.copy_.", "aten._to_copy.")


class Elsewhere(torch.Tensor):
    """A tensor that says it is on DEVICE."""

    below: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, below: torch.Tensor) -> Elsewhere:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            below.size(),
            strides=below.stride(),
            storage_offset=below.storage_offset(),
            dtype=below.dtype,
            device=DEVICE,
        )
        made.below = below
        return made

    def data_ptr(self) -> int:
        return self.below.data_ptr()

    def tolist(self) -> Any:
        return self.below.tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert a tensor of another device to numpy; use .cpu() first")

    @classmethod
    def __torch_dispatch__(cls, operation, types, arguments=(), named=None):
        return run(operation, arguments, named or {})


def run(operation: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """Do an operation on what is below its tensors; what it makes is where they are."""
    name = f"{operation}"
    given = [it for it in tree_flatten((arguments, named))[0] if isinstance(it, torch.Tensor)]
    here = any(isinstance(it, Elsewhere) for it in given)
    wanted = named.get("device")
    if not name.startswith(_BETWEEN_DEVICES):
        judged = given[:1] if name.startswith(_INDEXING) else given
        strangers = [it for it in judged if not isinstance(it, Elsewhere) and it.dim() > 0]
        # an index on the device asks for a tensor there too
        if here and (strangers or not judged):
            raise RuntimeError(f"{name}: expected all tensors to be on {DEVICE}, found one on the CPU")
    # what is made is where it was asked for, else where the first tensor is
    if wanted is not None:
        there = torch.device(wanted) == DEVICE
    else:
        there = isinstance(given[0], Elsewhere) if name.startswith(_BETWEEN_DEVICES) else here
    known = {id(it.below): it for it in given if isinstance(it, Elsewhere)}

    def lowered(it: Any) -> Any:
        if isinstance(it, Elsewhere):
            return it.below
        return torch.device("cpu") if isinstance(it, torch.device) else it

    def raised(it: Any) -> Any:
        if not isinstance(it, torch.Tensor):
            return it
        if id(it) in known:
            return known[id(it)]
        return Elsewhere(it) if there else it

    return tree_map(raised, operation(*tree_map(lowered, arguments), **tree_map(lowered, named)))


class _Factories(TorchDispatchMode):
    """Lets torch.empty and its like make tensors on DEVICE."""

    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        return run(operation, arguments, named or {})


@contextmanager
def other_device():
    """Let torch make tensors on DEVICE, whether or not it is built for CUDA."""
    with _Factories():
        yield


class OtherDeviceLauncher(ShimLauncher):
    """The shim, over memory of DEVICE."""

    device = DEVICE

    def launch(self, kernel: str, arguments: Sequence[Argument], **shape: Any) -> None:
        """See `Launcher.launch`."""
        for argument in arguments:
            if isinstance(argument, torch.Tensor) and not isinstance(argument, Elsewhere):
                raise RuntimeError(f"{kernel}: an argument is on the CPU")
        lowered = [it.below if isinstance(it, Elsewhere) else it for it in arguments]
        super().launch(kernel, lowered, **shape)
