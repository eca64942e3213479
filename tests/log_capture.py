"""The log as a gateway writes it, in this process, for the length of a block."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from gateway.telemetry.logs import REQUESTS, configure_logging


class Log(io.StringIO):
    """What was written to standard error."""

    @property
    def lines(self) -> list[str]:
        """Its lines, as whatever reads logs splits them."""
        return self.getvalue().splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The lines as JSON."""
        return [json.loads(line) for line in self.lines]


@contextmanager
def logging_to(level: str = "INFO", form: str = "text", requests: str = "failed") -> Iterator[Log]:
    """Configured as `weir serve` does it; afterwards all is as before."""
    root, log = logging.getLogger(), Log()
    handlers, before, of_requests = root.handlers[:], root.level, REQUESTS.level
    try:
        with mock.patch.object(sys, "stderr", log):
            configure_logging(level, form, requests)
            yield log
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = handlers
        root.setLevel(before)
        REQUESTS.setLevel(of_requests)
        logging.getLogger("opentelemetry").setLevel(logging.NOTSET)
