"""The command behind scripts/fact_stream: contradictions among dated facts, and among labelled sentence pairs."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

PARTS = ("facts", "sentences")
#: What is streamed: policy, decay_per_day, fanout.
RUNS = (("recency", 1.0, 10), ("flag", 1.0, 10), ("flag", 1.0, 12), ("recency", 0.99, 10), ("flag", 0.99, 10))
SHOWN = 3


def main(arguments: list[str]) -> int:
    """Measure and print; returns the exit code, 0 also where there is no data."""
    parser = argparse.ArgumentParser(
        prog="scripts/fact_stream",
        description="Which contradictions gossip finds, and when, on real facts and sentences.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; both where none is named")
    parser.add_argument("--data", type=Path, default=default, help="folder of the data")
    parser.add_argument("--json", type=Path, metavar="OUT", help="file that takes all figures")
    parser.add_argument("--by-clock", action="store_true", help="facts in the order of their own clocks")
    parser.add_argument("--verifier", metavar="MODULE:FUNCTION", help="judges the sentence pairs too")
    given = parser.parse_args(arguments)
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; expected some of {', '.join(PARTS)}")
    # The engine takes seconds to load, which help and refusals need not wait for.
    from experiments.dataset import MissingDataError  # noqa: PLC0415 - as just said

    result: dict[str, Any] = {}
    began = time.perf_counter()
    try:
        if "facts" in (given.parts or PARTS):
            result["facts"] = _facts(given.data, by_clock=given.by_clock)
        if "sentences" in (given.parts or PARTS):
            result["sentences"] = _sentences(given.data, given.verifier)
    except MissingDataError as problem:
        print(f"fact_stream: skipped: {problem}", file=sys.stderr)
        return 0
    result["seconds"] = time.perf_counter() - began
    print(f"\n{result['seconds']:.0f} s in all")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", "utf-8")
    return 0


def _facts(folder: Path, *, by_clock: bool) -> list[dict[str, Any]]:
    from experiments import facts, tables  # noqa: PLC0415 - as said in main
    from hyphae_gpu.config import Settings  # noqa: PLC0415 - as said in main

    stream = facts.load(folder, by_clock=by_clock)
    results = []
    for policy, decay, fanout in RUNS:
        settings = Settings(device="cpu", policy=policy, decay_per_day=decay, fanout=fanout)

        def told(epoch: int, of: int, what: str = f"{policy}, decay {decay}, fanout {fanout}") -> None:
            if epoch % 12 == 0:
                print(f"fact_stream: {what}: epoch {epoch} of {of}", file=sys.stderr)

        results.append({"fanout": fanout} | facts.streamed(stream, settings, told))
    lists = ("missed", "not wanted")
    print(
        f"\n{len(stream.texts)} facts in epochs of {facts.EPOCH_FACTS}; wanted: known conflicts, under flag all pairs"
    )
    counted = [row | {name: len(row[name]) for name in lists} for row in results]
    heads = [f"({place})" for place in range(1, len(counted) + 1)]
    columns = dict(zip(heads, counted, strict=True))
    print(
        tables.text(
            [{"": name} | {head: columns[head][name] for head in heads} for name in counted[0] if name != "state_hash"]
        )
    )
    for row in results:
        for name in lists:
            for first, second in row[name][:SHOWN]:
                print(f"\n{row['policy']}, fanout {row['fanout']}, decay {row['decay_per_day']}, {name}:")
                print(f"  {stream.texts[first]}\n  {stream.texts[second]}")
    return results


def _sentences(folder: Path, verifier: str | None) -> list[dict[str, Any]]:
    from experiments import sentences, tables  # noqa: PLC0415 - as said in main
    from hyphae_gpu.config import Settings  # noqa: PLC0415 - as said in main

    rows = sentences.measured(folder, verifier, Settings(device="cpu"))
    print("\nSentence pairs with labels: contradictions raised in one epoch")
    print(tables.text([{name: "-" if value is None else value for name, value in row.items()} for row in rows]))
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
