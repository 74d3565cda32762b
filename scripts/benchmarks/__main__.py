"""The command behind scripts/bench: a case, its rows, a table on stdout, JSON into a file."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from benchmarks.machine import facts
from benchmarks.result import DifferentError, table
from benchmarks.timing import say
from hyphae_gpu.config import available_cores

CASES = ("propagate", "resonance", "scenes", "topology", "checkpoint", "epoch")


def main(arguments: list[str]) -> int:
    """Run one case and return the exit code: 1 where results differed, else 0."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    cases = parser.add_subparsers(dest="case", required=True, metavar="CASE")
    for name in CASES:
        module = importlib.import_module(f"benchmarks.{name}")
        case = cases.add_parser(
            name,
            help=module.__doc__,
            description=module.__doc__,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        case.add_argument("--json", type=Path, required=True, metavar="OUT", help="file that takes the whole result")
        module.add_arguments(case, available_cores())
    given = parser.parse_args(arguments)
    module = importlib.import_module(f"benchmarks.{given.case}")
    given.json.parent.mkdir(parents=True, exist_ok=True)

    asked = {name: value for name, value in vars(given).items() if name not in ("case", "json", "cache")}
    result = {"case": given.case, "asked": asked, "machine": facts(), "rows": []}
    try:
        for row in module.rows(given):
            result["rows"].append(row)
            _write(given.json, result)
            say(table([row], module.COLUMNS))
    except DifferentError as problem:
        result["different"] = str(problem)
        result["rows"].append({"equal": False})
        _write(given.json, result)
        say(f"{given.case}: {problem}")
        return 1
    machine = result["machine"]
    print(f"{given.case} on {machine['cpu']}, {machine['cores']} cores, caches {machine['caches']}")
    print(table(result["rows"], module.COLUMNS))
    return 0


def _write(file: Path, result: dict[str, object]) -> None:
    file.write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
