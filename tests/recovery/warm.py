"""Preloaded by the fork server: numba's own tables, which take each process most of a second at its first kernel.

Nothing here may start a thread: a fork takes one along and leaves the locks of all others held.
"""

from __future__ import annotations

import numpy as np

from hyphae_gpu.store import copy

list(copy.encode([copy.int64(np.arange(3))]))
