"""Plain reading of spec 6.2 and 6.3: which cells oppose each other, in which turn pairs are judged, who wins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hyphae_gpu.vocabulary import DiffType
from tests.oracles.cosine import cosine

Pair = tuple[int, int]


@dataclass
class Cell:
    """A node as contradictions see it; subject, value, stance, text are None where there is none."""

    number: int
    image: list[int]
    live: bool
    created_at: int
    salience: float
    subject: int | None = None
    value: int | None = None
    stance: float | None = None
    text: str | None = None
    readers: set[int] = field(default_factory=set)


@dataclass
class Verdict:
    """raised: pair -> winner, None where it stays open; superseded: loser -> winner; speaking: who sends a diff."""

    raised: dict[Pair, int | None]
    superseded: dict[int, int]
    speaking: set[int]


def opposing(
    cells: dict[int, Cell],
    arrivals: Iterable[tuple[int, int, int]],
    known: Iterable[Pair],
    theta: float,
    verifier: Callable[[str, str], float] | None = None,
) -> dict[Pair, tuple[float, str]]:
    """spec 6.2: arrivals are (origin, diff type, node reached); cells holds the nodes that are cells."""
    found = {}
    for origin, diff_type, node in arrivals:
        if diff_type not in (DiffType.CREATED, DiffType.UPDATED) or origin == node:
            continue
        if origin not in cells or node not in cells or not cells[origin].live or not cells[node].live:
            continue
        a, b = cells[min(origin, node)], cells[max(origin, node)]
        similarity = cosine(a.image, b.image)
        reason = why(a, b, verifier)
        if (a.number, b.number) not in known and similarity >= theta and reason is not None:
            found[a.number, b.number] = (similarity, reason)
    return found


def why(a: Cell, b: Cell, verifier: Callable[[str, str], float] | None = None) -> str | None:
    """spec 6.2 a, b, c"""
    if None not in (a.subject, a.value, b.value) and a.subject == b.subject and a.value != b.value:
        return "claim"
    stances = [cell.stance for cell in (a, b) if cell.stance is not None and abs(cell.stance) >= 0.5]
    if len(stances) == 2 and stances[0] * stances[1] < 0:
        return "stance"
    if verifier is not None and a.text is not None and b.text is not None and verifier(a.text, b.text) >= 0.5:
        return "verifier"
    return None


def age(cell: Cell) -> Pair:
    return cell.created_at, cell.number


def judged(pairs: Iterable[Pair], cells: dict[int, Cell], policy: str) -> Verdict:
    """spec 6.2, 6.3: in the order of the newer cell's created_at, its number, the older's"""
    turns = []
    for a, b in pairs:
        older, newer = sorted((cells[a], cells[b]), key=age)
        turns.append((*age(newer), older.number))
    verdict = Verdict(raised={}, superseded={}, speaking=set())
    for _, newer, older in sorted(turns):
        if not (cells[newer].live and cells[older].live) or {newer, older} & verdict.superseded.keys():
            continue
        pair = min(newer, older), max(newer, older)
        if policy == "flag":
            verdict.raised[pair] = None
            verdict.speaking |= {newer, older}
            continue
        winner = newer if worth(cells[newer], policy) >= worth(cells[older], policy) else older
        verdict.raised[pair] = winner
        verdict.superseded[older if winner == newer else newer] = winner
    return verdict


def worth(cell: Cell, policy: str) -> float:
    """spec 6.3"""
    if policy == "recency":
        return cell.created_at
    return cell.salience if policy == "salience" else sum(cell.salience for _ in cell.readers)
