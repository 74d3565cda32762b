"""The command that lists promotions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyphae_gpu.commands.options import STORE, with_settings
from hyphae_gpu.commands.session import Session, counted, open_session_store, title_of

if TYPE_CHECKING:
    from rich.console import RenderableType

#: The panel of the help page that this command stands in.
PANEL = "Look at what happened"
#: Scenes that the readable form tells of each promotion, at most.
SCENES_SHOWN = 3


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(rich_help_panel=PANEL)(promotions)


@with_settings(*STORE)
def promotions(
    session: Session,
    layer: Annotated[int | None, typer.Option(min=1, max=2, help="Only to this layer.", show_default="both")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many at most, the newest first.")] = 20,
) -> None:
    """Show what the swarm has agreed on: knowledge that reached enough of a topic, or enough topics, to be promoted.

    Layer 1 lies above a topic's cells, layer 2 above all topics; what gets there travels on from there.

    Example:  hyphae-gpu promotions --layer 2
    """
    with open_session_store(session) as store:
        found = store.promotions(layer=layer, limit=limit)
        counts = store.status()["promotions"]
    count = sum(number for word, number in counts.items() if layer is None or word == str(layer))
    rows = [row | {"title": title_of(row)} for row in found]
    session.show({"count": count, "promotions": rows}, *_lines(rows, count))


def _lines(rows: list[dict[str, Any]], count: int) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    of_all = f", the newest {len(rows):,}" if len(rows) < count else ""
    lines: list[RenderableType] = [Text(counted(count, "promotion") + of_all, style="bold")]
    for row in rows:
        lines += ["", Text(row["title"], style="bold")]
        lines += [Padding(Text(line, style="dim"), (0, 0, 0, 2)) for line in (_what(row), _why(row), _way(row))]
    return lines


def _what(row: Mapping[str, Any]) -> str:
    """Say what was promoted to where."""
    maker = f" by {row['agent']}" if row["agent"] else ""
    return f"epoch {row['epoch']}, to layer {row['layer']}: {row['knowledge_type']} {row['origin']}{maker}"


def _why(row: Mapping[str, Any]) -> str:
    """Say whom it had reached: enough nodes of a scene, or enough scenes."""
    scenes = row["scenes"]
    said = [_scene(scene, nodes=row["layer"] == 1) for scene in scenes[:SCENES_SHOWN]]
    if len(scenes) > SCENES_SHOWN:
        said.append(f"{len(scenes) - SCENES_SHOWN:,} more")
    return f"reached {', '.join(said)}"


def _scene(scene: Mapping[str, Any], *, nodes: bool) -> str:
    name = f"{scene['id']} ({scene['name']})" if scene["name"] else scene["id"]
    return f"{counted(scene['count'], 'node')} of {name}" if nodes else name


def _way(row: Mapping[str, Any]) -> str:
    """Say what it became, and how it went up."""
    way = f"went up from {row['carrier']} to {row['entry']}" if row["entry"] else f"layer {row['layer']} was empty then"
    return f"became {row['node']}; {way}"
