"""A worker's ledger over HTTP, and how far back it is whole."""

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from backend.sglang_http import ledger as engine
from backend.sglang_http.generation import FinishReason, Usage
from billing.domain.reconciliation.ledgers import Ran, check_ledger
from gateway.adapters.reconciler_ledgers import Ledger, read_ledger

FIRST, SECOND, THIRD, LONG, NEVER = (UUID(int=n) for n in range(1, 6))
RAN = {
    FIRST: (50_000, 60_000),
    SECOND: (70_000, 80_000),
    THIRD: (85_000, 90_000),
    LONG: (0, 100_000),
    NEVER: (95_000, 105_000),
}
"""When each began and ended by its gateway. The engine knows nothing of the last."""
PROMPT, OUTPUT = 10, 20
Page = Callable[[int], engine.LedgerPage]
Serve = Callable[[Page], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a worker whose pages come from a function; gives its URL."""
    servers: list[TestServer] = []

    async def started(page: Page) -> str:
        async def answer(request: web.Request) -> web.Response:
            body = msgspec.json.encode(page(int(request.query["since"])))
            return web.Response(body=body, content_type="application/json")

        app = web.Application()
        app.router.add_get("/weir/ledger", answer)
        servers.append(TestServer(app))
        await servers[-1].start_server()
        return str(servers[-1].make_url(""))

    yield started
    for server in servers:
        await server.close()


@pytest.fixture
def end(monkeypatch: pytest.MonkeyPatch) -> Callable[[engine.Ledger, UUID], None]:
    """Has a sequence end in a worker's ledger, at its time."""

    def recorded(kept: engine.Ledger, request: UUID) -> None:
        began_ms, ended_ms = RAN[request]
        monkeypatch.setattr(engine, "now_ms", lambda: ended_ms)
        kept.record(
            f"{request.hex}0001",
            Usage(PROMPT, OUTPUT, 0),
            FinishReason.STOP,
            queued_at_ms=began_ms,
            started_at_ms=began_ms,
            running_at_start=1,
        )

    return recorded


def found(ledger: Ledger) -> list[UUID | None]:
    """Requests that a comparison of all attempts with it names."""
    attempts = [
        Ran(request, 0, 1, "w", *times, PROMPT, OUTPUT, "engine_final")
        for request, times in RAN.items()
    ]
    verdict = check_ledger(
        ledger.accounts, attempts, {}, since_ms=ledger.since_ms, until_ms=200_000
    )
    return [each.request_id for each in verdict.findings]


async def test_a_whole_ledger_is_compared_from_its_first_sequence_on(
    serve: Serve, end: Callable[[engine.Ledger, UUID], None]
) -> None:
    kept = engine.Ledger()
    for request in (FIRST, THIRD, LONG):
        end(kept, request)
    assert found(await read_ledger(await serve(kept.page))) == [SECOND, NEVER]


async def test_what_a_ledger_has_dropped_may_have_run(
    serve: Serve, end: Callable[[engine.Ledger, UUID], None]
) -> None:
    """A long sequence that it still has began before short ones that it has not. What began after
    all that it dropped had ended is found as before."""
    kept = engine.Ledger(entries_max=2)
    for request in (FIRST, SECOND, THIRD, LONG):
        end(kept, request)
    assert found(await read_ledger(await serve(kept.page))) == [NEVER]


async def test_what_a_ledger_drops_while_it_is_read_may_have_run(
    serve: Serve, end: Callable[[engine.Ledger, UUID], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two end between one page and the next, in the place of one that was not read yet."""
    monkeypatch.setattr(engine, "PAGE_MAX", 1)
    kept = engine.Ledger(entries_max=2)
    for request in (FIRST, SECOND):
        end(kept, request)

    def page(since: int) -> engine.LedgerPage:
        if since == 1:
            for request in (THIRD, LONG):
                end(kept, request)
        return kept.page(since)

    assert found(await read_ledger(await serve(page))) == [NEVER]
