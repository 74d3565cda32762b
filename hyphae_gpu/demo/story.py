"""The demo: this package's whole path on real input, told so that it reads like something."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator
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
from hyphae_gpu.report.record import Inbox, Received
from hyphae_gpu.report.wording import reason
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
    yield from _wrapped(
        f"In all, {sums.arrived:,} of {sums.sent:,} pieces of news reached {sums.reached} of {sums.agents} "
        f"maintainers, in {len(record.epochs)} epochs; {demo.seconds:.0f} s with everything.",
        "",
    )
    yield f"The whole picture: {demo.report}"
    if record.inboxes:
        yield f'More of it:        hyphae-gpu inbox "{record.inboxes[0].name}" --why --project {PROJECT}'


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
