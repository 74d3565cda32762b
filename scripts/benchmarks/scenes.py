"""Case scenes: communities of near links, beside numpy, Leiden, HDBSCAN and k-means (spec 6.4)."""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks import swarms
from benchmarks.numpy_scenes import NumpyScenes
from benchmarks.result import Column, DifferentError
from benchmarks.timing import Runs, alternating, copy_bandwidth, floor, load_average, peak_memory, say
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.config import Settings
from hyphae_gpu.emergence.scenes import SMALLEST_SCENE, Links, communities, scene_links
from hyphae_gpu.linking import link
from hyphae_gpu.state import EdgeTable
from hyphae_gpu.vectors import lengths, quantise

PEERS = ("numpy", "leiden", "hdbscan", "kmeans")
#: Labelled data of the shared folder: file, and the field that holds the label.
DATA = {"banking77": "label", "kep": "owning_sig"}
_LINK_BYTES = 4 + 8 + 4
#: A made graph: links a node, members of a cluster, and the shares of links to its own and to neighbouring clusters.
_LINKS_A_NODE, _CLUSTER, _OWN, _NEIGHBOURING = 12, 60, 0.7, 0.2
COLUMNS = (
    Column("data", "data", ""),
    Column("cells", "nodes", "d"),
    Column("links", "links", ",d"),
    Column("resolution", "resolution", "d"),
    Column("threads", "threads", "d"),
    Column("topology, s", "topology_seconds", ".2f"),
    Column("ours, s", "seconds", ".3f"),
    Column("CPU s", "processor_seconds", ".3f"),
    Column("of it weights", "weights_seconds", ".3f"),
    Column("floor, s", "floor.seconds", ".3f"),
    Column("numpy", "peers.numpy.ratio", ".1f"),
    Column("leiden", "peers.leiden.ratio", ".1f"),
    Column("hdbscan", "peers.hdbscan.ratio", ".0f"),
    Column("kmeans", "peers.kmeans.ratio", ".1f"),
    Column("equal", "equal", ""),
    Column("Q / leiden's Q", "modularity_share", ".4f"),
    *(
        Column(f"{head} ours, leiden, hdbscan, kmeans", f"told.{key}", "")
        for head, key in (
            ("scenes", "scenes"),
            ("NMI", "nmi"),
            ("ARI", "ari"),
            ("coverage", "coverage"),
            ("Q", "modularity"),
        )
    ),
    Column("peak, MiB", "peak_memory_bytes", ".0f", 1 / 2**20),
    Column("load", "load_average.0", ".1f"),
)


def add_arguments(parser: argparse.ArgumentParser, cores: int) -> None:
    """Declare what this case takes."""
    parser.add_argument(
        "--data", default=None, metavar="FOLDER", help="where labelled .jsonl and .minilm.npy files lie"
    )
    parser.add_argument("--sets", nargs="*", choices=DATA, default=list(DATA), help="which of them")
    parser.add_argument("--nodes", type=int, nargs="*", default=[100_000], help="cells of each made graph")
    parser.add_argument("--resolution", type=int, nargs="+", default=[2, 4], help="one row each")
    parser.add_argument("--threads", type=int, nargs="+", default=[cores], help="one row each")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the median counts")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))


@dataclass(frozen=True, kw_only=True)
class _Graph:
    """What communities are sought in: links, how they are made, and vectors and labels where there are some."""

    name: str
    links: Callable[[CpuBackend], Links]
    topology_seconds: float | None = None
    vectors: npt.NDArray[np.float32] | None = None
    labels: npt.NDArray[np.int64] | None = None


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one result a graph, resolution and thread count. Raises DifferentError where numpy found other scenes."""
    warm = _made(200)
    communities(warm.links(CpuBackend()), np.arange(200), (2, 1), CpuBackend())  # numba compiles
    graphs: list[Callable[[], _Graph]] = []
    if arguments.data:
        graphs += [
            lambda name=name: _labelled(Path(arguments.data), name, max(arguments.threads)) for name in arguments.sets
        ]
    graphs += [lambda count=count: _made(count) for count in arguments.nodes]
    for make in graphs:
        graph = make()
        slow: dict[str, tuple[npt.NDArray[np.int64], dict[str, Any]]] = {}
        for resolution in arguments.resolution:
            for threads in arguments.threads:
                say(f"{graph.name}: resolution {resolution}, threads {threads}")
                yield _row(graph, resolution, threads, arguments, slow)


def _labelled(folder: Path, name: str, threads: int) -> _Graph:
    """Return a data set's cells with the links that an epoch would give them."""
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
        words = [json.loads(line)[DATA[name]] for line in lines]
    vectors = np.load(folder / f"{name}.minilm.npy", allow_pickle=False).astype(np.float32)
    _, labels = np.unique(words, return_inverse=True)
    say(f"{name}: linking {len(vectors)} cells (HNSW)")
    images = quantise(vectors)
    topology = Runs()
    found = topology.time(lambda: link(vectors, Settings(threads=threads)))
    edges = EdgeTable(**{spec.name: getattr(found, spec.name).numpy() for spec in fields(EdgeTable)})
    cells, spans = np.arange(len(vectors), dtype=np.int32), lengths(images)
    return _Graph(
        name=name,
        links=lambda backend: scene_links(cells, images, spans, edges, backend),
        topology_seconds=topology.seconds,
        vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
        labels=labels,
    )


