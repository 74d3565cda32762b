"""The demo: this package's whole path on real input, told so that it reads like something."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from hyphae_gpu.chronicle import record_of
from hyphae_gpu.config import Settings
from hyphae_gpu.demo.batches import Batch, agent_of, write_corpus
from hyphae_gpu.demo.libraries import SUBPACKAGES
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.errors import UsageError
from hyphae_gpu.ingest import read_rows
from hyphae_gpu.progress import Progress, Silent
from hyphae_gpu.report import Record, write_report
from hyphae_gpu.report.metrics import totals
from hyphae_gpu.report.record import Emerged, Inbox, Received
from hyphae_gpu.report.wording import counted, reason, source, why_promoted
from hyphae_gpu.store import Store, open_store

#: The demo's project in the store; every demo begins it anew.
PROJECT = "demo"
#: Maintainers whose inboxes are shown: neighbours, in other libraries, of what the news is about.
FEATURED = tuple(
    agent_of(subpackage)
    for subpackage in (
        "scipy.linalg",
        "numpy.random",
        "matplotlib.colors",
        "torch.utils.data",
        "joblib",
        "torch.linalg",
        "scipy.fft",
        "sklearn.linear_model",
    )
)
_TOLD_AGENTS, _TOLD_ENTRIES, _WIDTH = 4, 4, 100
#: Promotions that are told of each layer, the upper first; and patterns.
_TOLD_PROMOTIONS, _TOLD_PATTERNS = ((2, 2), (1, 1)), 2
#: How pieces of news came to be, by diff type.
_KINDS = {
    "created": "noted",
    "updated": "changed",
    "superseded": "on what was superseded",
    "contradiction": "on contradictions",
    "pattern": "of patterns",
}


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What a demo made: the record that was told, the page about it, wall seconds."""

    record: Record
    report: Path
    seconds: float


def run_demo(
    settings: Settings,
    *,
    directory: Path,
    progress: Progress | None = None,
    out: TextIO | None = None,
    as_of: datetime | None = None,
    subpackages: Iterable[str] = SUBPACKAGES,
) -> Demo:
    """Let the news of installed libraries' documentation travel among their maintainers, and tell what reached whom.

    Rows go to `directory`/demo-rows, the page to `directory`/report.html; the store is the embedded one in
    `settings.data_dir`, project `demo`, begun anew. `as_of` is the last epoch's time (default: now, to the hour); the
    story does not depend on it. Writes the story to `out`. Raises DatabaseError, BusyError, DeviceError, and UsageError
    when the directory cannot be written or project `demo` holds something else.
    """
    progress = progress or Silent()
    started = time.perf_counter()
    as_of = as_of or datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    settings = settings.model_copy(update={"project": PROJECT, "database_url": None})
    progress.stage("reading the documentation of the installed libraries")
    report = directory / "report.html"
    if report.is_dir():
        raise UsageError(f"{report} is a folder, expected a place for the page: choose another folder")
    try:
        batches = write_corpus(directory / "demo-rows", as_of, subpackages)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be written ({error.strerror}): choose another folder") from None
    with open_store(database_url=None, data_dir=settings.data_dir, project=PROJECT, hold="demo") as store:
        store.begin_anew("demo")
        for batch in batches:
            _take(store, batch, progress)
            if batch.news:
                run_epochs(store, settings, as_of=_microseconds(batch.as_of), progress=progress)
        run_epochs(store, settings, as_of=_microseconds(as_of), progress=progress)
        progress.stage("writing the report")
        record = record_of(store, about=_about(batches), featured=FEATURED, settings=settings.rules())
    demo = Demo(record=record, report=write_report(record, report), seconds=time.perf_counter() - started)
    if out is not None:
        out.write("\n".join(story(demo)) + "\n")
        out.flush()
    return demo


