"""Commands that compute: ingest, run, propagate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyphae_gpu.commands.options import DEVICE, EPOCH, GOSSIP, STORE, with_settings
from hyphae_gpu.commands.session import Session, can_be_written, counted, moment, open_session_store, pairs, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hyphae_gpu.engine import EpochReport

#: The panel of the help page that these commands stand in.
PANEL = "Let knowledge travel"


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for function in (ingest, run, propagate):
        app.command(rich_help_panel=PANEL)(function)


@with_settings(*STORE, "embed")
def ingest(
    session: Session,
    files: Annotated[list[Path], typer.Argument(help="JSONL or Parquet files.", metavar="FILE", show_default=False)],
    kind: Annotated[
        str | None,
        typer.Option(help="What the rows are, where the file does not say: cell, agent, beacon, access or edge."),
    ] = None,
    no_diffs: Annotated[
        bool, typer.Option("--no-diffs", help="Load as history: no news of these cells spreads.")
    ] = False,
) -> None:
    """Put rows into the store: all of them or, where any row is bad, none.

    A row is one JSON object a line (or a Parquet row), such as

    {"kind": "cell", "id": "c1", "text": "Retry on 429", "knowledge_type": "lesson", "agent": "ana"}

    Example:  hyphae-gpu ingest cells.jsonl agents.jsonl --embed lsa
    """
    from hyphae_gpu.ingest import read_rows

    with session.watch() as progress, open_session_store(session, hold="ingest") as store:
        progress.stage(f"reading {counted(len(files), 'file')}")
        rows = read_rows(files, known=store.known(), embed=session.settings.embed, kind=kind, now=now())
        progress.stage(f"writing {counted(len(rows), 'row')}")
        written = store.write_rows(rows, diffs=not no_diffs)
    session.show(written, pairs("written", written))


@with_settings(*STORE, *GOSSIP, *EPOCH, *DEVICE)
def run(
    session: Session,
    epochs: Annotated[int, typer.Option(min=1, help="How many epochs.")] = 1,
    as_of: Annotated[
        str | None,
        typer.Option(help="The time it is, ISO 8601 with zone or epoch seconds.", show_default="now"),
    ] = None,
) -> None:
    """Let knowledge travel: run epochs, with a checkpoint after each.

    An epoch takes in what was ingested, links it, lets news spread and fills the inboxes. Killed at any moment, the
    next run goes on from the last whole epoch.

    Example:  hyphae-gpu run --epochs 3
    """
    from hyphae_gpu.engine import run_epochs

    when = moment(as_of, "--as-of")
    with session.watch() as progress, open_session_store(session, hold="run") as store:
        reports = run_epochs(store, session.settings, epochs=epochs, as_of=when, progress=progress)
    session.show({"epochs": reports}, epochs_table(reports))


@with_settings(*GOSSIP, *DEVICE)
def propagate(
    session: Session,
    nodes: Annotated[Path, typer.Option(help="Parquet: id, type, layer, embedding, interests.", show_default=False)],
    edges: Annotated[Path, typer.Option(help="Parquet: src, tgt, type, weight, bandwidth, kind.", show_default=False)],
    diffs: Annotated[
        Path, typer.Option(help="Parquet: id, origin, diff_type, knowledge_type, salience, ...", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Parquet file of deliveries to write.", show_default=False)],
    resonance: Annotated[
        bool, typer.Option("--resonance", help="Add how strongly each diff concerns each node it reached.")
    ] = False,
) -> None:
    """Spread diffs over a graph you bring: no store, no epochs, nothing kept.

    Example:  hyphae-gpu propagate --nodes n.parquet --edges e.parquet --diffs d.parquet --out deliveries.parquet
    """
    from hyphae_gpu.clock import Clock
    from hyphae_gpu.ingest.graph_files import read_graph, write_deliveries
    from hyphae_gpu.propagation import propagate as spread

    can_be_written(out)
    with session.watch() as progress:
        clock = Clock(progress)
        with clock.stage("read"):
            graph = read_graph(nodes, edges, diffs, max_hops=session.settings.max_hops)
        result = spread(graph.nodes, graph.edges, graph.diffs, session.settings, resonance=resonance, progress=progress)
        with clock.stage("write"):
            write_deliveries(out, graph, result.deliveries, result.resonances)
    counts = vars(result.counts)
    order = ("read", *result.seconds, "write")
    seconds = {stage: (clock.seconds | result.seconds)[stage] for stage in order}
    spent = {stage: f"{value:.2f} s" for stage, value in seconds.items()}
    session.show(counts | {"seconds": seconds}, pairs("propagated", counts), "", pairs("time", spent))


def epochs_table(reports: Sequence[EpochReport]) -> RenderableType:
    """Return what epochs did, one a line."""
    columns = ("epoch", "live diffs", "deliveries", "hops, most", "inbox entries", "cut by limits", "seconds")
    rows = [
        (
            report.epoch,
            report.counts["live_diffs"],
            report.counts["deliveries"],
            max(0, len(report.counts["hops"]) - 1),
            report.counts["inbox"],
            report.counts["cut"],
            f"{sum(spent for stage, spent in report.seconds.items() if '.' not in stage):.2f}",
        )
        for report in reports
    ]
    return table(columns, rows)


def now() -> int:
    """Return the time in microseconds since 1970 UTC."""
    return time.time_ns() // 1000
