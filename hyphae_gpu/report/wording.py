"""What happened in words, the same for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from hyphae_gpu.report.record import Contradiction, Pattern, Promotion, Received, Sent

#: Stations of a way that are named; of a longer one the first and the last.
_STATIONS = 3
#: Words by which a scene is called in a sentence and on the map.
_TERMS = 2
#: A cut falls between two words if that costs no more than this share of what fits.
_LOST_TO_A_WORD = 0.3


def reason(entry: Received) -> str:
    """Return why an entry came: from whom, by which way, over how many hops, and how well it fits."""
    maker = f"from {source(entry.sent)}"
    maker = maker if entry.way else f"straight {maker}"
    steps = entry.hop if entry.steps is None else entry.steps
    fit = counted(steps, "hop")
    if steps != entry.hop:
        fit += f", first heard in round {entry.hop}"
    return f"{maker}{_way(entry)}; {fit}, score {entry.score:.2f}"


def source(sent: Sent) -> str:
    """Return whose a diff is: its maker, or how many agents noted what a pattern says."""
    if sent.alike:
        return f"what {counted(sent.alike, 'agent')} noted alike"
    return sent.maker or "nobody named"


def _way(entry: Received) -> str:
    """Return the stations of a way, and what the receiver has to do with the last."""
    way = list(entry.way)
    if not way:
        return ""
    if len(way) > _STATIONS:
        way[1:-1] = [f"{len(way) - 2} more"]
    if entry.via is not None:
        return f" past {listed(way)}, where the beacon listens"
    if entry.down:
        before = f" by way of {listed(way[:-1])} and" if len(way) > 1 else ""
        return f"{before} down from {way[-1]}"
    return f" by way of {listed(way)}, {'which it works with' if entry.own else 'near it in meaning'}"


def why_promoted(promotion: Promotion) -> str:
    """Return what confirmed a promotion: enough nodes of one scene, or enough scenes (spec 5.1)."""
    names = [topic(name) for name, _ in promotion.scenes]
    if promotion.layer == 1:
        first, count = promotion.scenes[0] if promotion.scenes else ("", 0)
        why = f"{count:,} cells and agents of {topic(first)} had it"
        others = promotion.scene_count - 1
        return f"{why}, and enough of {counted(others, 'other topic')}" if others > 0 else why
    if promotion.scene_count > len(names):
        names.append(f"{promotion.scene_count - len(names):,} more")
    return f"it reached {counted(promotion.scene_count, 'topic')}: {listed(names)}; salience {promotion.salience:.2f}"


def way_up(promotion: Promotion) -> str:
    """Return from where a promotion went up and where it went on (spec 5.2)."""
    if promotion.entry is None:
        return f"nothing was in layer {promotion.layer} yet to go on from"
    return f"{f'up from {promotion.carrier}' if promotion.carrier else 'straight up'} to {promotion.entry}"


def why_opposed(found: Contradiction) -> str:
    """Return by which rule two cells oppose each other, and how alike they are (spec 6.2)."""
    rule = {
        "claim": f"both claim something else of “{found.about}”",
        "stance": "they take opposite sides",
        "verifier": "the verifier says so",
    }.get(found.reason, found.reason)
    return f"{rule}; similarity {found.similarity:.2f}"


def who_heard(found: Contradiction) -> str:
    """Return which agents have a diff about a contradiction in their inbox."""
    if not found.told:
        return "no agent was told"
    more = found.told - len(found.informed)
    names = [*found.informed, *([f"{more:,} more"] if more > 0 else [])]
    return f"{counted(found.told, 'agent')} told: {listed(names)}"


def noted_by(pattern: Pattern) -> str:
    """Return who noted what a pattern says."""
    more = pattern.agents - len(pattern.named)
    names = [*pattern.named, *([f"{more:,} more"] if more > 0 else [])]
    return f"noted by {listed(names)}"


def topic(name: str) -> str:
    """Return what a scene is called in a sentence: by its first words."""
    first = ", ".join(terms(name))
    return f"“{first}”" if first else "a topic without words"


def terms(name: str) -> list[str]:
    """Return the first words of a scene's name, those that tell most."""
    return [term.strip() for term in name.split(",") if term.strip()][:_TERMS]


def listed(names: Sequence[str]) -> str:
    """Return names as people list them: a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def counted(number: int, one: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else f'{one}s'}"


def short(text: str, limit: int = 160) -> str:
    """Return text on one line, cut to a limit between two words, or within a long one."""
    line = " ".join(str(text).split())
    if len(line) <= limit:
        return line
    kept = line[: limit - 1]
    if line[limit - 1] != " ":
        whole = kept.rpartition(" ")[0]
        kept = whole if len(whole) >= (1 - _LOST_TO_A_WORD) * limit else kept
    return kept.rstrip(" ,;:") + "…"