def story(demo: Demo) -> Iterator[str]:
    """Yield the demo's story, line by line, for a terminal of 100 columns."""
    record, sums = demo.record, totals(demo.record)
    yield from _wrapped(record.about, "")
    yield ""
    if not sums.entries:
        yield "Nothing reached an inbox."
    for inbox in record.inboxes[:_TOLD_AGENTS]:
        yield f"Unasked, {_counted(inbox, 'piece', 'pieces')} of news reached the {inbox.name}:"
        yield from _entries(inbox.shown[:_TOLD_ENTRIES])
        yield ""
    for inbox in record.caught[:2]:
        yield f"The {inbox.name} caught {_counted(inbox, 'piece', 'pieces')} of it for the {inbox.shown[0].agent}:"
        yield from _entries(inbox.shown[:2])
        yield ""
    yield from _settled(record.emerged)
    yield from _wrapped(
        f"In all, {sums.arrived:,} of {sums.sent:,} pieces of news{_kinds(record.told)} reached {sums.reached} of "
        f"{sums.agents} maintainers, in {len(record.epochs)} epochs; {demo.seconds:.0f} s with everything.",
        "",
    )
    yield f"The whole picture: {demo.report}"
    if record.inboxes:
        yield f'More of it:        hyphae-gpu inbox "{record.inboxes[0].name}" --why --project {PROJECT}'


def _settled(emerged: Emerged) -> Iterator[str]:
    """Yield what the swarm made of it by itself: what was promoted and why, and what several agents noted alike."""
    if emerged.promoted:
        up = {layer: sum(count for (_, to), count in emerged.promoted.items() if to == layer) for layer in (1, 2)}
        yield from _wrapped(
            f"By itself the swarm promoted {counted(up[1], 'piece')} of news that enough of one of its "
            f"{counted(emerged.scene_count, 'topic')} had (layer 1), and {up[2]:,} of them again that enough topics "
            "had (layer 2), from where they travel farther:",
            "",
        )
        for layer, told in _TOLD_PROMOTIONS:
            of_layer = [one for one in emerged.promotions if one.layer == layer]
            for one in of_layer[:told]:
                yield f"  to layer {one.layer}  {one.sent.subject}"
                yield from _wrapped(one.sent.title, " " * 14)
                why = f"({one.sent.knowledge_type} from {source(one.sent)}; {why_promoted(one)})"
                yield from _wrapped(why, " " * 14)
        yield ""
    if emerged.pattern_count:
        yield f"It found {counted(emerged.pattern_count, 'pattern')}, which several maintainers noted alike:"
        for pattern in emerged.patterns[:_TOLD_PATTERNS]:
            yield f"  {'pattern':<10}  {pattern.subject}"
            yield from _wrapped(pattern.title, " " * 14)
            yield f"{' ' * 14}({counted(pattern.members, 'cell')} of {counted(pattern.agents, 'maintainer')})"
        yield ""


def _kinds(told: Mapping[str, int]) -> str:
    """Return in brackets how news came to be, where some of it was made by the swarm."""
    made = [f"{told[kind]:,} {words}" for kind, words in _KINDS.items() if told.get(kind)]
    return f" ({', '.join(made)})" if len(made) > 1 else ""


def _about(batches: list[Batch]) -> str:
    """Return what was run, in words."""
    history = batches[0]
    news = sum(batch.cells for batch in batches[1:])
    return (
        f"{history.agents} maintainers of Python subpackages remember what their documentation says: {history.cells:,} "
        f"facts, constraints, notes and lessons, typed by the section they stand in. This week they noted {news:,} "
        "deprecations, changes, warnings and recommendations. Nobody was told whom to tell: each piece travelled from "
        "link to link to where it means something."
    )


def _counted(inbox: Inbox, one: str, many: str) -> str:
    """Return how many entries an inbox has, with their noun."""
    return f"{inbox.entries:,} {one if inbox.entries == 1 else many}"


def _take(store: Store, batch: Batch, progress: Progress) -> None:
    """Ingest one batch, exactly as `hyphae-gpu ingest` does."""
    progress.stage(f"ingesting {batch.path.name}: {batch.rows:,} rows")
    rows = read_rows([batch.path], known=store.known(), embed="lsa", kind=None, now=_microseconds(batch.as_of))
    store.write_rows(rows, diffs=batch.news)


def _entries(entries: Iterable[Received]) -> Iterator[str]:
    for entry in entries:
        yield f"  {entry.sent.knowledge_type:<10}  {entry.sent.subject}"
        yield from _wrapped(entry.sent.title, " " * 14)
        yield from _wrapped(f"({reason(entry)})", " " * 14)


def _wrapped(text: str, margin: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)


def _microseconds(moment: datetime) -> int:
    """Return a time as the store's clock has it: microseconds since 1970 UTC."""
    return int(moment.timestamp()) * 1_000_000
