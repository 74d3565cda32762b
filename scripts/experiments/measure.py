"""All measurements, told as they are done and returned for JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from experiments import active, delivery, passive, tables
from experiments.dataset import Dataset
from experiments.jobs import BY_THE_RULE, REVIEWS, STUDIES, TOUCHES, done, jobs
from experiments.rank import ASKED, VIEWS, Judged
from experiments.replay import KNOWLEDGE, SALIENCE, SETTINGS

QUESTIONS = {REVIEWS: "who reviews or approves", TOUCHES: "who newly touches it within a year"}
CHANGED = (active.RESONANCE, active.AUDIENCE)


def measured(data: Dataset, folder: Path, parts: Collection[str], *, sig: str, workers: int) -> dict[str, Any]:
    """Measure, print tables and return all figures; `folder` is where the data lies, for other processes."""
    began = time.perf_counter()
    result: dict[str, Any] = {
        "settings": SETTINGS.rules() | {"salience": SALIENCE, "knowledge_type": KNOWLEDGE.name.lower()}
    }
    if "delivery" in parts:
        result["delivery"] = _delivery(delivery.measure(data, sig), sig)
    if "experiments" in parts or "ablations" in parts:
        result["studies"] = _studies(folder, workers, ablations="ablations" in parts)
    result["seconds"] = time.perf_counter() - began
    print(f"\n{result['seconds']:.0f} s in all")
    plain: dict[str, Any] = tables.plain(result)
    return plain


def _delivery(measured: dict[str, Any], sig: str) -> dict[str, Any]:
    _head("Three epochs of 120 days through the store: deliveries of new proposals, roles in them held out")
    rows = [
        {"interests": label, "receivers": receivers, "counted": counted} | figures
        for label, one in measured.items()
        for receivers in ("reviewers and approvers", "SIGs")
        for counted, figures in one[receivers].items()
    ]
    print(tables.text(rows))
    for label, one in measured.items():
        print(f"\nInbox of {sig}, last epoch, {label}:")
        print("\n".join(one["inbox"]))
    return measured


def _studies(folder: Path, workers: int, *, ablations: bool) -> dict[str, Any]:
    result: dict[str, Any] = {study: {} for study in STUDIES}
    ways: dict[str, dict[str, Any]] = {study: {} for study in STUDIES}
    for job, made in done(folder, jobs(ablations=ablations), workers):
        print(f"kep_delivery: done: {job.study}, {'inboxes' if job.inboxes else job.way.name}", file=sys.stderr)
        if job.inboxes:
            result[job.study]["inboxes"] = tables.inboxes(made)
            continue
        ways[job.study][job.way.name] = made.values[ASKED]
        if job.way == BY_THE_RULE:
            result[job.study] |= _ranked(made)
    for study in STUDIES:
        result[study]["settings and inputs changed"] = tables.changed(ways[study], CHANGED, "way")
        _tell(study, result[study], ablations=ablations)
    return result


def _ranked(judged: Judged) -> dict[str, Any]:
    reach, concerned_reach = judged.reach.mean(axis=0).tolist()
    candidates, concerned = judged.sizes.mean(axis=0).tolist()
    return {
        "events": len(judged.sizes),
        "candidates": candidates,
        "concerned": concerned,
        "reached": reach,
        "concerned reached": concerned_reach,
        "rankings": {view: tables.rankings(judged.values[view]) for view in VIEWS},
        "differences": {view: tables.differences(judged, view) for view in VIEWS},
        "experience": tables.changed(judged.experiences, (*CHANGED, passive.FUSED), "candidates of"),
        "resonance changed": tables.changed(
            {rule: judged.values[ASKED] | values for rule, values in judged.rules.items()}, CHANGED, "resonance"
        ),
    }


def _tell(study: str, one: dict[str, Any], *, ablations: bool) -> None:
    _head(
        f"{QUESTIONS[study]}: {one['events']} events, {one['candidates']:.0f} candidates and "
        f"{one['concerned']:.1f} concerned each; gossip reached {one['reached']:.2f} of candidates, "
        f"{one['concerned reached']:.2f} of those concerned"
    )
    for view in VIEWS:
        print(f"\n[{view}]\n{tables.text(one['rankings'][view])}\n\n{tables.text(one['differences'][view])}")
    print(f"\n[inboxes, epochs of 30 days]\n{tables.text(one['inboxes'])}")
    print(f"\n[candidates of more or less experience]\n{tables.text(one['experience'])}")
    if ablations:
        print(f"\n[parts of resonance changed]\n{tables.text(one['resonance changed'])}")
        print(f"\n[settings and inputs changed]\n{tables.text(one['settings and inputs changed'])}")


def _head(title: str) -> None:
    print(f"\n{title}\n{'=' * min(len(title), 120)}")
