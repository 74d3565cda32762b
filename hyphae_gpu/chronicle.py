"""From a store's history to the record that a report is made of: where the two meet, as stages do not."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hyphae_gpu.report.record import (
    Contradiction,
    Emerged,
    Epoch,
    Inbox,
    InboxSize,
    Pattern,
    Promotion,
    Received,
    Record,
    Scene,
    Sent,
    Side,
    Topology,
    TypeTotal,
)
from hyphae_gpu.report.wording import short, topic

#: Entries, agents, diffs, promotions to a layer and patterns that a report shows; of contradictions twice as many.
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
        told=told["told"],
        farthest=[_sent(row) for row in told["farthest"][:shown]],
        inboxes=[_inbox(name, count, rows, shown) for name, count, rows in told["inboxes"][:shown]],
        caught=[_inbox(name, count, rows, shown) for name, count, rows in told["caught"][:shown]],
        emerged=_emerged(told["emerged"], shown),
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
    different: dict[str, Received] = {}
    for row in rows:
        entry = _received(row)
        different.setdefault(entry.sent.title, entry)
    return Inbox(name=name, entries=entries, shown=list(different.values())[:shown])


def _received(row: Mapping[str, Any]) -> Received:
    path = _straight(row["path"])
    last = path[-2] if len(path) > 1 else {}
    return Received(
        sent=_sent(row),
        agent=row["agent"],
        epoch=row["epoch"],
        hop=row["hop"],
        energy=row["left_energy"],
        score=row["score"],
        via=None if row["via"] == "gossip" else row["via"],
        way=[name for name in _way(path) if name != row["maker"]],
        own=last.get("own", False),
        down=last.get("layer", 0) > 0,
        steps=len(path) - 1 if path else None,
    )


def _straight(path: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a way without its loops: what was promoted may come down to where it has been, with more energy."""
    kept: dict[str, Mapping[str, Any]] = {}
    for node in path:
        if node["id"] in kept:
            ids = list(kept)
            kept = {name: kept[name] for name in ids[: ids.index(node["id"])]}
        kept[node["id"]] = node
    return list(kept.values())


