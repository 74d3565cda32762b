"""The fork server of all tests: a process has one, and what it preloads is what was said last, so it is said once.

A child is forked from a process that has imported everything already: it starts in milliseconds, not in seconds, and a
kill hits its work and no imports.
"""

from __future__ import annotations

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.recovery.job", "tests.recovery.warm", "tests.store.test_checkpoint"])
