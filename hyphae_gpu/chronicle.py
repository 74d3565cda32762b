"""From a store's history to the record that a report is made of: where the two meet, as stages do not."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hyphae_gpu.report.record import Epoch, Inbox, InboxSize, Received, Record, Sent, Topology, TypeTotal
from hyphae_gpu.report.wording import short

#: Entries, agents and diffs that a report shows of each list.
SHOWN = 8
#: How many times as many entries are looked at, since those that say the same of several things are shown once.
_SPARE = 3
_TITLE_LIMIT = 200


class History(Protocol):
    """What a report asks of a store."""

    @property
    def project(self) -> str:
        """The project's name."""

    def history(self, *, agents: Sequence[str], shown: int) -> dict[str, Any]:
        """Return the project's sums and lists (`store.history`)."""


def record_of(
    store: History,
    *,
    about: str = "",
    featured: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    shown: int = SHOWN,
) -> Record:
    """Return the record of a store's project.

    `about` says what was run; `featured` names the agents whose inboxes are shown (those that got nothing are left
    out), by default the fullest. A cell whose payload has "of" and "title" is called by them, else by its id and its
    text's beginning. Raises DatabaseError.
    """
    told = store.history(agents=featured, shown=_SPARE * shown)
    epochs = [_epoch(row) for row in told["epochs"]]
    facts = epochs[-1].counts.get("topology", {}) if epochs else {}
    return Record(
        project=store.project,
        about=about,
        nodes=told["nodes"],
        sizes=[InboxSize(agent=agent, gossip=gossip, beacons=beacons) for agent, gossip, beacons in told["sizes"]],
        hops=told["hops"],
        types=[TypeTotal(**row) for row in told["types"]],
        farthest=[_sent(row) for row in told["farthest"][:shown]],
        inboxes=[_inbox(name, count, rows, shown) for name, count, rows in told["inboxes"][:shown]],
        caught=[_inbox(name, count, rows, shown) for name, count, rows in told["caught"][:shown]],
        epochs=epochs,
        topology=Topology(
            edges=told["edges"],
            degrees=told["degrees"],
            duplicates=facts.get("duplicates"),
            dead_share=facts.get("dead_share"),
            reachable=facts.get("reachability"),
        ),
        open_shares=told["open_shares"],
        settings=settings or {},
    )


def _epoch(row: Mapping[str, Any]) -> Epoch:
    return Epoch(
        epoch=row["epoch"],
        as_of=row["as_of"].isoformat(timespec="seconds"),
        seconds=row["seconds"],
        counts=row["counts"],
        state_hash=row["state_hash"],
    )


def _inbox(name: str, entries: int, rows: Sequence[Mapping[str, Any]], shown: int) -> Inbox:
    """Return an inbox with its first entries that say different things."""
    received = [_received(row) for row in rows]
    different = {entry.sent.title: entry for entry in reversed(received)}
    return Inbox(name=name, entries=entries, shown=list(reversed(different.values()))[:shown])


def _received(row: Mapping[str, Any]) -> Received:
    return Received(
        sent=_sent(row),
        agent=row["agent"],
        epoch=row["epoch"],
        hop=row["hop"],
        energy=row["left_energy"],
        score=row["score"],
        via=None if row["via"] == "gossip" else row["via"],
        way=_way(row["path"]),
        own=row["own"],
    )


def _way(path: Sequence[Sequence[Any]]) -> list[str]:
    """Return what a diff passed between its origin and its receiver; sections of one thing in a row are one."""
    called = [_called(payload, "of", node) for node, payload in path[:-1]]
    return [name for before, name in itertools.pairwise(called) if name != before]


def _sent(row: Mapping[str, Any]) -> Sent:
    return Sent(
        subject=_called(row["payload"], "of", row["origin"]),
        title=short(_called(row["payload"], "title", row["text"] or ""), _TITLE_LIMIT),
        knowledge_type=row["knowledge_type"],
        diff_type=row["diff_type"],
        maker=row["maker"],
        energy=row["energy"],
        agents=row.get("agents", 0),
        hops=row.get("hops", 0),
    )


def _called(payload: Any, key: str, otherwise: str) -> str:
    """Return what a cell's payload says, where it says so in words."""
    said = payload.get(key) if isinstance(payload, Mapping) else None
    return said if isinstance(said, str) and said.strip() else otherwise
