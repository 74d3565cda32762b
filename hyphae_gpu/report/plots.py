"""The report's figures as SVG that stands inside the page and takes its colours and type from it.

Drawn by matplotlib's SVG backend on figures of their own (no pyplot, no global state). Colours are stand-ins that
become the page's CSS variables, so that one figure serves light and dark; the palette is Okabe and Ito's, told apart by
people with any colour vision.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hyphae_gpu.report.metrics import Scope
from hyphae_gpu.report.record import InboxSize

#: Stand-in colour -> what the page puts there; no other colour may appear in a figure.
_COLOURS = {
    "#0b0101": "currentColor",
    "#0b0102": "var(--line)",
    "#0b0111": "var(--c1)",
    "#0b0112": "var(--c2)",
    "#0b0113": "var(--c3)",
    "#0b0114": "var(--c4)",
    "#0b0115": "var(--c5)",
    "#0b0116": "var(--c6)",
    "#0b0117": "var(--c7)",
    "#0b0118": "var(--c8)",
}
_TEXT, _LINE, *_SERIES = _COLOURS
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hyphae",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.parse_math": False,
    "axes.unicode_minus": False,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": _TEXT,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "grid.color": _LINE,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
}
_WIDTH = 5.4
_LABEL_LIMIT = 30


def inbox_figure(sizes: Sequence[InboxSize], *, limit: int = 14) -> str:
    """Draw the fullest inboxes as bars, gossip and beacons apart; empty where there are none."""
    shown = [size for size in sizes if size.entries][:limit]
    if not shown:
        return ""
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(0.9 + 0.27 * len(shown))
        places = range(len(shown))
        axes.barh(places, [size.gossip for size in shown], color=_SERIES[0], label="by gossip", height=0.7)
        through = [size.beacons for size in shown]
        if any(through):
            left = [size.gossip for size in shown]
            axes.barh(places, through, left=left, color=_SERIES[1], label="through a beacon", height=0.7)
            _legend_above(axes)
        axes.set_yticks(places, [_label(size.agent) for size in shown])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("inbox entries")
        axes.grid(axis="x")
        return _svg(figure, "Inbox entries of the agents that received most")


def hops_figure(counted: Mapping[int, int]) -> str:
    """Draw how many entries arrived after how many hops; empty where nothing arrived."""
    described = "Inbox entries by number of hops from the origin"
    return _bars(counted, "hops from the origin", "inbox entries", described, height=2.7)


def met_figure(counted: Mapping[int, int]) -> str:
    """Draw after how many hops the cells of how many contradictions met; empty where none did."""
    described = "Contradictions by number of hops until their two cells met"
    return _bars(counted, "hops until the two met", "contradictions", described, height=2.0)


def rounds_figure(rounds: Mapping[int, tuple[int, int]]) -> str:
    """Draw each epoch's rounds and the sweeps behind them; empty where no epoch ran or none needed a sweep."""
    if not any(sweeps for _, sweeps in rounds.values()):
        return ""
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(1.1 + 0.27 * len(rounds))
        gossip = [count for count, _ in rounds.values()]
        axes.barh(range(len(rounds)), gossip, color=_SERIES[0], label="rounds of gossip", height=0.65)
        sweeps = [count for _, count in rounds.values()]
        axes.barh(range(len(rounds)), sweeps, left=gossip, color=_SERIES[1], label="sweeps", height=0.65)
        axes.set_yticks(range(len(rounds)), [f"epoch {epoch}" for epoch in rounds])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="x")
        _legend_above(axes)
        return _svg(figure, "Rounds and sweeps of each epoch")


def scope_figure(scopes: Sequence[Scope]) -> str:
    """Draw each knowledge type's energy against what it reached; empty where nothing was sent."""
    if not scopes:
        return ""
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(0.9 + 0.55 * len(scopes))
        places = [float(place) for place in range(len(scopes))]
        bars = [("energy at the start", [scope.energy for scope in scopes], _SERIES[0])]
        bars.append(("agents reached, mean", [scope.agents for scope in scopes], _SERIES[1]))
        bars.append(("most hops", [float(scope.hops or 0) for scope in scopes], _SERIES[2]))
        for row, (label, values, colour) in enumerate(bars):
            drawn = axes.barh([place + (row - 1) * 0.26 for place in places], values, 0.24, color=colour, label=label)
            axes.bar_label(drawn, fmt="%.3g", padding=3, fontsize=9)
        axes.set_yticks(places, [_label(scope.knowledge_type) for scope in scopes])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.12)
        axes.grid(axis="x")
        _legend_above(axes)
        return _svg(figure, "Energy by knowledge type and what it reached")


