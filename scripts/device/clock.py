"""How long a part may take, and what a result file says of a part that the clock stopped."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

#: Exit code of a check that the clock stopped.
STOPPED = 3


def say(text: str) -> None:
    """Tell whoever watches."""
    print(text, file=sys.stderr, flush=True)


class Clock:
    """A deadline, in seconds from now."""

    def __init__(self, seconds: float) -> None:
        """Start to count."""
        self._start, self.seconds = time.monotonic(), seconds

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds until the deadline, negative after it."""
        return self.seconds - self.spent

    def allows(self, seconds: float) -> bool:
        """Return whether something that takes so long still ends in time."""
        return seconds <= self.left


class Record:
    """The result file: written anew after each part, so that what was measured outlives a kill."""

    def __init__(self, path: Path | None) -> None:
        """Write to `path`, or only keep what was found."""
        self.path, self.parts = path, dict[str, Any]()
        self._lock = threading.Lock()

    def put(self, name: str, found: Any) -> None:
        """Keep what a part found, in place of what it had found so far."""
        with self._lock:
            self.parts[name] = found
            if self.path is not None:
                beside = self.path.with_name(self.path.name + ".part")
                beside.write_text(json.dumps(self.parts, indent=1) + "\n")
                os.replace(beside, self.path)

    def stop_at(self, clock: Clock) -> threading.Timer:
        """End this process when the clock has run out, whatever it does then; return the timer, to be cancelled."""
        timer = threading.Timer(max(0.0, clock.left), self._stop, [clock])
        timer.daemon = True
        timer.start()
        return timer

    def _stop(self, clock: Clock) -> None:
        try:
            self.put("stopped", f"by the clock, after {clock.seconds:.0f} s")
            say(f"stopped by the clock after {clock.seconds:.0f} s; what was found so far is kept")
        finally:
            os._exit(STOPPED)
