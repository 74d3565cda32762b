"""Runs the parts one after the other, each in its own time, and writes what they find as JSON."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from device import machine, parity, speed
from device.clock import Clock, Record, say
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda.device import why_not_cuda
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.errors import DeviceError

#: Seconds that each part may use; what one leaves over the next do not get, so that the sum is the whole.
BUDGETS = {"facts": 25, "bandwidth": 15, "parity": 130, "speed": 170, "sanitizer": 110}
#: Seconds after which everything ends, whatever it does then: starting Python and CUDA count too.
TOTAL = 470
GIB = 1 << 30
#: As small as can be, for tools that slow a device down a hundred times.
_TINY = replace(parity.SMALL, relaxations=20_000, scattered=(33,), diffs=8, nodes=4096)


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    out = os.environ.get("OUT")
    parser = argparse.ArgumentParser(
        prog="scripts/device_check",
        description="Check the CUDA backend against the CPU's to the bit, and measure it. At most 8 minutes.",
        epilog="Exit codes: 0 fine, 1 a result differs, 3 stopped by the clock, 5 no device.",
    )
    default = Path(out) / "device_check.json" if out else None
    parser.add_argument("--json", type=Path, default=default, help="result file (default: $OUT/device_check.json)")
    parser.add_argument("--small", action="store_true", help="everything at a hundredth of the size")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", choices=tuple(BUDGETS), metavar="PART", help=", ".join(BUDGETS))
    parser.add_argument("--seconds", type=float, default=TOTAL, help=f"the most it may take (default {TOTAL})")
    return parser


def main() -> int:
    """Run the check; return its exit code."""
    given = arguments().parse_args()
    clock = Clock(given.seconds)
    reason = why_not_cuda()
    if reason:
        say(f"device check: {reason}")
        return DeviceError.exit_code
    from hyphae_gpu.backends.cuda.backend import CudaBackend  # noqa: PLC0415 - without a device it need not load
    from hyphae_gpu.backends.cuda.cupy_launcher import CupyLauncher  # noqa: PLC0415 - CuPy, likewise

    device, threads = torch.device("cuda", torch.cuda.current_device()), machine.cores()
    torch.set_num_threads(threads)
    cuda = CudaBackend(CupyLauncher(device), threads=threads)
    record = Record(given.json)
    timer = record.stop_at(clock)
    wanted = tuple(given.only or BUDGETS)
    fine = check(cuda, CpuBackend(threads), device, record, clock, wanted, small=given.small, tiny=given.tiny)
    timer.cancel()
    say(f"{'fine' if fine else 'NOT FINE'}, {clock.spent:.0f} s" + (f", {given.json}" if given.json else ""))
    return 0 if fine else 1


def check(
    cuda: Backend,
    cpu: Backend,
    device: torch.device,
    record: Record,
    clock: Clock,
    wanted: tuple[str, ...],
    *,
    small: bool,
    tiny: bool = False,
) -> bool:
    """Run the parts that are wanted, in order; return whether all results agree.

    A part that raises is a failure of its own, and the next ones run all the same.
    """
    parts: dict[str, Callable[[Clock, Callable[[Any], None]], bool]] = {
        "facts": _facts,
        "bandwidth": lambda clock, keep: _bandwidth(device, small, keep),
        "parity": lambda clock, keep: parity.run(cuda, cpu, _parity_sizes(small, tiny), clock, keep=keep),
        "speed": lambda clock, keep: speed.run(
            cuda, cpu, device, _known(record, device), speed.SMALL if small else speed.Sizes(), clock, keep=keep
        ),
        "sanitizer": _sanitizer,
    }
    fine = True
    for name in (part for part in BUDGETS if part in wanted):
        its = Clock(min(BUDGETS[name], max(0.0, clock.left)))
        say(f"== {name}, at most {its.seconds:.0f} s")
        try:
            ended = parts[name](its, lambda found, name=name: record.put(name, found))
        except Exception as error:
            record.put(f"{name} failed", f"{type(error).__name__}: {error}")
            say(f"   FAILED: {type(error).__name__}: {error}")
            ended = False
        fine &= ended
        record.put(f"{name} seconds", its.spent)
        record.put("fine", fine)
    return fine


def _facts(clock: Clock, keep: Callable[[Any], None]) -> bool:
    """Keep the machine's facts; return whether every kernel compiles."""
    found = machine.facts(clock)
    keep(found)
    bad = {stem: it["problem"] for stem, it in found.get("kernels", {}).items() if it["problem"]}
    for stem, problem in bad.items():
        say(f"   kernel {stem} does not compile: {problem}")
    return not bad


def _bandwidth(device: torch.device, small: bool, keep: Callable[[Any], None]) -> bool:
    size = GIB // 16 if small else 4 * GIB
    found = machine.bandwidths(device, device_bytes=size, host_bytes=min(size, GIB))
    keep(found)
    on = f"{found['host_cores']} cores"
    say(f"   copies: device {found['device'] / 1e9:,.0f} GB/s, host {found['host'] / 1e9:,.0f} GB/s on {on}")
    return True


def _known(record: Record, device: torch.device) -> dict[str, float]:
    """Return the bandwidths, measured now if that part was not wanted."""
    if "bandwidth" not in record.parts:
        record.put("bandwidth", machine.bandwidths(device, device_bytes=GIB // 4, host_bytes=GIB // 4))
    return dict(record.parts["bandwidth"])


def _parity_sizes(small: bool, tiny: bool) -> parity.Sizes:
    if tiny:
        return _TINY
    return parity.SMALL if small else parity.Sizes()


def _sanitizer(clock: Clock, keep: Callable[[Any], None]) -> bool:
    found = machine.sanitized(clock)
    keep(found)
    say(f"   {'clean' if found.get('clean') else found.get('why', 'NOT CLEAN')}")
    return bool(found.get("clean", True))


if __name__ == "__main__":
    sys.exit(main())
