"""What every test run says and does first: a loud header, no settings from outside, GPU tests that skip or must not."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

from hyphae_gpu.backends.select import select
from hyphae_gpu.config import available_cores
from hyphae_gpu.errors import HyphaeError

#: Variables that tests may take from outside; all other settings there would change what the tests see.
KEPT = ("HYPHAE_REQUIRE_GPU", "HYPHAE_TEST_")
SEED = 0

settings.register_profile("hyphae", derandomize=True, deadline=None)
settings.load_profile("hyphae")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a CUDA device; skipped without one, failed if HYPHAE_REQUIRE_GPU=1")
    # A shell's background job ignores Ctrl-C, and so would every process that the tests start from there.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in list(os.environ):
        if name == "DATABASE_URL" or (name.startswith("HYPHAE_") and not name.startswith(KEPT)):
            del os.environ[name]


def pytest_report_header(config: pytest.Config) -> list[str]:
    threads = available_cores()
    try:
        device = select("auto", 1).why  # one thread: on small tensors a second one only waits
    except (HyphaeError, ImportError) as error:
        device = f"NONE: {error}"
    return [
        f"hyphae-gpu backend: {device}",
        f"hyphae-gpu GPU tests: {_no_gpu() or 'run'}; HYPHAE_REQUIRE_GPU={os.environ.get('HYPHAE_REQUIRE_GPU', '0')}",
        f"hyphae-gpu threads: {threads}; seed: {SEED}; hypothesis: derandomized",
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Workers take file after file: the longest ones first, or one worker is left with them at the end.
    items.sort(key=lambda item: item.path.parent.name != "recovery")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is None:
        return
    reason = _no_gpu()
    if reason and os.environ.get("HYPHAE_REQUIRE_GPU") == "1":
        pytest.fail(f"HYPHAE_REQUIRE_GPU=1, but {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)


def _no_gpu() -> str | None:
    """Say why no CUDA device can be taken; None if one can."""
    try:
        select("cuda", 1)
    except (HyphaeError, ImportError) as error:
        return str(error)
    return None


@pytest.fixture
def seed() -> int:
    """The seed of every test that draws numbers; the header names it."""
    return SEED
