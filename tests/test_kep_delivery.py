"""The parts of scripts/kep_delivery with logic: what counts, the order of time, no look ahead; on made-up data."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.gossip.resonance import flow_of
from hyphae_gpu.vocabulary import EdgeKind
from tests.kep import dataset, people_of, proposal

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture(scope="module")
def kep():
    """The script's modules; they lie beside the package, not in it."""
    names = ("active", "dataset", "delivery", "flows", "inboxes", "metrics", "passive", "rank", "replay", "studies")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(SCRIPTS))
        yield SimpleNamespace(**{name: importlib.import_module(f"experiments.{name}") for name in names})


@pytest.fixture
def reviewed(kep):
    """Forty proposals, one a day but for two on the same day; their people go round."""
    people = ("bob", "cid", "dan", "eve")
    proposals = [
        proposal(
            kep,
            number,
            number if number != 39 else 38,
            authors=(("ann", "fay")[number % 2],),
            reviewers=(people[number % 4],),
            approvers=(people[(number + 1) % 4],),
        )
        for number in range(40)
    ]
    return dataset(kep, proposals)


class TestMetrics:
    def test_auc_counts_pairs_in_order_and_ties_half(self, kep):
        hits = np.array([True, False, False, True])
        assert kep.metrics.auc(np.array([3.0, 1.0, 2.0, 2.0]), hits) == (1 + 1 + 1 + 0.5) / 4
        assert kep.metrics.auc(np.zeros(4), hits) == 0.5

    def test_recall_counts_hits_among_the_first_k(self, kep):
        values, hits = np.arange(20.0), np.zeros(20, np.bool_)
        hits[[0, 10, 19]] = True
        assert kep.metrics.recall_at(values, hits, 10) == pytest.approx(2 / 3)
        assert kep.metrics.recall_at(values, hits, 20) == 1.0

    def test_tied_candidates_share_the_places_left_whatever_their_order(self, kep):
        values, hits = np.array([2.0, 1, 1, 1, 1]), np.array([False, True, False, False, False])
        assert kep.metrics.recall_at(values, hits, 2) == pytest.approx(1 / 4)
        assert kep.metrics.recall_at(values[::-1], hits[::-1], 2) == pytest.approx(1 / 4)

    def test_last_places_of_all_do_not_count_as_found(self, kep):
        values = np.array([1.0, -np.inf, -np.inf, -np.inf])
        assert kep.metrics.recall_at(values, np.array([False, True, False, False]), 1) == 0.0

    def test_an_interval_holds_its_mean_and_differences_are_paired(self, kep):
        values = np.random.default_rng(1).random(50)
        one = kep.metrics.bootstrap(values)
        assert one.low < one.mean < one.high
        assert one.mean == pytest.approx(values.mean())
        shifted = kep.metrics.bootstrap(values + 0.25 - values)
        assert (shifted.low, shifted.high) == (pytest.approx(0.25), pytest.approx(0.25))

    def test_a_share_is_of_sums_not_of_rows(self, kep):
        assert kep.metrics.bootstrap(np.array([1.0, 0.0]), np.array([1.0, 9.0])).mean == pytest.approx(0.1)

    def test_nothing_to_count_is_no_number(self, kep):
        assert np.isnan(kep.metrics.bootstrap(np.zeros(0)).mean)


class TestDates:
    @pytest.mark.parametrize("text", ["2024-02-01", "2024-2-1"])
    def test_a_date_is_its_midnight(self, kep, text):
        assert kep.dataset.midnight(text) == 1_706_745_600_000_000

    @pytest.mark.parametrize("text", ["yyyy-mm-dd", "None", "", "2024-13-01"])
    def test_what_is_no_date_is_none(self, kep, text):
        assert kep.dataset.midnight(text) is None


