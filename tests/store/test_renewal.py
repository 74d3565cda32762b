"""A demo's project is begun anew; nobody else's knowledge is lost by it."""

from __future__ import annotations

import pytest

from hyphae_gpu.errors import DatabaseError, UsageError
from tests.store import sample


def test_a_project_begun_anew_is_as_good_as_a_new_one(opened):
    store = opened()
    store.begin_anew("demo")
    fresh = store.status()
    store.write_rows(sample.swarm(dimension=4, seed=1), diffs=True)
    store.begin_anew("demo")
    assert store.status() == fresh
    assert (store.known().dimension, store.known().embedding_space) == (None, None)
    store.write_rows(sample.swarm(dimension=6, seed=2), diffs=True)
    assert store.load().dimension == 6


def test_what_is_not_from_the_demo_is_refused_and_kept(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    before = store.status()
    with pytest.raises(UsageError, match="not from the demo, and would lose it"):
        store.begin_anew("demo")
    assert store.status() == before


def test_beginning_anew_needs_the_projects_lock(opened):
    with pytest.raises(DatabaseError, match="opened for reading"):
        opened(hold=None).begin_anew("demo")


def test_the_lock_is_still_held_after_beginning_anew(opened):
    store = opened()
    store.begin_anew("demo")
    store.write_rows(sample.swarm(), diffs=True)
    assert store.status()["nodes"]["cell"] == 12
