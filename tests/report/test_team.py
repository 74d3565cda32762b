"""A small team's real epochs: what the record and the page say is what the store's tables hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from hyphae_gpu.chronicle import record_of
from hyphae_gpu.report import Record, render
from hyphae_gpu.report.record import Contradiction
from hyphae_gpu.store import Store, open_store
from tests.report import team
from tests.report.test_page import read


class Lived:
    """A store that the team lived in, open for reading, and what a report makes of it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.record: Record = record_of(store)
        self.page = read(render(self.record))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.store._connection.execute(query.encode()).fetchall()

    def informed(self, a: str, b: str) -> set[str]:
        """The agents with a diff about a pair in their inbox, found by hand."""
        superseded = "select n.id, w.id from knowledge_nodes n join knowledge_nodes w on w.num = n.superseded_by"
        by = dict(self.rows(superseded))
        about = {
            ("contradiction", a),
            ("contradiction", b),
            *(("superseded", by[name]) for name in (a, b) if name in by),
        }
        entries = self.rows(
            "select a.id, d.diff_type, o.id from inbox i join knowledge_nodes a on a.num = i.agent "
            "join memory_diffs d on d.num = i.diff join knowledge_nodes o on o.num = d.origin"
        )
        return {agent for agent, kind, origin in entries if (kind, origin) in about}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("team") / "hyphae-data"


@pytest.fixture(scope="module")
def flagged(data_dir: Any) -> Iterator[Lived]:
    with open_store(database_url=None, data_dir=data_dir, project="flagged", hold="test") as store:
        team.run(store, data_dir)
        yield Lived(store)


@pytest.fixture(scope="module")
def decided(data_dir: Any) -> Iterator[Lived]:
    with open_store(database_url=None, data_dir=data_dir, project="decided", hold="test") as store:
        team.run(store, data_dir, policy="recency")
        yield Lived(store)


def test_something_of_everything_emerged(flagged: Lived) -> None:
    status = flagged.store.status()
    assert status["contradictions"] == {"open": 1, "resolved": 1}
    assert min(status["scenes"], status["patterns"], *status["promotions"].values()) > 0
    assert min(status["lost"], status["repaired"]) > 0


def test_topics_are_the_stores_scenes(flagged: Lived) -> None:
    scenes = flagged.store.scenes(shown=100)
    emerged = flagged.record.emerged
    assert emerged.scene_count == len(scenes) == len(emerged.scenes)
    for found, scene in zip(emerged.scenes, scenes, strict=True):
        assert (found.name, found.cells, found.epoch) == (scene["name"], scene["size"], scene["epoch"])
        assert (found.agents, list(found.named)) == (len(scene["agents"]), scene["agents"])
        assert f"{found.name} {found.cells} {found.agents} {', '.join(found.named)} {found.epoch}" in flagged.page
    (dimension,) = {len(scene.vector or ()) for scene in emerged.scenes}
    assert dimension == 6
    assert sum(scene.agents for scene in emerged.scenes) == len(team.AGENTS)


def test_lines_are_links_between_scenes(flagged: Lived) -> None:
    scenes = [
        number for number, *_ in flagged.rows("select num from scenes where ended is null order by size desc, num")
    ]
    weights = {
        (source, target): weight
        for source, target, weight in flagged.rows(
            "select src, tgt, weight from topology_edges where type = 'semantic' and layer = 1"
        )
    }
    links = flagged.record.emerged.scene_links
    assert links
    assert len({frozenset(link[:2]) for link in links}) == len(links)
    for one, other, weight in links:
        assert weights[scenes[one], scenes[other]] == pytest.approx(weight)


def test_promotions_are_counted_by_epoch_and_layer(flagged: Lived) -> None:
    found = Counter((row["epoch"], row["layer"]) for row in flagged.store.promotions())
    assert flagged.record.emerged.promoted == found
    for epoch in flagged.record.epochs:
        counts = epoch.counts
        first, second = found[epoch.epoch, 1], found[epoch.epoch, 2]
        assert first + second == counts["promotions"]
        assert f"{epoch.epoch} {counts['diffs']} {first} {second} {counts['promoted']}" in flagged.page


def test_a_promotion_is_told_as_it_is_recorded(flagged: Lived) -> None:
    recorded = {(row["origin"], row["layer"]): row for row in flagged.store.promotions()}
    leaders = dict(
        flagged.rows(
            "select l.id, n.id from knowledge_nodes n join knowledge_nodes l on l.num = n.made_of where n.layer = 0"
        )
    )
    promotions = flagged.record.emerged.promotions
    assert {one.layer for one in promotions} == {1, 2}
    for one in promotions:
        origin = leaders[one.sent.subject] if one.sent.alike else one.sent.subject
        row = recorded[origin, one.layer]
        assert (one.epoch, one.scene_count) == (row["epoch"], len(row["scenes"]))
        assert list(one.scenes) == [(scene["name"], scene["count"]) for scene in row["scenes"]][: len(one.scenes)]
        assert one.carrier in ("", row["carrier"], *(f"topic “{name}”" for name in _short_names(flagged)))
        assert (one.carrier == "") == (row["carrier"] == row["origin"])
        assert (one.entry is None) == (row["entry"] is None)


