"""Why an entry came, in words: the same for the terminal and the page."""

from __future__ import annotations

from hyphae_gpu.report.record import Received, Sent

#: What a diff type says about its origin.
_HAPPENED = {
    "created": "new",
    "updated": "changed",
    "superseded": "superseded",
    "contradiction": "contradicted",
    "pattern": "a pattern",
    "promoted": "promoted",
}


def happened(sent: Sent) -> str:
    """Return what a diff says about its origin: new, changed, ..."""
    return _HAPPENED.get(sent.diff_type, sent.diff_type)


def reason(entry: Received, sent: Sent) -> str:
    """Return why an entry came: from whom, over how many hops, through what, and how well it fits."""
    parts = [f"from {sent.maker}" if sent.maker else "from nobody in particular"]
    parts.append("at the origin" if entry.hop == 0 else f"{entry.hop} {'hop' if entry.hop == 1 else 'hops'}")
    if entry.parent is not None:
        if entry.via is not None:
            parts.append(f"it passed {entry.parent}, which the beacon listens to")
        elif entry.own:
            parts.append(f"came in through {entry.parent}, which this agent works with")
        else:
            parts.append(f"came in through {entry.parent}, close in meaning")
    parts.append(f"score {entry.score:.2f}")
    return ", ".join(parts)
