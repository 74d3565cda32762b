"""The graph's operations (`backends.protocol`) on a device and on the CPU, over one graph: the same to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from device.swarms import Made, clustered
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.swarm import GossipRules, Sides

#: Points whose neighbours, and members whose closest pairs, are looked for; nodes whose open gates are counted.
_POINTS, _MEMBERS, _ASKED = 4096, 1500, 1000
#: How many components the members are of; how many subjects and values cells claim.
_RANKS, _SUBJECTS, _VALUES = 40, 30, 4
_RESOLUTION = (2, 1)


def differing(cuda: Backend, cpu: Backend, shape: dict[str, int], *, dimension: int, diffs: int) -> list[str]:
    """Return the names of the operations whose results differ on a clustered graph of four topics."""
    nodes = 4 * shape["cluster"] * shape["topic"]
    made = clustered("cpu", 7, nodes=nodes, diffs=diffs, dimension=dimension, **shape)
    return [name for name, arguments in _asked(made, cpu) if not _same(name, arguments, cuda, cpu)]


def _asked(made: Made, cpu: Backend) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each operation with what it is asked for."""
    rng = np.random.default_rng(11)
    count, images, lengths = len(made.nodes), made.nodes.images.numpy(), made.nodes.lengths.numpy()
    offsets, targets = made.adjacency.offsets.numpy(), made.adjacency.targets.numpy()
    sources = made.adjacency.sources().numpy().astype(np.int32)
    rows = (images, lengths)

    yield "cosines", (*rows, sources, targets)
    sides = Sides(
        subjects=rng.integers(-1, _SUBJECTS, count).astype(np.int32),
        values=rng.integers(-1, _VALUES, count).astype(np.int32),
        stances=rng.choice([np.nan, -1.0, -0.5, 0.5, 1.0], count).astype(np.float32),
    )
    yield "opposing", (*rows, sides, sources, targets, 0.6)
    yield "opposing", (*rows, None, sources, targets, 0.7)
    points = min(_POINTS, count)
    standing = np.where(rng.random(points) < 0.9, np.arange(points), -1).astype(np.int32)
    links = [np.unique(targets[offsets[point] : offsets[point + 1]] % points) for point in range(points)]
    bounds = np.append(0, np.cumsum([len(row) for row in links]))
    yield "nearest_linked", (*rows, standing, bounds, np.concatenate(links), 10)
    members = np.sort(rng.choice(count, min(_MEMBERS, count), replace=False)).astype(np.int32)
    ranks = np.append(np.arange(_RANKS), rng.integers(0, _RANKS, len(members) - _RANKS)).astype(np.int32)
    yield "closest_pairs", (*rows, members, ranks)
    yield "order_rows", (count, rng.permutation(sources), rng.integers(0, 1 << 40, len(sources)))
    yield "centroids", (images, offsets, targets, rng.integers(1, 4097, len(targets)))
    yield "components", (count, sources[::50], np.ascontiguousarray(targets[::50]))

    both_ways = _symmetric(made)
    yield "communities", (*both_ways, np.arange(count), _RESOLUTION)
    groups = np.unique(cpu.communities(*both_ways, np.arange(count), _RESOLUTION), return_inverse=True)[1]
    yield "merged_links", (*both_ways, groups.astype(np.int32))
    asked = torch.from_numpy(rng.choice(count, min(_ASKED, count), replace=False).astype(np.int32))
    yield "open_counts", (made.nodes, made.diffs, GossipRules(sigma_min=0.2, cos_min=0.1), asked)


def _same(name: str, arguments: tuple[Any, ...], cuda: Backend, cpu: Backend) -> bool:
    ours, theirs = (getattr(backend, name)(*arguments) for backend in (cuda, cpu))
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    return all(_bits(one) == _bits(other) for one, other in pairs)


def _bits(column: torch.Tensor | np.ndarray[Any, Any]) -> tuple[str, tuple[int, ...], bytes]:
    """Return what tells columns apart that compare as equal: 0 and -0, or numbers of two dtypes."""
    array = np.asarray(column)
    return array.dtype.str, array.shape, array.tobytes()


def _symmetric(made: Made) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return a graph's links both ways, as `communities` takes them: by source and target, each pair once."""
    sources, targets = made.adjacency.sources().numpy(), made.adjacency.targets.numpy().astype(np.int64)
    count = len(made.nodes)
    keys = np.unique(np.concatenate([sources * count + targets, targets * count + sources]))
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(keys // count, minlength=count), out=offsets[1:])
    # the same both ways, and not the same for all
    low, high = np.minimum(keys // count, keys % count), np.maximum(keys // count, keys % count)
    return offsets, (keys % count).astype(np.int32), 1 + (low * 31 + high) % 4096