def _short_names(lived: Lived) -> list[str]:
    return [", ".join(scene.name.split(", ")[:2]) for scene in lived.record.emerged.scenes]


def test_the_first_promotions_told_are_by_different_makers(flagged: Lived) -> None:
    makers = [one.sent.maker for one in flagged.record.emerged.promotions if one.layer == 2]
    assert set(makers[: len(team.AGENTS)]) == set(team.AGENTS)


def test_patterns_are_the_stores(flagged: Lived) -> None:
    rows = flagged.rows(
        "select l.id, n.payload, n.salience from knowledge_nodes n join knowledge_nodes l on l.num = n.made_of "
        "where n.layer = 0"
    )
    makers = dict(
        flagged.rows(
            "select c.id, a.id from knowledge_nodes c join knowledge_nodes a on a.num = c.agent where c.layer = 0"
        )
    )
    made = {leader: (payload["members"], salience) for leader, payload, salience in rows}
    emerged = flagged.record.emerged
    assert emerged.pattern_count == len(made) == flagged.store.status()["patterns"]
    counts = {epoch.epoch: epoch.counts["patterns"] for epoch in flagged.record.epochs}
    assert Counter(pattern.epoch for pattern in emerged.patterns) == {e: n for e, n in counts.items() if n}
    for pattern in emerged.patterns:
        members, salience = made[pattern.subject]
        agents = {makers[member] for member in members}
        assert (pattern.members, pattern.agents, pattern.salience) == (len(members), len(agents), salience)
        assert set(pattern.named) <= agents
        assert f"{pattern.members} {pattern.agents} {pattern.salience:.2f} {pattern.epoch}" in flagged.page


def pair(lived: Lived, about: str) -> Contradiction:
    (found,) = [one for one in lived.record.emerged.contradictions if about in (one.about, one.a.subject)]
    return found


def test_who_met_what_and_who_heard_of_it(flagged: Lived) -> None:
    rows = {(row["a"], row["b"]): row for row in flagged.store.contradictions()}
    assert len(rows) == len(flagged.record.emerged.contradictions) == 2
    for one in flagged.record.emerged.contradictions:
        row = rows[one.a.subject, one.b.subject]
        assert (one.reason, one.similarity, one.epoch, one.open) == (
            row["reason"],
            row["similarity"],
            row["epoch"],
            row["status"] == "open",
        )
        assert (one.a.maker, one.b.maker) == (row["a_agent"], row["b_agent"])
        informed = flagged.informed(row["a"], row["b"])
        assert (one.told, set(one.informed)) == (len(informed), informed)
    port, stance = pair(flagged, "port"), pair(flagged, "for it")
    assert (port.a.holds, port.b.holds) == ("80", "443")
    assert (stance.a.holds, stance.b.holds, stance.about) == ("stance +0.80", "stance -0.90", "")


def test_how_a_contradiction_was_resolved(flagged: Lived, decided: Lived) -> None:
    assert pair(flagged, "port").decision == "“port 443 it is” superseded “80”"
    assert "Resolved: “port 443 it is” superseded “80”" in flagged.page
    assert pair(flagged, "for it").decision == ""
    ruled = pair(decided, "port")
    assert ruled.decision.startswith("recency: “443” stands; created at ")
    assert ruled.told == len(decided.informed("port 80", "port 443"))
    assert decided.record.emerged.contradiction_counts == {"resolved": 2}


def test_meetings_rounds_and_sweeps_are_those_of_the_epochs(flagged: Lived) -> None:
    met: Counter[int] = Counter()
    for epoch in flagged.record.epochs:
        counts = epoch.counts
        met.update({int(hop): count for hop, count in counts["met_after"].items()})
        figures = [counts[name] for name in ("waves", "rounds", "sweeps")]
        figures += [counts["rounds"] + counts["sweeps"]]
        figures += [counts[name] for name in ("lost", "throttled", "repaired")]
        assert " ".join(f"{n:,}".replace(",", " ") for n in (epoch.epoch, *figures)) in flagged.page
    assert sum(met.values()) == 2
    lost = sum(epoch.counts["lost"] for epoch in flagged.record.epochs)
    assert f"{lost:,} transmissions".replace(",", " ") in flagged.page


def test_news_is_told_by_how_it_came_to_be(flagged: Lived) -> None:
    by_kind: defaultdict[str, int] = defaultdict(int)
    for (kind,) in flagged.rows("select diff_type from memory_diffs"):
        by_kind[kind] += 1
    assert flagged.record.told == dict(by_kind)
    assert set(by_kind) == {"created", "contradiction", "superseded", "pattern"}


def test_what_has_come_down_is_told_without_the_loop(flagged: Lived) -> None:
    for inbox in flagged.record.inboxes:
        for entry in inbox.shown:
            assert len(set(entry.way)) == len(entry.way)
            assert entry.agent not in entry.way
            assert entry.steps is not None
            assert len(entry.way) < max(1, entry.steps) + 1
