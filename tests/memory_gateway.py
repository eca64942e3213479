"""A whole straight line on ports in memory, and what must hold after every request."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from memory_months import MemoryMonths
from memory_pool_queue import MemoryStore
from memory_ports import (
    FixedTokenizer,
    MemoryDirectory,
    MemoryFleet,
    MemoryJournal,
    MemoryLedger,
    StandingClock,
)
from msgspec.structs import replace
from scripted_engine import RecordingConnection, ScriptedEngine, Step
from tenant_examples import SECRET, a_worker
from waiting_rooms import StoresWorkers

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.adapters.body_reader import BodyReader
from gateway.domain import routing
from gateway.domain.admission import Settled
from gateway.domain.body_room import BodyRoom
from gateway.domain.pools import pool_of_worker
from gateway.domain.tenant import RequestClass
from gateway.serving.attempt import Upstream
from gateway.serving.completion import Completions
from gateway.serving.hosted import HostedFallback
from gateway.serving.leases import Leases
from gateway.serving.live import LiveRequests
from gateway.serving.policy import Policy
from gateway.serving.pool_workers import workers_of
from gateway.serving.queue.places import Places
from gateway.wire.bodies import Endpoint

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}
DEADLINE_S = 5.0


class FleetsWorkers(StoresWorkers):
    """As the fleet is, where the store has been told of them."""

    def __init__(self, store: MemoryStore, fleet: MemoryFleet) -> None:
        super().__init__(store)
        self._fleet = fleet

    def has_any(self, pool: str) -> bool:
        return bool(routing.eligible(workers_of(self._fleet, pool)))

    def sees(self, pool: str, worker: str) -> bool:
        return any(
            view.worker.id == worker for view in routing.eligible(workers_of(self._fleet, pool))
        )


class MemoryGateway:
    """Everything that one request meets. Build it inside a running loop."""

    def __init__(
        self,
        *scripts: Sequence[Step],
        workers: int = 1,
        on_ended: Callable[[UsageRecord], None] = lambda _: None,
        **policy: Any,
    ) -> None:
        self.clock = StandingClock()
        self.directory = MemoryDirectory(*(a_worker(f"w{i}") for i in range(workers)))
        self.ledger = MemoryLedger(self.clock, ttl_ms=600_000)
        self.journal = MemoryJournal()
        self.fleet = MemoryFleet(self.directory)
        self.hosted = HostedFallback(self.directory, self.clock)
        self.engine = ScriptedEngine(*scripts)
        self.tokenizer = FixedTokenizer()
        self.room = BodyRoom(64 * 1024 * 1024)
        self.months = MemoryMonths(self.ledger)
        self.leases = Leases(self.ledger, self.clock, renew_ms=2_500, months=self.months)
        self.queues = MemoryStore()
        for number in range(workers):
            self.queues.room(f"w{number}", 10**6)
        self.places = Places(
            self.queues.gateway("g"),
            self.leases.watch,
            self.clock,
            FleetsWorkers(self.queues, self.fleet),
        )
        self.live = LiveRequests(
            self.clock,
            first_event_timeout_ms=30_000,
            stall_timeout_ms=10_000,
            stream_ms_max=100_000,
            slow_reader_ms_max=20_000,
        )
        settings: dict[str, Any] = {
            "directory_stale_ms_max": 60_000,
            "stores_unseen_ms_max": 60_000,
            "keepalive_ms": 15_000,
            "cache_salt_secret": "s",
            "show_worker_header": False,
        }
        self.completions = Completions(
            directory=self.directory,
            room=self.room,
            reader=BodyReader(),
            tokenizer=self.tokenizer,
            leases=self.leases,
            places=self.places,
            journal=self.journal,
            upstream=Upstream(self.engine, self.fleet, self.clock, self.hosted),
            live=self.live,
            clock=self.clock,
            on_ended=on_ended,
            policy=Policy(**{**settings, **policy}),
        )

    def reserve(self, worker: str, request_class: RequestClass, *, sequences: int = 10**6) -> None:
        """Keep a worker for a class, as an operator does: every gateway sees it there at once."""
        workers = self.directory.all_workers
        self.directory.all_workers = [
            replace(each, request_class=request_class) if each.id == worker else each
            for each in workers
        ]
        self.queues.lose_worker(worker)
        (reserved,) = (each for each in self.directory.all_workers if each.id == worker)
        self.queues.room(worker, sequences, pool=pool_of_worker(reserved))

    def a_client(self, body: object = None, **changes: object) -> RecordingConnection:
        """A client that will send `body`, or CHAT with changes."""
        whole = {**CHAT, **changes} if body is None else body
        return RecordingConnection(
            whole if isinstance(whole, bytes) else json.dumps(whole).encode()
        )

    async def serve(
        self,
        client: RecordingConnection,
        *,
        endpoint: Endpoint = "chat",
        headers: dict[bytes, bytes] | None = None,
    ) -> RecordingConnection:
        """Serve one client to the end, within a deadline."""
        given = {b"authorization": b"Bearer " + SECRET.encode(), **(headers or {})}
        async with asyncio.timeout(DEADLINE_S):
            await self.completions.serve(endpoint, given, "127.0.0.1", client)
            await self.places.until_told()
        return client

    async def post(self, body: object = None, **changes: object) -> RecordingConnection:
        """One chat completion, CHAT with changes, to the end."""
        return await self.serve(self.a_client(body, **changes))

    @property
    def record(self) -> UsageRecord:
        """The only record."""
        (record,) = self.journal.records
        return record

    def assert_one_of_each(self, outcome: Outcome) -> UsageRecord:
        """INV-1, INV-5: admitted once, recorded once, settled once; nothing is left."""
        (admitted,) = self.journal.admissions
        record = self.record
        assert record.outcome is outcome
        assert record.request_id == admitted.request_id
        (settlement,) = self.ledger.settlements
        used = record.prompt_tokens + record.output_tokens
        ran = bool(record.attempts)
        assert settlement == (admitted.request_id.hex, used, ran, Settled.LIVE)
        self.assert_at_rest()
        return record

    def assert_nothing_admitted(self) -> None:
        """No admission, no record, nothing held; what was held was given back whole."""
        assert self.journal.admissions == []
        assert self.journal.records == []
        assert all(not ran and actual == 0 for _, actual, ran, _ in self.ledger.settlements)
        self.assert_at_rest()

    def assert_at_rest(self) -> None:
        """INV-1: no lease, no stream, no request, no body that waits, no task of one."""
        state = self.ledger.states["acme"]
        assert state.leases == {}
        assert self.leases.held == 0
        assert self.leases.unsettled == 0
        assert self.places.count == 0
        assert self.room.held_bytes == 0
        assert self.queues.is_at_rest
        assert len(self.live) == 0
        assert all(stream.closed for stream in self.engine.streams)
        assert all(count == 0 for count in self.fleet.open.values())
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []


def data_of(client: RecordingConnection) -> list[Any]:
    """The events of a streamed answer, `[DONE]` as that string; comments left out."""
    found: list[Any] = []
    for event in client.sent.decode().split("\n\n"):
        if event.startswith("data: "):
            data = event.removeprefix("data: ")
            found.append(data if data == "[DONE]" else json.loads(data))
    return found


def text_of(client: RecordingConnection, index: int = 0) -> str:
    """The streamed text of one choice."""
    return "".join(
        choice["delta"].get("content") or ""
        for event in data_of(client)
        if isinstance(event, dict)
        for choice in event.get("choices", [])
        if choice["index"] == index
    )


def error_of(client: RecordingConnection) -> dict[str, Any]:
    """The error of an answer that failed: the body, or the stream's last event."""
    if client.headers[b"content-type"] == b"application/json":
        whole: dict[str, Any] = json.loads(client.sent)
        return dict(whole["error"])
    last = data_of(client)[-1]
    assert isinstance(last, dict), "never [DONE] after a failure"
    return dict(last["error"])


async def until(condition: Any) -> None:
    """Wait for a condition, within a deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is anything at all
            await asyncio.sleep(0)
