"""A record of everything a report can show, and texts that want out of it."""

from __future__ import annotations

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

#: What a cell, an agent or a setting may hold, and a page must show as text.
HOSTILE = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "{{ 7*7 }}{% raw %}",
    '" onload="alert(1)',
    "$\\frac{1}$",
    "]]>--></svg><b>",
    "#0b0101 font-family: x; 'y'",
    "\ud800 \x01\x7f \u202e",
    "日本語 עברית 🦠",
    "x" * 5_000,
    "",
    " ",
)


def sent(text: str = "torch.qr", **other: object) -> Sent:
    """Return a diff about `text`."""
    values: dict[str, object] = {
        "subject": text,
        "title": text,
        "knowledge_type": "decision",
        "diff_type": "created",
        "maker": text,
        "energy": 19.0,
        "agents": 3,
        "hops": 4,
    }
    return Sent(**(values | other))  # type: ignore[arg-type]


def received(text: str = "scipy.linalg maintainer", **other: object) -> Received:
    """Return an entry of agent `text`."""
    values: dict[str, object] = {
        "sent": sent(text),
        "agent": text,
        "epoch": 1,
        "hop": 2,
        "energy": 9.5,
        "score": 0.456,
        "way": ("here", text),
        "own": True,
    }
    return Received(**(values | other))  # type: ignore[arg-type]


def scene(text: str = "queue, worker, retry, job", **other: object) -> Scene:
    """Return a scene with a place."""
    values: dict[str, object] = {"id": text, "name": text, "cells": 12, "agents": 1, "named": [text], "epoch": 1}
    return Scene(**({"vector": (1.0, 0.5, 0.0)} | values | other))  # type: ignore[arg-type]


def contradiction(text: str = "port", **other: object) -> Contradiction:
    """Return an open contradiction of two claims that one agent was told of."""
    side = Side(subject=text, title=text, maker=text, holds=text)
    values: dict[str, object] = {"a": side, "b": side, "reason": "claim", "about": text, "similarity": 0.95}
    values |= {"epoch": 1, "open": True, "told": 1, "informed": [text]}
    return Contradiction(**(values | other))  # type: ignore[arg-type]


def promotion(text: str = "queue, worker, retry, job", **other: object) -> Promotion:
    """Return a promotion to layer 1 by two scenes."""
    values: dict[str, object] = {"sent": sent(text), "layer": 1, "epoch": 1, "salience": 0.9, "scene_count": 2}
    values |= {"scenes": [(text, 7), (text, 5)], "carrier": text, "entry": text}
    return Promotion(**(values | other))  # type: ignore[arg-type]


def pattern(text: str = "cold cache", **other: object) -> Pattern:
    """Return a pattern of three agents."""
    values: dict[str, object] = {"subject": text, "title": text, "agents": 3, "named": [text], "members": 4}
    return Pattern(**({"salience": 0.99, "epoch": 1} | values | other))  # type: ignore[arg-type]


def emerged(text: str) -> Emerged:
    """Return one of everything that can emerge, and more of it than is listed."""
    return Emerged(
        scenes=[scene(text), scene(text, vector=(0.0, 1.0, 0.0)), scene(text, vector=None)],
        scene_count=4,
        scene_links=[(0, 1, 0.5)],
        contradictions=[contradiction(text), contradiction(text, open=False, decision=text)],
        contradiction_counts={"open": 1, "resolved": 2},
        promotions=[promotion(text, layer=2), promotion(text)],
        promoted={(1, 1): 3, (1, 2): 1},
        patterns=[pattern(text)],
        pattern_count=2,
    )


def record(text: str = "scipy.linalg maintainer") -> Record:
    """Return a record with `text` wherever a text can be."""
    by_type = {"diffs": 2, "reach_mean": 10.0, "reach_max": 12, "hops_max": 5, "hop_bound": 19.0, "node_bound": 9.0}
    return Record(
        project=text,
        title=text,
        about=text,
        nodes={"cell": 1234, "agent": 2, "beacon": 1},
        sizes=[InboxSize(agent=text, gossip=3, beacons=1), InboxSize(agent="another")],
        hops={2: 3, 4: 1},
        types=[TypeTotal(knowledge_type="decision", diffs=2, energy=19.0, arrived=1, agents=1.5)],
        told={"created": 1, "pattern": 1},
        farthest=[sent(text)],
        inboxes=[Inbox(name=text, entries=3, shown=[received(text)])],
        caught=[Inbox(name=text, entries=1, shown=[received(text, via=text)])],
        emerged=emerged(text),
        epochs=[
            Epoch(
                epoch=1,
                as_of="2026-03-01T12:00:00+00:00",
                seconds={"gossip": 1.5, text or "topology": 0.5, "topology.hnsw": 0.25},
                counts={
                    "diffs": 2,
                    "deliveries": 20,
                    "waves": 2,
                    "rounds": 6,
                    "sweeps": 3,
                    "lost": 40,
                    "throttled": 0,
                    "repaired": 17,
                    "promoted": 5,
                    "met_after": {"2": 3},
                    "by_type": {"decision": by_type},
                },
                state_hash=text,
            )
        ],
        topology=Topology(edges={text: 5}, degrees={3: 1, 4: 2}, duplicates=0, dead_share=0.25, reachable=1.0),
        open_shares={text: 0.125},
        settings={text: text},
    )
