"""Proposals, people and groups (SIGs) as rows of a real store; three epochs; what came to whom.

The proposals of the last `EPOCHS` * `SPAN` are news, each in the epoch it was created in; all older ones are history,
loaded silently. Agents are people and SIGs; accesses are their roles in proposals (author, reviewer, approver; owner,
participant), at the proposal's day. Held out: an epoch learns the roles in its own news only after it has run, apart
from the first author's, who made it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.dataset import DAY, SECOND, Dataset
from experiments.intake import Intake
from experiments.replay import SETTINGS
from experiments.studies import REVIEWS_BEFORE
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.store import open_store

EPOCHS, SPAN = 3, 120 * DAY
#: What agents declare in the second run.
INTERESTS = {"decision": 1.0}
#: No delivery is cut, so that all are counted.
UNCUT = 100_000
FIRST = 10


@dataclass(frozen=True, kw_only=True)
class News:
    """What one epoch brings: proposal numbers, and the epoch's time."""

    proposals: tuple[int, ...]
    as_of: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Times of all proposals, which of them are history, which are news in which epoch."""

    times: tuple[int, ...]
    history: tuple[int, ...]
    epochs: tuple[News, ...]


def plan(data: Dataset) -> Plan:
    """Cut the proposals into history and epochs; one without a date stands at its first touch."""
    touched: dict[int, int] = {}
    for touch in data.touches:
        touched.setdefault(touch.proposal, touch.at)
    times = [one.created if one.created is not None else touched[i] for i, one in enumerate(data.proposals)]
    end = max(times)
    starts = [end - SPAN * left for left in range(EPOCHS, 0, -1)]
    news = [
        News(proposals=tuple(i for i, at in enumerate(times) if start < at <= start + SPAN), as_of=start + SPAN)
        for start in starts
    ]
    history = tuple(i for i, at in enumerate(times) if at <= starts[0])
    return Plan(times=tuple(times), history=history, epochs=tuple(news))


def roles(data: Dataset, number: int) -> tuple[str, ...]:
    """Return everybody with a role in a proposal, people and SIGs, each once."""
    one = data.proposals[number]
    return tuple(dict.fromkeys((*one.authors, *one.judges, one.sig, *one.other_sigs)))


def cells(data: Dataset, times: Sequence[int], numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield proposals as rows, made by their first authors."""
    for number in sorted(numbers, key=lambda number: (times[number], number)):
        one = data.proposals[number]
        row = {
            "kind": "cell",
            "id": one.id,
            "text": f"{one.title}. {one.summary}",
            "embedding": [float(value) for value in data.vectors[number]],
            "knowledge_type": "decision",
            "created_at": times[number] / SECOND,
            "payload": {"title": one.title, "of": one.sig},
        }
        yield row | ({"agent": one.authors[0]} if one.authors else {})


