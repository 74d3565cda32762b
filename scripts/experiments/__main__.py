"""The command behind scripts/kep_delivery: data, events, rankings, figures, tables."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from experiments import active, delivery, tables
from experiments.dataset import MissingDataError, load
from experiments.jobs import BY_THE_RULE, STUDIES, TOUCHES, done, jobs
from experiments.rank import ASKED, VIEWS, Judged
from experiments.replay import KNOWLEDGE, SALIENCE, SETTINGS
from hyphae_gpu.config import available_cores

PARTS = ("delivery", "experiments", "ablations")
CHANGED = (active.RESONANCE, active.AUDIENCE)


def main(arguments: list[str]) -> int:
    """Measure and print; returns the exit code, 0 also where there is no data."""
    parser = argparse.ArgumentParser(
        prog="scripts/kep_delivery",
        description="How well proposals reach the people they concern, on real people and proposals.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--data", type=Path, default=default, help="folder of the data")
    parser.add_argument("--json", type=Path, metavar="OUT", help="file that takes all figures")
    parser.add_argument("--sig", default="sig-node", help="whose inbox is shown")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes at once")
    given = parser.parse_args(arguments)
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; expected some of {', '.join(PARTS)}")
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: expected at least 1")
    try:
        data = load(given.data)
    except MissingDataError as problem:
        print(f"kep_delivery: skipped: {problem}", file=sys.stderr)
        return 0
    began = time.perf_counter()
    parts = given.parts or PARTS
    result: dict[str, Any] = {
        "settings": SETTINGS.rules() | {"salience": SALIENCE, "knowledge_type": KNOWLEDGE.name.lower()}
    }
    if "delivery" in parts:
        result["delivery"] = _delivery(delivery.measure(data, given.sig), given.sig)
    if "experiments" in parts or "ablations" in parts:
        result["studies"] = _studies(given.data, given.jobs, ablations="ablations" in parts)
    result["seconds"] = time.perf_counter() - began
    print(f"\n{result['seconds']:.0f} s in all")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(tables.plain(result), indent=2, allow_nan=False) + "\n", "utf-8")
    return 0


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
        "experience": tables.changed(judged.experiences, (*CHANGED, "centroid + recent activity"), "candidates of"),
        "resonance changed": tables.changed(judged.rules, CHANGED, "resonance"),
    }


def _tell(study: str, one: dict[str, Any], *, ablations: bool) -> None:
    question = "who newly touches it within a year" if study == TOUCHES else "who reviews or approves"
    _head(
        f"{question}: {one['events']} events, {one['candidates']:.0f} candidates and {one['concerned']:.1f} concerned "
        f"each; gossip reached {one['reached']:.2f} of candidates, {one['concerned reached']:.2f} of those concerned"
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