def seconds_figure(seconds: Mapping[str, Sequence[float]], epochs: Sequence[int]) -> str:
    """Draw the wall seconds of each epoch, stage upon stage; the shortest stages of many are drawn as one."""
    if not seconds or not epochs:
        return ""
    kept = sorted(seconds, key=lambda stage: -sum(seconds[stage]))[: len(_SERIES) - 1]
    rest = [sum(seconds[stage][at] for stage in seconds if stage not in kept) for at in range(len(epochs))]
    stacks = [(stage, list(seconds[stage])) for stage in seconds if stage in kept]
    if any(rest):
        stacks.append(("other stages", rest))
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(1.5 + 0.34 * len(epochs))
        left = [0.0] * len(epochs)
        for colour, (stage, values) in zip(_SERIES, stacks, strict=False):
            axes.barh(range(len(epochs)), values, left=left, color=colour, label=_label(stage), height=0.65)
            left = [before + more for before, more in zip(left, values, strict=True)]
        axes.set_yticks(range(len(epochs)), [f"epoch {epoch}" for epoch in epochs])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds")
        axes.grid(axis="x")
        _legend_above(axes)
        return _svg(figure, "Seconds of each epoch by stage")


def degree_figure(counted: Sequence[tuple[int, int, int]]) -> str:
    """Draw how many nodes have how many outgoing edges; empty without a graph."""
    if not counted:
        return ""
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(2.4)
        width = counted[0][1] - counted[0][0] + 1
        starts = [start for start, _, _ in counted]
        axes.bar(starts, [nodes for _, _, nodes in counted], width=width * 0.9, align="edge", color=_SERIES[2])
        axes.set_xlabel("outgoing edges")
        axes.set_ylabel("nodes")
        _whole_numbers(axes)
        axes.grid(axis="y")
        return _svg(figure, "Nodes by number of outgoing edges")


def _bars(counted: Mapping[int, int], across: str, up: str, described: str, *, height: float) -> str:
    """Draw how often whole numbers occur; empty for none."""
    if not counted:
        return ""
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(height)
        axes.bar(list(counted), list(counted.values()), color=_SERIES[0], width=0.75)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        _whole_numbers(axes)
        axes.grid(axis="y")
        return _svg(figure, described)


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, min(height, 12.0)), layout="constrained")
    FigureCanvasSVG(figure)
    figure.patch.set_visible(False)
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    return figure, axes


def _legend_above(axes: Axes) -> None:
    """Explain the colours over the plot, where no bar can be."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, fontsize=9, columnspacing=1.2, handlelength=1.2)


def _whole_numbers(axes: Axes) -> None:
    """Let both axes count in whole numbers."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _label(text: str) -> str:
    """Return a label that fits and holds nothing an SVG may not."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return shown if len(shown) <= _LABEL_LIMIT else shown[: _LABEL_LIMIT - 1] + "…"


def _svg(figure: Figure, described: str) -> str:
    """Return the figure as an <svg> element that scales with the page and says what it shows."""
    out = StringIO()
    with warnings.catch_warnings():
        # A label in a script that matplotlib's font lacks: the page's own fonts draw it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawn = out.getvalue()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    drawn = re.sub(
        r'^<svg[^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{described}">', drawn
    )
    drawn = re.sub(r"<style.*?</style>", "", drawn, count=1, flags=re.DOTALL)
    drawn = re.sub(r'<g id="[^"<>]*">', "<g>", drawn)
    drawn = re.sub(r"font-family: [^;\"<>]*; ", "", drawn)
    for stand_in, colour in _COLOURS.items():
        drawn = drawn.replace(stand_in, colour)
    return drawn
