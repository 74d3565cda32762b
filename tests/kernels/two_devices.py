"""A machine with a device where there is none: tensors know where they would lie, and mixing them is an error.

On the shim everything lies in the host's memory, so that a column which was never brought to the device goes unseen.
Here each tensor carries the device it was made for, and torch's rules hold: no operation over tensors of two devices (a
single number aside), no index on a device into a column of the host, no numpy view of what lies on a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from hyphae_gpu.backends.cuda.launcher import Argument
from tests.kernels.shim_launcher import ShimLauncher

HOST, DEVICE = torch.device("cpu"), torch.device("cuda", 0)

_INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
_TO_NUMPY = (torch.Tensor.numpy, torch.Tensor.__array__)


def where(tensor: torch.Tensor) -> torch.device:
    """Return where a tensor lies."""
    return getattr(tensor, "lies", HOST)


class TwoDevices(TorchFunctionMode):
    """While it is entered, tensors lie on the host or on `DEVICE`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func == torch.Tensor.device.__get__:
            return where(args[0])
        if func in (torch.Tensor.to, torch.Tensor.cpu):
            return _moved(func, args, kwargs)
        given = list(tensors((args, kwargs)))
        if func in _TO_NUMPY and where(given[0]) != HOST:
            raise TypeError("a numpy view of a tensor that lies on the device")
        device = _common(func, args, given)
        if kwargs.get("device") is not None:
            device = torch.device(kwargs["device"])
            kwargs["device"] = HOST
        made = func(*args, **kwargs)
        for tensor in tensors(made):
            tensor.lies = device
        return made


class DeviceShim(ShimLauncher):
    """The shim as a device of its own: it takes only what was brought there."""

    device = DEVICE

    def launch(
        self, kernel: str, arguments: Sequence[Argument], *, grid: int, block: int | None = None, shared_bytes: int = 0
    ) -> None:
        """See `Launcher.launch`."""
        for place, argument in enumerate(arguments):
            if isinstance(argument, torch.Tensor) and where(argument) != DEVICE:
                raise RuntimeError(f"{kernel}: argument {place} lies on the host")
        with torch._C.DisableTorchFunction():
            super().launch(kernel, arguments, grid=grid, block=block, shared_bytes=shared_bytes)


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)


def _moved(func: Any, args: Any, kwargs: dict[str, Any]) -> torch.Tensor:
    """Return what `to` or `cpu` gives: a copy where the tensor lies elsewhere."""
    tensor, *rest = args
    target = HOST if func == torch.Tensor.cpu else where(tensor)
    kept = []
    for one in rest:
        if isinstance(one, (torch.device, str)):
            target = torch.device(one)
        elif isinstance(one, torch.Tensor):
            target = where(one)
            kept.append(one.dtype)
        else:
            kept.append(one)
    if kwargs.get("device") is not None:
        target = torch.device(kwargs.pop("device"))
    with torch._C.DisableTorchFunction():
        made = tensor.to(*kept, **kwargs) if kept or kwargs else tensor
        made = made.clone() if target != where(tensor) and made is tensor else made
    made.lies = target
    return made


def _common(func: Any, args: Any, given: list[torch.Tensor]) -> torch.device:
    """Return where an operation takes place; raises RuntimeError where torch would."""
    if func in _INDEXING and given:
        target, index = args[0], args[1]
        away = [one for one in tensors(index) if where(one) not in (HOST, where(target))]
        if away:
            raise RuntimeError("an index on the device into a tensor of the host")
        given = [target, *(tensors(args[2:]))]
    if func == torch.Tensor.copy_:
        return where(args[0])
    places = {where(tensor) for tensor in given if tensor.dim()}
    if len(places) > 1:
        raise RuntimeError(f"{getattr(func, '__name__', func)}: tensors of the host and of the device")
    return places.pop() if places else where(given[0]) if given else HOST