def _way(path: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what a diff passed between its origin and its receiver; sections of one thing in a row are one."""
    called = [_node(node) for node in path[:-1]]
    return [name for before, name in itertools.pairwise(called) if name != before]


def _node(node: Mapping[str, Any]) -> str:
    """Return what a person calls a node: a scene by its words, a cell by what it is about, else its id."""
    if node["type"] == "scene":
        return f"topic {topic(node['name'])}" if node["name"] else topic("")
    return _called(node["payload"], "of", node["leader"] or node["id"])


def _sent(row: Mapping[str, Any]) -> Sent:
    subject, title = _words(row)
    return Sent(
        subject=subject,
        title=title,
        knowledge_type=row["knowledge_type"],
        diff_type=row["diff_type"],
        maker=row["maker"],
        energy=row["energy"],
        agents=row.get("agents", 0),
        hops=row.get("hops", 0),
        alike=row["alike"],
    )


def _words(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a cell is about and what it says; a pattern in its leader's words unless it has its own."""
    made_of = row["leader"] is not None
    payload = row["leader_payload"] if made_of else row["payload"]
    subject = _called(payload, "of", row["leader"] if made_of else row["origin"])
    text = row["text"] or ""
    title = text if made_of and not row["verbatim"] else _called(payload, "title", text)
    return subject, short(title, _TITLE_LIMIT)


def _emerged(told: Mapping[str, Any], shown: int) -> Emerged:
    place_of = {row["num"]: place for place, row in enumerate(told["scenes"])}
    promotions = [_promotion(row) for row in told["promotions"]]
    return Emerged(
        scenes=[
            Scene(
                id=row["id"],
                name=row["name"],
                cells=row["size"],
                agents=row["agents"],
                named=row["named"],
                epoch=row["epoch"],
                vector=row["vector"],
            )
            for row in told["scenes"]
        ],
        scene_count=told["scene_count"],
        scene_links=[(place_of[one], place_of[other], weight) for one, other, weight in told["scene_links"]],
        contradictions=[_contradiction(row) for row in told["contradictions"][: 2 * shown]],
        contradiction_counts=told["contradiction_counts"],
        promotions=[one for layer in (2, 1) for one in _different(promotions, layer)[:shown]],
        promoted={(epoch, layer): count for epoch, layer, count in told["promoted"]},
        patterns=[_pattern(row) for row in told["patterns"][:shown]],
        pattern_count=told["pattern_count"],
    )


def _contradiction(row: Mapping[str, Any]) -> Contradiction:
    a, b = (_side(row, name) for name in "ab")
    return Contradiction(
        a=a,
        b=b,
        reason=row["reason"],
        about=(row["about"] or "") if row["reason"] == "claim" else "",
        similarity=row["similarity"],
        epoch=row["epoch"],
        open=row["status"] == "open",
        decision="" if row["status"] == "open" else _decision(row, {row["a_num"]: a, row["b_num"]: b}),
        told=row["told"],
        informed=row["informed"],
    )


def _side(row: Mapping[str, Any], name: str) -> Side:
    payload, text = row[f"{name}_payload"], row[f"{name}_text"] or ""
    holds = ""
    if row["reason"] == "claim":
        holds = row[f"{name}_value"] or ""
    elif row["reason"] == "stance" and row[f"{name}_stance"] is not None:
        holds = f"stance {row[f'{name}_stance']:+.2f}"
    return Side(
        subject=_called(payload, "of", row[name]),
        title=short(_called(payload, "title", text), _TITLE_LIMIT),
        maker=row[f"{name}_maker"],
        holds=holds,
    )


def _decision(row: Mapping[str, Any], sides: Mapping[int, Side]) -> str:
    """Return in words how a contradiction was resolved (spec 6.3): by a policy, or because rows changed a cell."""
    decided = row["resolution"] or {}
    reason = decided.get("reason", "no reason was kept")
    if decided.get("winner") in sides:
        return f"{decided['policy']}: {_stands(sides[decided['winner']])} stands; {reason}"
    by = {row[f"{name}_num"]: row[f"{name}_by"] for name in "ab"}
    changed = [cell for cell in decided.get("cells", ()) if cell in sides]
    if reason == "superseded" and changed:
        return "; ".join(f"“{by[cell] or 'another cell'}” superseded {_stands(sides[cell])}" for cell in changed)
    return "; ".join([*(_stands(sides[cell]) for cell in changed), reason])


def _stands(side: Side) -> str:
    """Return a side of a contradiction by its claim or stance, else by its subject."""
    return f"“{side.holds or side.subject}”"


def _different(promotions: Sequence[Promotion], layer: int) -> list[Promotion]:
    """Return the promotions to a layer, those that say the same once."""
    different: dict[str, Promotion] = {}
    for one in promotions:
        if one.layer == layer:
            different.setdefault(one.sent.title, one)
    return list(different.values())


def _promotion(row: Mapping[str, Any]) -> Promotion:
    return Promotion(
        sent=_sent(row),
        layer=row["layer"],
        epoch=row["epoch"],
        salience=row["salience"],
        scenes=[(name, count) for name, _, count in row["scenes"] or ()],
        scene_count=row["scene_count"],
        carrier="" if row["carrier"]["id"] == row["origin"] else _node(row["carrier"]),
        entry=_entry(row["entry"]) if row["entry"] else None,
    )


def _entry(node: Mapping[str, Any]) -> str:
    """Return what a person calls a node of an upper layer."""
    return _node(node) if node["type"] == "scene" else f"{_node(node)}, promoted before"


def _pattern(row: Mapping[str, Any]) -> Pattern:
    subject, title = _words(row)
    return Pattern(
        subject=subject,
        title=title,
        agents=row["alike"],
        named=row["named"],
        members=row["members"],
        salience=row["salience"],
        epoch=row["epoch"],
    )


def _called(payload: Any, key: str, otherwise: str) -> str:
    """Return what a cell's payload says, where it says so in words."""
    said = payload.get(key) if isinstance(payload, Mapping) else None
    return said if isinstance(said, str) and said.strip() else otherwise