class TestReviews:
    def test_experience_counts_earlier_days_only(self, kep):
        data = dataset(
            kep,
            [
                proposal(kep, 0, 1, reviewers=("bob",), approvers=("bob",)),
                proposal(kep, 1, 2, reviewers=("bob", "cid")),
                proposal(kep, 2, 2, reviewers=("dan",)),
                proposal(kep, 3, 3, reviewers=("bob",)),
            ],
        )
        study = kep.studies.reviews(data, earlier=0)
        events = {event.cell: event for event in study.events}
        last = events[3]
        assert dict(zip(people_of(study, last), last.experience.tolist(), strict=True)) == {
            "bob": 2,
            "cid": 1,
            "dan": 1,
        }
        assert people_of(study, last, last.concerned) == ["bob"]
        assert 1 not in events, "with one candidate there is nobody to tell apart"

    def test_authors_are_no_candidates_of_their_own(self, kep):
        data = dataset(
            kep,
            [
                proposal(kep, 0, 1, reviewers=("bob", "cid", "dan")),
                proposal(kep, 1, 2, authors=("bob",), reviewers=("bob", "cid")),
            ],
        )
        study = kep.studies.reviews(data, earlier=0)
        assert people_of(study, study.events[0]) == ["cid", "dan"]

    def test_events_need_earlier_proposals_and_undated_ones_are_left_out(self, kep, reviewed):
        assert [event.cell for event in kep.studies.reviews(reviewed, earlier=30).events] == list(range(30, 40))
        undated = replace(reviewed, proposals=(*reviewed.proposals[:39], proposal(kep, 39, None)))
        assert len(kep.studies.reviews(undated, earlier=0).cells) == 39


class TestTouches:
    @pytest.fixture
    def study(self, kep):
        proposals = [proposal(kep, number, 1) for number in range(3)]
        touches = [
            (1, "ann", 0), (2, "bob", 0), (3, "cid", 0), (10, "ann", 1), (10, "dan", 1), (11, "bob", 1),
            (376, "cid", 1), (20, "cid", 2), (900, "eve", 2),
        ]  # fmt: skip
        return kep.studies.touches(dataset(kep, proposals, touches), earlier=0)

    def test_who_touches_it_newly_within_a_year_is_concerned(self, study):
        event = next(event for event in study.events if event.cell == 1)
        assert people_of(study, event) == ["bob", "cid"], (
            "the maker is aside, who touched nothing before is no candidate"
        )
        assert people_of(study, event, event.concerned) == ["bob"], "a year and a day is too late"

    def test_a_year_that_the_log_does_not_cover_makes_no_event(self, kep):
        proposals = [proposal(kep, number, 1) for number in range(2)]
        touches = [(1, "ann", 0), (1, "bob", 0), (2, "cid", 1), (3, "bob", 1)]
        assert kep.studies.touches(dataset(kep, proposals, touches), earlier=0).events == ()


