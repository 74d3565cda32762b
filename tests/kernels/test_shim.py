"""The shim does what a device does, and finds kernels that a device would not run alike twice."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.kernels.shim_launcher import KernelError, ShimLauncher

BAD = Path(__file__).parent / "bad_kernels"


@pytest.fixture
def launcher(shim_folder: Path):
    """A launcher of the kernels in bad_kernels, by thread order."""
    return lambda seed=0, **how: ShimLauncher(shim_folder, seed=seed, sources=BAD, **how)


def results(
    launcher, kernel: str, *, orders: int = 40, grid: int = 3, block: int = 64, find_races: bool = False
) -> set[tuple[int, ...]]:
    """What a kernel makes of eight zeros, in several orders of its threads."""
    found = set()
    for seed in range(orders):
        out = torch.zeros(8, dtype=torch.int64)
        launcher(seed, find_races=find_races).launch(kernel, [out, 100], grid=grid, block=block)
        found.add(tuple(out.tolist()))
    return found


RACY = ["racy.last_writer", "racy.stale_read", "racy.missing_barrier", "racy.missing_warp_barrier"]


@pytest.mark.parametrize("kernel", RACY)
def test_a_racy_kernel_gives_other_results_in_another_order(launcher, kernel):
    assert len(results(launcher, kernel)) > 1


@pytest.mark.parametrize("kernel", [*RACY, "racy.same_word_twice", "racy.plain_beside_atomic"])
def test_a_race_is_found_whatever_the_order(launcher, kernel):
    """Also where no order of threads changes the result."""
    for seed in range(10):
        with pytest.raises(KernelError, match="a race at"):
            results(lambda _, seed=seed, **how: launcher(seed, **how), kernel, orders=1, find_races=True)


@pytest.mark.parametrize("kernel", ["sound.atomic_sum", "sound.with_barrier", "sound.block_sum", "sound.greatest"])
def test_a_sound_kernel_gives_one_result_in_any_order(launcher, kernel):
    assert len(results(launcher, kernel, find_races=True)) == 1


def test_shared_memory_belongs_to_a_block(launcher):
    out = torch.zeros(8, dtype=torch.int64)
    for seed in range(20):
        launcher(seed).launch("sound.block_numbers", [out, 8], grid=8, block=32, shared_bytes=64)
        assert out.tolist() == [2 * block for block in range(8)]


def test_warp_operations_give_what_cuda_defines(launcher):
    out = torch.zeros(32 * 6, dtype=torch.int64)
    launcher(3).launch("sound.warp_operations", [out], grid=1, block=32)
    xor, down, up, half, ballot, parts = out.view(6, 32).tolist()
    assert xor == [lane ^ 5 for lane in range(32)]
    assert down == [lane + 3 if lane % 8 < 5 else lane for lane in range(32)]
    assert up == [lane - 1 if lane else 0 for lane in range(32)]
    assert half == [lane // 16 * 16 + 2 for lane in range(32)]
    assert ballot == [sum(1 << i for i in range(0, 32, 3))] * 32
    assert parts == [-127 * 127 + 2 * 127 + 3 * 128 - 4 * 128] * 32


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("broken.early_exit", "waits for lane|wait for others"),
        ("broken.half_barrier", "wait for others"),
        ("broken.other_operations", "different operations"),
        ("broken.other_masks", "wait for others|leaves it out"),
        ("broken.outside_the_mask", "leaves it out"),
        ("broken.lane_not_there", "not in its mask"),
        ("broken.beyond_the_end", "no parameter's"),
        ("broken.before_the_start", "no parameter's"),
    ],
)
def test_undefined_behaviour_is_an_error(launcher, kernel, message):
    with pytest.raises(KernelError, match=message):
        launcher(1).launch(kernel, [torch.zeros(64, dtype=torch.int64)], grid=1, block=64)
    assert len(results(launcher, "sound.atomic_sum", orders=3)) == 1


def test_a_launch_without_an_end_is_an_error(launcher):
    bounded = launcher()
    bounded.most_accesses = 100_000
    with pytest.raises(KernelError, match="no end"):
        bounded.launch("broken.endless", [torch.zeros(1, dtype=torch.int64)], grid=1)


def test_a_wrong_number_of_arguments_is_an_error(launcher):
    with pytest.raises(KernelError, match="other arguments"):
        launcher().launch("sound.atomic_sum", [torch.zeros(1)], grid=1)
