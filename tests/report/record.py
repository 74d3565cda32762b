"""A record of everything a report can show, and texts that want out of it."""

from __future__ import annotations

from hyphae_gpu.report.record import Epoch, Inbox, InboxSize, Received, Record, Sent, Topology, TypeTotal

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
        farthest=[sent(text)],
        inboxes=[Inbox(name=text, entries=3, shown=[received(text)])],
        caught=[Inbox(name=text, entries=1, shown=[received(text, via=text)])],
        epochs=[
            Epoch(
                epoch=1,
                as_of="2026-03-01T12:00:00+00:00",
                seconds={"gossip": 1.5, text or "topology": 0.5, "topology.hnsw": 0.25},
                counts={"diffs": 2, "deliveries": 20, "rounds": 6, "by_type": {"decision": by_type}},
                state_hash=text,
            )
        ],
        topology=Topology(edges={text: 5}, degrees={3: 1, 4: 2}, duplicates=0, dead_share=0.25, reachable=1.0),
        open_shares={text: 0.125},
        settings={text: text},
    )