class TestNoLookAhead:
    def test_known_are_accesses_before_the_moment_and_the_makers(self, kep, reviewed):
        study = kep.studies.reviews(reviewed, earlier=0)
        at = int(study.times[38])
        log = kep.replay.known_accesses(study, at)
        made = log.cells >= len(study.people) + 38
        assert (log.at[~made] < at).all()
        assert sorted(study.people[agent] for agent in log.agents[made]) == ["ann", "fay"]
        assert not (kep.replay.known_accesses(study, at, makers=False).at >= at).any()

    def test_what_comes_later_changes_no_ranking(self, kep, reviewed):
        """The same events with another future: who reviews the proposal itself, and everything afterwards."""
        other = [
            one if number < 30 else replace(one, reviewers=("zed", "eve"), approvers=("cid",))
            for number, one in enumerate(reviewed.proposals)
        ]
        vectors = reviewed.vectors.copy()
        vectors[31:] = vectors[31:][::-1]
        backend = CpuBackend(threads=1)
        settings = kep.replay.SETTINGS.model_copy(update={"threads": 1})
        told = []
        for data in (reviewed, replace(reviewed, proposals=tuple(other), vectors=vectors)):
            study = kep.studies.reviews(data, earlier=28)
            moments = kep.replay.replay(study, data.vectors, backend, settings=settings)
            asked = [one for moment in moments for one in kep.active.ask(backend, moment, settings)]
            for one in asked:
                if one.event.cell <= 30:
                    values = one.rankings() | kep.passive.rankings(study, one.event, data.vectors)
                    people = people_of(study, one.event)
                    order = np.argsort(people)
                    told.append(
                        (one.event.cell, sorted(people), {name: v[order].tolist() for name, v in values.items()})
                    )
        assert [cell for cell, _, _ in told] == [28, 29, 30] * 2
        assert told[:3] == told[3:]

    def test_an_epochs_reviews_are_told_in_the_next_one(self, kep, reviewed, monkeypatch):
        monkeypatch.setattr(kep.inboxes, "EPOCH", 10 * kep.dataset.DAY)
        study = kep.studies.reviews(reviewed, earlier=0)
        told, accesses = 0, set()
        for epoch in kep.inboxes.epochs(study):
            for row in kep.inboxes.rows(study, reviewed.vectors, epoch, told):
                cell = int((row["cell"] if row["kind"] == "access" else row["id"]).removeprefix("cell "))
                if row["kind"] == "access":
                    assert cell < epoch.first
                    accesses.add((row["agent"], cell))
                else:
                    assert epoch.first <= cell < epoch.cells
                    assert row["agent"] in ("ann", "fay")
            told = epoch.told
        assert len(accesses) == len(study.at) - 3 * 10, "all but the last epoch's ten proposals' three roles each"


class TestRankings:
    def test_passive_rankings_are_what_they_say(self, kep, reviewed):
        study = kep.studies.reviews(reviewed, earlier=20)
        event = study.events[0]
        values = kep.passive.rankings(study, event, reviewed.vectors)
        for place, agent in enumerate(event.candidates):
            rows = [i for i in range(len(study.at)) if study.agents[i] == agent and study.at[i] < event.at]
            cells = [int(study.accessed[i]) for i in rows]
            weights = [np.exp(-0.1 * (event.at - study.at[i]) / kep.dataset.DAY / 30) for i in rows]
            texts = reviewed.vectors[study.cells[cells]].astype(np.float64)
            new = reviewed.vectors[study.cells[event.cell]].astype(np.float64)
            mean, recent = texts.sum(axis=0), (np.array(weights)[:, None] * texts).sum(axis=0)
            assert values[kep.passive.CENTROID][place] == pytest.approx(mean @ new / np.linalg.norm(mean))
            assert values[kep.passive.RECENT_CENTROID][place] == pytest.approx(recent @ new / np.linalg.norm(recent))
            assert values[kep.passive.BEST_CELL][place] == pytest.approx((texts @ new).max())
            assert values[kep.passive.POPULARITY][place] == len(cells)
            assert values[kep.passive.RECENT][place] == pytest.approx(sum(weights))

    def test_fusion_adds_inverse_ranks_and_ties_share_the_better(self, kep):
        found = kep.passive.fused([np.array([5.0, 7.0, 5.0]), np.array([0.0, 0.0, 1.0])])
        assert found.tolist() == pytest.approx([1 / 21 + 1 / 21, 1 / 20 + 1 / 21, 1 / 21 + 1 / 20])

    def test_whom_gossip_did_not_reach_stands_last_in_every_ranking(self, kep, reviewed):
        study = kep.studies.reviews(reviewed, earlier=20)
        backend = CpuBackend(threads=1)
        moment = next(kep.replay.replay(study, reviewed.vectors, backend))
        [asked] = kep.active.ask(backend, moment, kep.replay.SETTINGS)
        among = np.arange(len(asked.score)) > 0
        for values in asked.rankings(among=among).values():
            assert values[0] == -np.inf
            assert np.isfinite(values[1:]).all()

    def test_the_power_of_the_rule_gives_the_rules_flow(self, kep, reviewed):
        study = kep.studies.reviews(reviewed, earlier=20)
        backend = CpuBackend(threads=1)
        for moment in kep.replay.replay(study, reviewed.vectors, backend):
            rule = flow_of(backend, moment.nodes, moment.adjacency)
            made = kep.flows.of_power(4)(backend, moment)
            assert made.weights.equal(rule.weights)
            assert made.totals.equal(rule.totals)
            weaker = kep.flows.of_power(1)(backend, moment)
            assert int(weaker.weights.sum()) > int(rule.weights.sum())

    def test_a_flow_without_access_edges_has_none(self, kep, reviewed):
        study = kep.studies.reviews(reviewed, earlier=20)
        backend = CpuBackend(threads=1)
        moment = next(kep.replay.replay(study, reviewed.vectors, backend))
        bare = kep.flows.without(EdgeKind.ACCESS, EdgeKind.ATTACH)(backend, moment)
        assert not bare.totals[: len(study.people)].any()

    def test_every_ranking_of_every_view_is_judged(self, kep, reviewed):
        study = kep.studies.reviews(reviewed, earlier=20)
        judged = kep.rank.judge(CpuBackend(threads=1), study, reviewed.vectors, rules=kep.flows.RULES)
        names = {*kep.active.NAMES, *kep.passive.NAMES}
        assert set(judged.values[kep.rank.ASKED]) == names
        assert all(len(one["auc"]) == len(judged.sizes) for one in judged.values[kep.rank.ASKED].values())
        assert set(judged.rules) == {rule.name for rule in kep.flows.RULES}


