"""A system in which all that a dashboard asks after happens, within little more than a minute."""

import http.client
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from weir_dev import Json, WeirDev, weir_dev

LOAD_S = 40.0
AWAITED_S = 90.0
"""And then so long at most until what comes once a minute has come."""
REFUSED_S = 8.0
INTERACTIVE_CLIENTS = 6
BATCH_CLIENTS = 16
WORKER_FLAGS = "--max-running-requests 6 --natural-output-tokens 96 --max-total-tokens 24000"
UNPRICED = "afar"


@contextmanager
def sink() -> Iterator[str]:
    """The address of a server that takes whatever is sent there: metrics, spans and alerts. The
    first of each path is answered with 500, so that it can be seen to fail too."""
    seen: set[str] = set()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            first = self.path not in seen
            seen.add(self.path)
            self.send_response(400 if first else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            serving.join()


@contextmanager
def watched_system(data_dir: Path) -> Iterator[WeirDev]:
    """Two gateways over two small simulated workers, with a simulated hosted provider."""
    with sink() as address:
        environment = {
            "WEIR_ALERT_WEBHOOK_URL": f"{address}/alerts",
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "WEIR_METRICS_PUSH_MS": "1000",
        }
        options = ("--engine", "simulated", "--workers", "2", "--gateways", "2")
        more = ("--hosted", "simulated", "--worker-flags", WORKER_FLAGS)
        with weir_dev(data_dir, *options, *more, environment=environment) as made:
            yield made


@dataclass
class Run:
    """The script: who asks for what, and what is done to the system meanwhile."""

    system: WeirDev
    missing: Callable[[], list[str]]
    """What gateways do of themselves, once a minute, and has not been seen yet."""
    over: threading.Event = field(default_factory=threading.Event)
    began_s: float = 0.0
    ended_s: float = 0.0
    """When the load was at its end, and still there."""
    _loaded_s: float = 0.0

    def play(self) -> None:
        """All of it; returns when nothing runs any more."""
        tenants = self._tenants()
        self.began_s = time.time()
        self._be_refused(tenants["small"])
        self._loaded_s = time.time()
        asking = [threading.Thread(target=self._ask, args=(i, tenants)) for i in range(self._many)]
        for each in asking:
            each.start()
        try:
            self._happen()
            self.ended_s = time.time()
        finally:
            self.over.set()
            for each in asking:
                each.join()

    def _be_refused(self, small: WeirDev) -> None:
        """By a tenant's own limit: where places are free nothing else comes before it."""
        until = time.monotonic() + REFUSED_S
        while time.monotonic() < until:
            small.chat("Again.", max_tokens=4)
            self.over.wait(0.2)

    @property
    def _many(self) -> int:
        return INTERACTIVE_CLIENTS + BATCH_CLIENTS + 1

    def _tenants(self) -> dict[str, WeirDev]:
        made: dict[str, Json] = {
            "hosted": {"data_policy": "hosted_allowed", "max_queued": 50, "max_wait_ms": 2000},
            "small": {"max_sequences": 1, "rpm": 3, "max_queued": 0, "max_wait_ms": 0},
            "impatient": {"max_queued": 1, "max_wait_ms": 100},
            "thrifty": {"monthly_budget": "0.01", "max_queued": 50, "max_wait_ms": 5000},
        }
        tenants = {name: self.system.with_new_tenant(limits) for name, limits in made.items()}
        self._serve_without_price()
        return tenants

    def _serve_without_price(self) -> None:
        """A model that only the provider has, and that nobody has given a price."""
        model = {"id": UNPRICED, "context_tokens": 8192, "max_output_tokens": 512}
        assert self.system.admin("POST", "/admin/v1/models", model).status == 201
        listed = self.system.admin("GET", "/admin/v1/hosted").json["items"]
        (provider,) = listed
        models = {**provider["models"], UNPRICED: {"name": "simulated"}}
        body = {"name": provider["name"], "url": provider["url"], "models": models}
        reply = self.system.admin("POST", "/admin/v1/hosted", body)
        assert reply.status in (200, 201), reply.raw

    def _ask(self, index: int, tenants: dict[str, WeirDev]) -> None:
        """One client, until the script is over."""
        asked = 0
        while not self.over.is_set():
            asked += 1
            try:
                self._one(index, asked, tenants)
            except (OSError, http.client.HTTPException):
                self.over.wait(0.1)

    def _one(self, index: int, asked: int, tenants: dict[str, WeirDev]) -> None:
        text = f"Of river {index}, for the {asked}th time. " + "It runs and runs. " * 40
        common: Json = {"gateway": index, "stream": True}
        if index < INTERACTIVE_CLIENTS:
            seen = (self.system, tenants["hosted"], tenants["thrifty"])[index % 3]
            dearer = 8 if seen is tenants["thrifty"] else 1
            reply = seen.chat(text * dearer, max_tokens=24 + 8 * index, **common)
            self.over.wait(1.0 if reply.status == 429 else 0.05 * index)
        elif index < INTERACTIVE_CLIENTS + BATCH_CLIENTS:
            token = self.system.key(request_class="batch")
            self.system.chat(text * 12, max_tokens=160, token=token, **common)
        else:
            tenants["impatient"].chat(text, max_tokens=8, **common)
            tenants["hosted"].chat(text, max_tokens=8, model=UNPRICED, **common)
            self.system.chat("x", max_tokens=4, model="unknown", **common)
            self.over.wait(0.3)

    def _happen(self) -> None:
        """A worker is killed, then the other: each comes back by itself after ten seconds, and
        meanwhile there is none for a while."""
        for at_s, index in ((5.0, 0), (9.0, 1)):
            self._until(at_s)
            os.kill(self.system.ready["pids"]["workers"][index], signal.SIGKILL)
        self._until(LOAD_S)
        while missing := self.missing():
            waited_s = time.time() - self._loaded_s - LOAD_S
            assert waited_s < AWAITED_S, missing
            self.over.wait(1.0)

    def _until(self, after_s: float) -> None:
        self.over.wait(max(0.0, self._loaded_s + after_s - time.time()))