def accesses(data: Dataset, times: Sequence[int], numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the roles in proposals as rows."""
    for number in numbers:
        for name in roles(data, number):
            yield {"kind": "access", "agent": name, "cell": data.proposals[number].id, "at": times[number] / SECOND}


def run(data: Dataset, interests: dict[str, float], folder: Path, project: str) -> list[list[dict[str, Any]]]:
    """Run the epochs in the embedded store and return, epoch by epoch, the entries of its own news (`Store.inbox`)."""
    cut = plan(data)
    settings = SETTINGS.model_copy(update={"inbox_limit": UNCUT})
    with open_store(database_url=None, data_dir=folder / "data", project=project, hold="kep_delivery") as store:
        intake = Intake(store, folder, interests)
        past = (*cells(data, cut.times, cut.history), *accesses(data, cut.times, cut.history))
        intake.write(past, silent=True)
        for news in cut.epochs:
            intake.write(cells(data, cut.times, news.proposals))
            run_epochs(store, settings, as_of=news.as_of)
            intake.write(accesses(data, cut.times, news.proposals))
        entries = [entry | {"agent": name} for name in intake.known for entry in store.inbox(name)]
    epoch_of = {data.proposals[i].id: epoch for epoch, news in enumerate(cut.epochs, 1) for i in news.proposals}
    # what the engine made itself, patterns, is news of nobody's
    mine = [entry for entry in entries if entry["epoch"] == epoch_of.get(entry["origin"])]
    return [[entry for entry in mine if entry["epoch"] == epoch] for epoch in range(1, EPOCHS + 1)]


def relevant(data: Dataset, cut: Plan, epoch: int, *, sigs: bool) -> tuple[set[str], set[tuple[str, str]]]:
    """Return an epoch's receivers who are judged, and the (receiver, proposal id) that are relevant.

    People who reviewed or approved at least two proposals before the epoch; relevant to them are those they review or
    approve and are no author of. Or SIGs with two earlier proposals; relevant are those they own or take part in.
    """

    def named(number: int) -> tuple[str, ...]:
        one = data.proposals[number]
        return tuple(dict.fromkeys((one.sig, *one.other_sigs))) if sigs else one.judges

    news = cut.epochs[epoch]
    start = news.as_of - SPAN
    before = Counter(name for number, at in enumerate(cut.times) if at <= start for name in named(number))
    receivers = {name for name, count in before.items() if count >= REVIEWS_BEFORE}
    pairs = {
        (name, data.proposals[number].id)
        for number in news.proposals
        for name in named(number)
        if name in receivers and name not in data.proposals[number].authors
    }
    return receivers, pairs


def judged(data: Dataset, delivered: list[list[dict[str, Any]]], *, sigs: bool) -> dict[str, dict[str, float]]:
    """Return counts, precision and recall of all deliveries, and of each receiver's first ten an epoch."""
    cut = plan(data)
    authors = {(name, one.id) for one in data.proposals for name in one.authors}
    out = {}
    for label, most in (("all deliveries", UNCUT), (f"first {FIRST} an epoch", FIRST)):
        hits = shown = wanted = asked = 0
        for epoch, entries in enumerate(delivered):
            receivers, pairs = relevant(data, cut, epoch, sigs=sigs)
            mine = [
                entry
                for entry in entries
                if entry["agent"] in receivers and (entry["agent"], entry["origin"]) not in authors
            ]
            kept = [entry for entry in mine if entry["place"] < most]
            hits += sum((entry["agent"], entry["origin"]) in pairs for entry in kept)
            shown, wanted = shown + len(kept), wanted + len(pairs)
            asked += len(receivers) * len(cut.epochs[epoch].proposals)
        out[label] = {
            "pairs": asked,
            "relevant": wanted,
            "delivered": shown,
            "hits": hits,
            "precision": hits / shown if shown else float("nan"),
            "recall": hits / wanted if wanted else float("nan"),
        }
    return out


def lines(data: Dataset, delivered: list[list[dict[str, Any]]], sig: str) -> list[str]:
    """Return the first ten lines of a SIG's inbox in the last epoch: title, whose it is, and why it came."""
    by_id = {one.id: one for one in data.proposals}

    def called(name: str) -> str:
        return f'"{by_id[name].title}"' if name in by_id else name

    out = []
    mine = sorted((entry for entry in delivered[-1] if entry["agent"] == sig), key=lambda entry: entry["place"])
    for place, entry in enumerate(mine[:FIRST], 1):
        one = by_id[entry["origin"]]
        whose = "own" if one.sig == sig else f"{one.sig}, taking part" if sig in one.other_sigs else one.sig
        way = " > ".join(called(name) for name in entry["path"][1:-1]) or "directly"
        through = f", most of it through {called(entry['through'])}" if entry["through"] else ""
        out.append(
            f"{place:2d}. {one.title} [{whose}]\n      score {entry['score']:.2f}, "
            f"resonance 2^{max(entry['resonance'], 1).bit_length() - 1}{through}; came by {way}"
        )
    return out


def measure(data: Dataset, sig: str) -> dict[str, Any]:
    """Run without and with interests and return the figures of people and SIGs, and a SIG's inbox."""
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="kep-") as folder:
        for label, interests in (("no interests", {}), ("interests declared", INTERESTS)):
            delivered = run(data, interests, Path(folder), label.replace(" ", "_"))
            out[label] = {
                "reviewers and approvers": judged(data, delivered, sigs=False),
                "SIGs": judged(data, delivered, sigs=True),
                "inbox": lines(data, delivered, sig),
            }
    return out