class TestInboxes:
    def test_a_side_is_judged_by_its_first_k(self, kep):
        epoch = kep.inboxes.Opened(
            ours={1: [10, 11, 12], 2: []}, theirs={1: [12, 10, 11, 13], 2: [10]}, concerning={1: {12, 13}, 2: {10}}
        )
        assert kep.inboxes.tally(epoch, 2) == {
            kep.inboxes.INBOX: (0, 2, 3),
            kep.inboxes.PASSIVE: (2, 3, 3),
            kep.inboxes.EQUAL: (1, 2, 3),
        }

    def test_the_whole_engine_fills_them(self, kep, reviewed, monkeypatch, tmp_path):
        monkeypatch.setattr(kep.inboxes, "EPOCH", 10 * kep.dataset.DAY)
        monkeypatch.setattr(kep.inboxes, "EARLIER_PROPOSALS", 10)
        study = kep.studies.reviews(reviewed, earlier=0)
        settings = kep.replay.SETTINGS.model_copy(update={"sigma_min": 0.0, "cos_min": 0.0, "threads": 1})
        epochs = kep.inboxes.opened(study, reviewed.vectors, settings, tmp_path)
        assert len(epochs) == 3
        for epoch in epochs:
            assert any(epoch.ours.values())
            for agent, cells in epoch.ours.items():
                assert set(cells) <= set(epoch.theirs[agent])
                assert len(set(cells)) == len(cells)


