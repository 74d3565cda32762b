"""The command behind scripts/kep_delivery: arguments, and whether there is data at all."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from experiments.dataset import MissingDataError, load
from hyphae_gpu.config import available_cores

PARTS = ("delivery", "experiments", "ablations")


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
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.touch()
    # The engine is loaded only now, so that --help and refusals come at once.
    measure = importlib.import_module("experiments.measure")
    figures = measure.measured(data, given.data, given.parts or PARTS, sig=given.sig, workers=given.jobs)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2, allow_nan=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
