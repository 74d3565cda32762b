"""Commands that read what is known: inbox, search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyphae_gpu.commands.options import STORE, with_settings
from hyphae_gpu.commands.session import Session, counted, moment, open_session_store, table, title_of
from hyphae_gpu.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hyphae_gpu.arrays import F32
    from hyphae_gpu.store import Store

#: The panel of the help page that these commands stand in.
PANEL = "Look at what happened"
#: What the origin of a diff holds at first (spec 3.12): resonance is shown as a share of it. `swarm` has the same
#: number, but would take a second to load.
ORIGIN_HOLDS = 1 << 52
#: What an entry always tells, and what --why adds.
_WHAT = ("epoch", "place", "title", "text", "knowledge_type", "diff_type", "via", "origin", "diff")
_WHY = ("hop", "energy", "score", "resonance", "relevance", "parent", "through", "path")


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for function in (inbox, search):
        app.command(rich_help_panel=PANEL)(function)


@with_settings(*STORE)
def inbox(
    session: Session,
    agent: Annotated[str, typer.Argument(help="Whose inbox.", metavar="AGENT", show_default=False)],
    since: Annotated[int | None, typer.Option(min=0, help="Only epochs from this one on.", show_default="all")] = None,
    why: Annotated[bool, typer.Option("--why", help="Say of each entry how and why it came.")] = False,
) -> None:
    """Show what reached an agent, newest epoch first, the most relevant first.

    Example:  hyphae-gpu inbox ana --why
    """
    with open_session_store(session) as store:
        found = store.inbox(agent, since)
    entries = [entry | {"title": title_of(entry)} for entry in found]
    fields = (*_WHAT, *_WHY) if why else _WHAT
    shown = [{name: entry[name] for name in fields} for entry in entries]
    session.show({"agent": agent, "entries": shown}, *_inbox_lines(agent, entries, why=why))


def _inbox_lines(agent: str, entries: list[dict[str, Any]], *, why: bool) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.table import Column, Table
    from rich.text import Text

    lines: list[RenderableType] = [
        Text(f"{counted(len(entries), 'entry', 'entries')} in the inbox of {agent}", style="bold")
    ]
    for (epoch, via), group in groupby(entries, key=lambda entry: (entry["epoch"], entry["via"])):
        source = "by gossip" if via == "gossip" else f"through beacon {via}"
        lines += ["", Text(f"epoch {epoch}, {source}", style="bold")]
        for entry in group:
            title = Table.grid(Column(width=3, justify="right"), Column(), padding=(0, 2, 0, 0))
            title.add_row(Text(str(entry["place"] + 1), style="dim"), Text(entry["title"]))
            lines.append(title)
            lines.append(Padding(Text(_about(entry), style="dim"), (0, 0, 0, 5)))
            if why:
                lines.append(Padding(Text(_reason(entry), style="dim"), (0, 0, 0, 5)))
    return lines


def _about(entry: Mapping[str, Any]) -> str:
    return f"{entry['knowledge_type']}, {entry['diff_type']}: {entry['origin']}"


def _reason(entry: Mapping[str, Any]) -> str:
    """Say in two lines by which way a diff came, and how it ranks."""
    ranks = [] if entry["through"] is None else [f"mostly through {entry['through']}"]
    ranks.append(f"score {entry['score']:.2f}, resonance {entry['resonance'] / ORIGIN_HOLDS:.2g}")
    ranks.append(f"energy left {entry['energy']:.2f}")
    return f"{counted(entry['hop'], 'hop')}: {' > '.join(entry['path'])}\n{'; '.join(ranks)}"


@with_settings(*STORE)
def search(
    session: Session,
    text: Annotated[str | None, typer.Argument(help="What to look for, in words.", show_default=False)] = None,
    vector: Annotated[
        Path | None, typer.Option(help="A vector instead: a JSON list, or an .npy file.", show_default=False)
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=0, max=2, help="Only this layer.", show_default="all, promoted copies aside")
    ] = None,
    of_type: Annotated[
        str | None,
        typer.Option("--type", help="A knowledge type (decision, ...) or node type.", show_default="cells, scenes"),
    ] = None,
    scene: Annotated[str | None, typer.Option(help="Only cells of this scene.", show_default="any")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only from this time on: ISO 8601 with zone or epoch seconds.", show_default="ever"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 10,
) -> None:
    """Find what is nearest in meaning, also among cells too faded to travel.

    Example:  hyphae-gpu search "retry after an error" --type lesson
    """
    if (text is None) == (vector is None):
        raise UsageError("search: give either words to look for or --vector FILE")
    earliest = moment(since, "--since")
    given = None if vector is None else read_vector(vector)
    with open_session_store(session) as store:
        wanted = _embedded(store, str(text)) if given is None else given
        hits = store.search(wanted, limit=limit, layer=layer, type=of_type, scene=scene, since=earliest)
    rows = [
        (
            f"{round(hit['cosine'], 2) + 0.0:.2f}",
            title_of(hit | {"origin": hit["id"]}),
            hit["knowledge_type"] or hit["type"],
            hit["id"],
        )
        for hit in hits
    ]
    readable = table(("cosine", "what", "type", "id"), rows) if rows else "nothing found"
    session.show({"hits": hits}, readable)


def _embedded(store: Store, text: str) -> F32:
    """Return the words' vector in the store's own space."""
    from hyphae_gpu.ingest import embed_texts

    space = store.known().embedding_space
    if space is None:
        raise UsageError("the store holds no vectors yet: ingest some rows first (hyphae-gpu ingest FILES)")
    vector: F32 = embed_texts([text], space=space, arrays=store.embedder_arrays())[0]
    return vector


def read_vector(file: Path) -> F32:
    """Return the vector in a JSON or .npy file as float32 [d]; raises UsageError for anything else."""
    import numpy as np

    try:
        if file.suffix == ".npy":
            found = np.load(file, allow_pickle=False)
        else:
            found = np.array(json.loads(file.read_text("utf-8")))
    except OSError as error:
        raise UsageError(f"--vector {file}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--vector {file}: {error}; expected a JSON list of numbers, or an .npy array") from None
    if found.ndim == 2 and len(found) == 1:
        found = found[0]
    if found.ndim != 1 or found.dtype.kind not in "fiu":
        raise UsageError(
            f"--vector {file}: holds {found.dtype} of shape {list(found.shape)}, expected one list of numbers"
        )
    with np.errstate(over="ignore"):
        vector: F32 = found.astype(np.float32)
    return vector