class TestDelivery:
    def test_an_epochs_news_are_those_created_in_it(self, kep, reviewed):
        later = [replace(one, created=one.created * 12) for one in reviewed.proposals]
        cut = kep.delivery.plan(replace(reviewed, proposals=tuple(later)))
        assert [len(news.proposals) for news in cut.epochs] == [10, 10, 11]
        assert sorted(cut.history + sum((news.proposals for news in cut.epochs), ())) == list(range(40))
        for news in cut.epochs:
            assert all(news.as_of - kep.delivery.SPAN < cut.times[number] <= news.as_of for number in news.proposals)

    def test_relevant_is_what_an_experienced_person_reviews_and_did_not_write(self, kep):
        day = 120
        proposals = [
            proposal(kep, 0, 1, reviewers=("bob", "cid")),
            proposal(kep, 1, 2, reviewers=("bob", "cid", "dan")),
            proposal(kep, 2, 2 + 3 * day, authors=("cid",), reviewers=("bob", "cid", "dan"), others=("sig-b",)),
        ]
        data = dataset(kep, proposals)
        receivers, pairs = kep.delivery.relevant(data, kep.delivery.plan(data), 2, sigs=False)
        assert receivers == {"bob", "cid"}
        assert pairs == {("bob", "p2")}
        assert kep.delivery.relevant(data, kep.delivery.plan(data), 2, sigs=True)[1] == {("sig-a", "p2")}

    def test_deliveries_to_others_and_of_ones_own_count_nowhere(self, kep):
        proposals = [
            proposal(kep, 0, 1, reviewers=("bob", "cid")),
            proposal(kep, 1, 2, reviewers=("bob", "cid")),
            proposal(kep, 2, 362, authors=("cid",), reviewers=("bob",)),
        ]
        data = dataset(kep, proposals)
        entries = [{"agent": name, "origin": "p2", "place": 0} for name in ("bob", "cid", "ann")]
        found = kep.delivery.judged(data, [[], [], entries], sigs=False)["all deliveries"]
        assert (found["delivered"], found["hits"], found["relevant"]) == (1, 1, 1)

    def test_roles_in_news_are_told_after_the_epoch(self, kep, tmp_path, monkeypatch):
        """What the store is given, in order; without a store."""
        written, epochs = [], []

        class Recorded(kep.delivery.Intake):
            def write(self, rows, *, silent=False):
                written.append((len(epochs), silent, list(rows)))

        class Nothing:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

        monkeypatch.setattr(kep.delivery, "Intake", Recorded)
        monkeypatch.setattr(kep.delivery, "open_store", lambda **_: Nothing())
        monkeypatch.setattr(kep.delivery, "run_epochs", lambda *_, as_of: epochs.append(as_of))
        data = dataset(kep, [proposal(kep, number, 1 + 60 * number, reviewers=("bob",)) for number in range(8)])
        kep.delivery.run(data, {}, tmp_path, "x")
        cut = kep.delivery.plan(data)
        assert epochs == [news.as_of for news in cut.epochs]
        first_epoch = {
            f"p{number}": number_of for number_of, news in enumerate(cut.epochs) for number in news.proposals
        }
        for done, silent, rows in written:
            for row in rows:
                if row["kind"] == "access":
                    assert first_epoch.get(row["cell"], -1) < done
                else:
                    assert first_epoch.get(row["id"], 0) == done
                    assert silent == (row["id"] not in first_epoch)


def test_without_data_it_says_so_and_is_fine(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "--data", str(tmp_path)],
        cwd=SCRIPTS, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "kep.jsonl" in done.stderr
    assert str(tmp_path) in done.stderr
    assert done.stdout == ""


def test_an_unknown_part_is_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "nonsense", "--data", str(tmp_path)],
        cwd=SCRIPTS, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def test_files_are_read_as_they_are(kep, tmp_path):
    row = {
        "id": "1-x", "title": "X", "summary": "", "owning_sig": "sig-a", "participating_sigs": [],
        "created": "2024-2-1", "authors": ["ann"], "reviewers": ["bob"], "approvers": ["bob", "cid"],
    }  # fmt: skip
    (tmp_path / "kep.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "kep_access_log.jsonl").write_text(
        "".join(json.dumps({"t": t, "agent": "a", "cell": "1-x", "sig": "sig-a"}) + "\n" for t in (20, 10))
    )
    np.save(tmp_path / "kep.minilm.npy", np.array([[3.0, 4.0]], np.float16))
    data = kep.dataset.load(tmp_path)
    assert data.vectors.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
    assert [touch.at for touch in data.touches] == [10_000_000, 20_000_000]
    assert data.proposals[0].judges == ("bob", "cid")