def _made(count: int) -> _Graph:
    """Return a neighbour graph of clusters in a ring, node numbers drawn at random."""
    rng = np.random.default_rng([swarms.SEED, count])
    clusters = max(1, count // _CLUSTER)
    cluster = rng.integers(0, clusters, count)
    members = np.argsort(cluster, kind="stable")
    begins = np.concatenate([[0], np.cumsum(np.bincount(cluster, minlength=clusters))])
    left = np.repeat(np.arange(count), _LINKS_A_NODE)
    drawn, own = rng.random(len(left)), cluster[left]
    near = (own + rng.integers(1, 6, len(left))) % clusters
    to = np.where(drawn < _OWN, own, np.where(drawn < _OWN + _NEIGHBOURING, near, rng.integers(0, clusters, len(left))))
    sizes = begins[to + 1] - begins[to]
    right = members[np.minimum(begins[to] + (rng.random(len(left)) * sizes).astype(np.int64), count - 1)]
    keys = np.sort((np.minimum(left, right) * count + np.maximum(left, right))[left != right])
    left, right = np.divmod(keys[np.diff(keys, prepend=-1) != 0], count)
    weights = rng.integers(200, 4097, len(left))
    sources, targets = (np.concatenate(ends).astype(np.int32) for ends in ((left, right), (right, left)))
    offsets, order = CpuBackend().order_rows(count, sources, targets.astype(np.int64))
    links = Links(offsets=offsets, targets=targets[order], weights=np.concatenate([weights, weights])[order])
    return _Graph(name="made", links=lambda _: links)


def _row(
    graph: _Graph,
    resolution: int,
    threads: int,
    arguments: argparse.Namespace,
    slow: dict[str, tuple[npt.NDArray[np.int64], dict[str, Any]]],
) -> dict[str, Any]:
    backend = CpuBackend(threads)
    links = graph.links(backend)
    numbers = np.arange(len(links.offsets) - 1)
    numpy_peer = NumpyScenes(links, numbers, (resolution, 1))

    def ours() -> npt.NDArray[np.int32]:
        return communities(graph.links(backend), numbers, (resolution, 1), backend)

    with peak_memory() as peak:
        found = ours()
    checked = "numpy" in arguments.peers
    if checked and not np.array_equal(found, numpy_peer.run()):
        raise DifferentError(f"numpy found other communities on {graph.name}; no time is told")
    leiden = "leiden" in arguments.peers and importlib.util.find_spec("graspologic_native") is not None
    partitions = {"ours": found.astype(np.int64)}
    parts: dict[str, Callable[[], Any]] = {"ours": ours, "weights": lambda: graph.links(backend)}
    if checked:
        parts["numpy"] = numpy_peer.run
    if leiden:
        parts["leiden"] = lambda: partitions.__setitem__("leiden", _leiden(links, resolution))
    runs = alternating(parts, arguments.repeat)
    peers = {
        name: {**runs[name].facts(), "ratio": runs[name].seconds / runs["ours"].seconds, "equal": True}
        for name in ("numpy", "leiden")
        if name in runs
    }
    for name, (labels, facts) in _without_links(graph, arguments.peers, slow).items():
        partitions[name] = labels
        peers[name] = {**facts, "ratio": facts["seconds"] / runs["ours"].seconds}
    scores = {name: _scores(graph, links, labels, resolution) for name, labels in partitions.items()}
    for name in peers.keys() & partitions.keys():
        peers[name] |= {**scores[name], "equal": _same(partitions[name], partitions["ours"])}
    visits = max(numpy_peer.visits, 2 * len(links.targets))
    return {
        "data": graph.name,
        "nodes": len(numbers),
        "links": len(links.targets),
        "resolution": resolution,
        "threads": threads,
        **runs["ours"].facts(),
        "weights_seconds": runs["weights"].seconds,
        "topology_seconds": graph.topology_seconds,
        **scores["ours"],
        "modularity_share": scores["ours"]["modularity"] / scores["leiden"]["modularity"] if leiden else None,
        "told": _told(scores),
        "equal": True if checked else None,
        "floor": floor(
            visits * _LINK_BYTES,
            copy_bandwidth(threads),
            f"{visits} looks at a link, as many as all iterations of all levels take: its target, its weight and the "
            "target's community (16 bytes) are read once each, sums and choices are free",
        ),
        "peers": peers,
        "load_average": load_average(),
        **peak.facts(),
    }


def _leiden(links: Links, resolution: int) -> npt.NDArray[np.int64]:
    import graspologic_native  # noqa: PLC0415  an optional peer, MIT

    count = len(links.offsets) - 1
    weights = links.weights.astype(np.float64)
    _, found = graspologic_native.leiden_csr(
        links.offsets, links.targets, weights, count, resolution=float(resolution), seed=0
    )
    return np.array([found[node] for node in range(count)], np.int64)


def _without_links(
    graph: _Graph, wanted: list[str], slow: dict[str, tuple[npt.NDArray[np.int64], dict[str, Any]]]
) -> dict[str, tuple[npt.NDArray[np.int64], dict[str, Any]]]:
    """Cluster labelled vectors by peers that know no resolution, once a graph, with scikit-learn's defaults.

    HDBSCAN's smallest cluster is our smallest scene; k-means is told how many labels there are.
    """
    if graph.vectors is None or graph.labels is None:
        return {}
    makes = {
        "hdbscan": HDBSCAN(min_cluster_size=SMALLEST_SCENE, copy=True),
        "kmeans": KMeans(int(graph.labels.max()) + 1, n_init=4, random_state=0),
    }
    for name, model in makes.items():
        if name in wanted and name not in slow:
            runs = alternating({name: lambda model=model: model.fit(graph.vectors)}, 1)
            slow[name] = (model.labels_.astype(np.int64), runs[name].facts())
    return slow


def _scores(graph: _Graph, links: Links, partition: npt.NDArray[np.int64], resolution: int) -> dict[str, Any]:
    """Say how good a partition is.

    In NMI and ARI -1 and the groups below the smallest scene are one group, that of no scene.
    Modularity is of the partition as it is, every point of -1 by itself.
    """
    alone = np.where(partition < 0, partition.max(initial=0) + 1 + np.arange(len(partition)), partition)
    _, groups, sizes = np.unique(alone, return_inverse=True, return_counts=True)
    held = sizes[groups] >= SMALLEST_SCENE
    told: dict[str, Any] = {
        "scenes": int((sizes >= SMALLEST_SCENE).sum()),
        "coverage": float(held.mean()),
        "modularity": _modularity(links, groups, resolution),
    }
    if graph.labels is not None:
        scene = np.where(held, groups, -1)
        told["nmi"] = float(normalized_mutual_info_score(graph.labels, scene))
        told["ari"] = float(adjusted_rand_score(graph.labels, scene))
    return told


def _same(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> bool:
    """Return whether two partitions put the same cells together, whatever they call them."""
    pairs = {*zip(left.tolist(), right.tolist(), strict=True)}
    return len(pairs) == len(np.unique(left)) == len(np.unique(right))


def _modularity(links: Links, groups: npt.NDArray[np.int64], resolution: int) -> float:
    sources = np.repeat(groups, np.diff(links.offsets))
    inside = int(links.weights[sources == groups[links.targets]].sum())
    totals = np.bincount(sources, weights=links.weights.astype(np.float64))
    two_m = float(links.weights.sum())
    return inside / two_m - resolution * float(((totals / two_m) ** 2).sum())


def _told(scores: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return each measure of ours and the peers side by side, as the table prints it."""
    keys = ("scenes", "nmi", "ari", "coverage", "modularity")
    told = {}
    for key in keys:
        values = [scores.get(name, {}).get(key) for name in ("ours", "leiden", "hdbscan", "kmeans")]
        if any(value is not None for value in values):
            told[key] = "  ".join(
                "-" if value is None else str(value) if key == "scenes" else f"{value:.3f}" for value in values
            )
    return told
