"""Made-up proposals and people, for the tests of scripts/kep_delivery."""

from __future__ import annotations

import numpy as np

DIMENSION = 8


def proposal(kep, number, day, *, authors=("ann",), reviewers=(), approvers=(), sig="sig-a", others=()):
    return kep.dataset.Proposal(
        id=f"p{number}",
        title=f"Title {number}",
        summary="Words.",
        sig=sig,
        other_sigs=others,
        created=None if day is None else day * kep.dataset.DAY,
        authors=authors,
        reviewers=reviewers,
        approvers=approvers,
    )


def dataset(kep, proposals, touches=()):
    vectors = np.random.default_rng(0).normal(size=(len(proposals), DIMENSION)) + 1.0
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    made = [
        kep.dataset.Touch(person=person, proposal=number, at=int(day * kep.dataset.DAY))
        for day, person, number in sorted(touches)
    ]
    return kep.dataset.Dataset(proposals=tuple(proposals), vectors=vectors, touches=tuple(made))


def people_of(study, event, rows=slice(None)):
    return [study.people[agent] for agent in event.candidates[rows]]
