"""A worker's ledger outlives its kill -9, where it has a file."""

import json
import re
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from worker_process import running_worker


def asked(url: str, method: str, path: str, body: object = None) -> bytes:
    """The body of a 200."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()
    finally:
        connection.close()


def ledger(url: str, since: int = 0) -> Any:
    """A page of it."""
    return json.loads(asked(url, "GET", f"/weir/ledger?since={since}"))


def counted(url: str) -> int:
    """Requests by the engine's own counter."""
    text = asked(url, "GET", "/metrics").decode()
    found = re.findall(r"^sglang:num_requests_total{.*} (\S+)$", text, re.MULTILINE)
    return round(sum(map(float, found)))


def test_a_killed_workers_ledger_goes_on(tmp_path: Path) -> None:
    """kill -9 right after an answer: its entry is there, under its number; the counters, as an
    engine's, begin at 0."""
    path = tmp_path / "ledger"
    flags = ("simulated", "--speed", "50", "--ledger-file", str(path))
    body = {"model": "m", "prompt": "a river", "max_tokens": 3, "rid": "first of all"}
    with running_worker(*flags) as worker:
        asked(worker.url, "POST", "/v1/completions", body)
        worker.process.kill()
        worker.process.wait(10)
    with running_worker(*flags) as worker:
        page = ledger(worker.url)
        assert [entry["rid"] for entry in page["entries"]] == ["first of all"]
        assert counted(worker.url) == 0
        asked(worker.url, "POST", "/v1/completions", {**body, "rid": "second"})
        (entry,) = ledger(worker.url, page["next"])["entries"]
        assert (entry["rid"], entry["completion_tokens"]) == ("second", 3)
        assert counted(worker.url) == 1


def test_replicas_write_one_each(tmp_path: Path) -> None:
    """Two in one process: their numbers end the names."""
    flags = ("--replicas", "2", "--ledger-file", str(tmp_path / "ledger"))
    with running_worker("simulated", *flags):
        assert {each.name for each in tmp_path.iterdir()} == {"ledger.0", "ledger.1"}
