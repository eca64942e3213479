"""Single requests on the admin API: a whole life by its id, and lists that no filter makes slow."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
import pytest
from admin_api import PASSWORD, AdminApi, client_of
from invoice_world import MODEL, InvoiceWorld
from litestar import Litestar
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.postgres import request_list
from gateway.adapters.births import Births
from gateway.adapters.presence import Gateways
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.request_story import RequestStories
from gateway.adapters.second_copy import copies_key
from gateway.adapters.second_copy_records import Copies, encode_copy
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.domain.lease import Admitted
from gateway.http.admin import admin_router
from gateway.http.failures import answer_exception
from gateway.http.openapi_requests import RequestAnswer, RequestPageAnswer
from gateway.http.requests import request_handlers

ME = "cli:test"
AT = "2026-01-10T12:00:00.123+00:00"


async def never_lost() -> bool:
    """The store has always been there."""
    return False


@dataclass
class World:
    """The API, with what stands behind it."""

    api: AdminApi
    books: InvoiceWorld
    redis: RedisClient
    gateways: Gateways

    async def life(self, name: object, role: Role = Role.ADMIN) -> dict[str, Any]:
        """Of a request that is there."""
        answer = await self.api.call("GET", f"/requests/{name}", role=role)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert msgspec.convert(found, RequestAnswer)
        return found

    async def page(self, query: str = "", role: Role = Role.ADMIN) -> dict[str, Any]:
        """One page of the list."""
        answer = await self.api.call("GET", f"/requests?{query}", role=role)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert msgspec.convert(found, RequestPageAnswer)
        return found

    async def pages(self, query: str) -> list[list[str]]:
        """The ids of every page of a list, to its end."""
        pages, cursor = [], ""
        while True:
            page = await self.page(query + cursor)
            pages.append([each["id"] for each in page["items"]])
            if page["next_cursor"] is None:
                return pages
            cursor = f"&cursor={page['next_cursor']}"

    async def copy(self, gateway: str, admission: Admitted, output_tokens: int = 0) -> None:
        """A gateway that is there tells the store of a request that it has admitted."""
        await self.gateways.tell(gateway, 0)
        tell = self.redis.register_script("return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])")
        await tell([copies_key(gateway)], [admission.request_id.hex, encode_copy(admission)])
        progress = {admission.request_id: (12, output_tokens)}
        await Copies(self.redis).tell_progress(gateway, progress)


@pytest.fixture
async def world(engine: AsyncEngine, redis_url: str) -> AsyncIterator[World]:
    """Prices, a database of usage, and the store that gateways tell of what runs."""
    books = InvoiceWorld(engine)
    await books.open()
    redis = connect_redis(redis_url, timeout_ms=1_000)
    gateways = Gateways(redis, Births(redis, never_lost))
    administration = Administration(engine)
    for tenant in ("acme", "globex"):
        await administration.create_tenant(ME, tenant, tenant.title())
    stories = RequestStories(engine, gateways, Copies(redis))
    app = Litestar(
        [admin_router(administration, more=request_handlers(stories))],
        exception_handlers={Exception: answer_exception},
    )
    async with client_of(app) as client:
        yield World(AdminApi(client, administration, {}), books, redis, gateways)
    await redis.aclose()


async def test_a_whole_life(world: World) -> None:
    """From its arrival to the lines of the invoice that took it."""
    record = await world.books.use(AT)
    await world.books.close("2026-01")
    life = await world.life(record.request_id)
    assert (life["state"], life["known_from"], life["accounted_by"]) == (
        "ended",
        "record",
        "journal",
    )
    assert (life["arrived_at"], life["ended_at"]) == (
        "2026-01-10T12:00:00.123Z", "2026-01-10T12:00:00.373Z",
    )  # fmt: skip
    assert (life["first_token_at"], life["ttft_ms"]) == ("2026-01-10T12:00:00.163Z", 40)
    assert (life["queued_ms"], life["tpot_us"], life["longest_gap_us"]) == (3, 11_000, 15_000)
    assert (life["outcome"], life["finish_reason"], life["final"]) == ("completed", "stop", True)
    assert life["tokens"] == {"prompt": 12, "cached_prompt": 4, "output": 20, "reasoning": 0}
    assert (life["usage_source"], life["worker_id"]) == ("engine_final", "local-0")
    assert life["journal"] == {"gateway_id": "gw-1", "boot": 7, "seq": 1}
    (attempt,) = life["attempts"]
    assert (attempt["worker_id"], attempt["outcome"], attempt["output_tokens"]) == (
        "local-0", "completed", 20,
    )  # fmt: skip
    assert attempt["began_at"] == "2026-01-10T12:00:00.128Z"
    money = life["money"]
    assert (money["cost"], money["rated"], money["price"]["output"]) == (
        "0.0000884",
        "at_end",
        "4.00",
    )
    lines = [(each["unit"], each["quantity"]) for each in money["invoice"]["lines"]]
    assert lines == [("input_tokens", 8), ("cached_input_tokens", 4), ("output_tokens", 20)]
    assert (money["invoice"]["number"], money["invoice"]["month"]) == ("INV-2026-000001", "2026-01")


async def test_an_id_in_every_form(world: World) -> None:
    """As the answer had it, as the engine's log has it; what is not there is 404, in any form."""
    record = await world.books.use(AT)
    for name in (
        record.request_id,
        f"chatcmpl-{record.request_id}",
        f"{record.request_id.hex}0001",
    ):
        assert (await world.life(name))["id"] == str(record.request_id)
    missing = an_admission().request_id
    for name in (missing, "chatcmpl-nothing", UUID(int=0), UUID(int=(1 << 128) - 1)):
        answer = await world.api.call("GET", f"/requests/{name}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_one_that_runs_is_seen(world: World) -> None:
    """By its gateway's word, with the tokens so far; then the record is what counts."""
    admission = an_admission(model=MODEL)
    await world.copy("gw-2", admission, output_tokens=7)
    life = await world.life(admission.request_id)
    assert (life["state"], life["known_from"], life["gateway_id"]) == ("running", "copy", "gw-2")
    assert (life["tokens"]["prompt"], life["tokens"]["output"]) == (12, 7)
    assert (life["ended_at"], life["outcome"], life["final"]) == (None, None, False)
    record = a_record(admission, model=MODEL)
    tell = world.redis.register_script("return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])")
    await tell([copies_key("gw-2")], [admission.request_id.hex, encode_copy(record)])
    life = await world.life(admission.request_id)
    assert (life["state"], life["known_from"], life["outcome"]) == ("ended", "copy", "completed")
    assert len(life["attempts"]) == 1
    await world.books.ship([record])
    assert (await world.life(admission.request_id))["known_from"] == "record"


async def test_a_provisional_row_says_who_wrote_it(world: World) -> None:
    """Another gateway, and that it is not final."""
    record = await world.books.use(AT, final=False)
    await world.books.sql(
        "INSERT INTO usage_provisional (request_id, admitted_at, gateway_id) "
        "VALUES (:id, uuid_v7_time(:id), 'gw-3')",
        id=record.request_id,
    )
    life = await world.life(record.request_id)
    assert (life["accounted_by"], life["final"]) == ("reaper", False)


async def test_money_is_for_those_who_may_see_it(world: World) -> None:
    """Viewers and operators see none: neither the request's nor what a provider charged."""
    record = await world.books.use(AT)
    for role in (Role.VIEWER, Role.OPERATOR):
        life = await world.life(record.request_id, role)
        assert life["money"] is None
        (listed,) = (await world.page(role=role))["items"]
        assert (listed["cost"], listed["currency"]) == (None, None)
    (listed,) = (await world.page(role=Role.FINANCE))["items"]
    assert (listed["cost"], listed["currency"]) == ("0.0000884", "USD")


async def test_a_tenant_sees_its_own_and_nothing_of_what_serves_it(world: World) -> None:
    """Another's request is not there, in the same words as one that does not exist."""
    own = await world.books.use(AT)
    other = await world.books.use(AT, tenant_id="globex")
    verbs = world.api.administration
    await verbs.create_user(ME, "a@acme.test", Role.TENANT_ADMIN, PASSWORD, tenant_id="acme")
    token = await verbs.issue_token(ME, "a@acme.test", "test")
    headers = {"authorization": f"Bearer {token}"}

    async def ask(path: str) -> Any:
        return await world.api.call("GET", path, headers=headers)

    (listed,) = (await ask("/requests")).json()["items"]
    assert (listed["id"], listed["worker_id"]) == (str(own.request_id), None)
    life = (await ask(f"/requests/{own.request_id}")).json()
    assert msgspec.convert(life, RequestAnswer)
    hidden = ("provider", "worker_id", "gateway_id", "journal", "attempts")
    assert [life[name] for name in hidden] == [None] * len(hidden)
    assert life["money"]["cost"] == "0.0000884"
    answers = [
        await ask(path)
        for path in (
            f"/requests/{other.request_id}",
            f"/requests/{an_admission().request_id}",
            "/requests?tenant_id=globex",
            "/requests?tenant_id=nobody",
        )
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.json()["detail"] for answer in answers}) == 1


async def test_a_draft_takes_no_request(world: World) -> None:
    """It is nothing to its tenant, and so in no request of theirs: what takes a request is the
    issue of an invoice. Also to staff a request is on none before."""
    record = await world.books.use(AT)
    await world.books.draft("2026-01")
    before = (await world.life(record.request_id))["money"]
    assert (before["invoice"], before["cost"]) == (None, "0.0000884")
    await world.books.close("2026-01")
    after = (await world.life(record.request_id))["money"]["invoice"]
    assert (after["number"], len(after["lines"])) == ("INV-2026-000001", 3)


async def test_b13_lists_go_on_by_their_last_request(world: World) -> None:
    """B13: pages by keyset: what is recorded meanwhile shifts none, and none is there twice."""
    instants = [f"2026-01-{day:02}T0{hour}:00:00+00:00" for day in (3, 4, 5) for hour in range(5)]
    records = await world.books.use_all(instants)
    newest_first = [str(record.request_id) for record in reversed(records)]
    page = await world.page("limit=4")
    assert [each["id"] for each in page["items"]] == newest_first[:4]
    await world.books.use("2026-01-06T00:00:00+00:00")
    later = await world.page(f"limit=4&cursor={page['next_cursor']}")
    assert [each["id"] for each in later["items"]] == newest_first[4:8]
    whole = (await world.page("to=2026-01-06T00:00:00Z"))["items"]
    assert [each["id"] for each in whole] == newest_first


async def test_each_filter(world: World) -> None:
    """By itself and together."""
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"tenant_id": "globex"},
        {"api_key_id": "key-2"},
        {"request_class": "batch"},
        {"outcome": "timed_out"},
        {"model": "other"},
    )
    at = [f"2026-01-{day:02}T00:00:00+00:00" for day in range(1, 7)]
    ids = [
        str((await world.books.use(day, **each)).request_id)
        for day, each in zip(at, changes, strict=True)
    ]
    for query, expected in (
        ("tenant_id=globex", [1]),
        ("key_id=key-2", [2]),
        ("class=batch", [3]),
        ("outcome=timed_out", [4]),
        ("model=other", [5]),
        (f"model={MODEL}&class=interactive&tenant_id=acme", [4, 2, 0]),
        ("from=2026-01-02T00:00:00Z&to=2026-01-04T00:00:00Z", [2, 1]),
        ("tenant_id=globex&class=batch", []),
    ):
        found = [each["id"] for each in (await world.page(query))["items"]]
        assert found == [ids[at] for at in expected], query


async def test_b12_a_rare_filter_looks_at_so_many_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B12: a page looks at a bounded number of records and says how far it has come; the next ones
    find what it did not, each once."""
    monkeypatch.setattr(request_list, "LOOKED_AT_MAX", 4)
    instants = [f"2026-01-03T{hour:02}:00:00+00:00" for hour in range(20)]
    records = await world.books.use_all(instants[:10])
    rare = await world.books.use_all(instants[10:12], outcome="timed_out")
    await world.books.use_all(instants[12:])
    pages = await world.pages("outcome=timed_out")
    assert [name for page in pages for name in page] == [
        str(each.request_id) for each in reversed(rare)
    ]
    assert len(pages) == 6
    first = await world.page("outcome=timed_out")
    assert (first["items"], first["looked_through"]) == ([], "2026-01-03T16:00:00.000Z")
    assert len(await world.pages("key_id=nobodys")) == 6
    common = await world.pages("outcome=completed&limit=3")
    assert len({name for page in common for name in page}) == 18
    assert sum(map(len, common)) == 18
    assert common[-1][-1:] in ([], [str(records[0].request_id)])


async def test_a_keys_requests_are_looked_for_among_its_tenants(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a key of a small tenant is found at once behind everybody else's."""
    monkeypatch.setattr(request_list, "LOOKED_AT_MAX", 4)
    key, _ = await world.api.administration.create_key(ME, "globex", "one", "interactive")
    rare = await world.books.use(AT, tenant_id="globex", api_key_id=key.id)
    await world.books.use_all([f"2026-01-11T{hour:02}:00:00+00:00" for hour in range(9)])
    pages = await world.pages(f"key_id={key.id}")
    assert pages == [[str(rare.request_id)]]


async def test_slips_of_the_pen_are_refused(world: World) -> None:
    """Each names its parameter."""
    for query, param in (
        ("cursor=x", "cursor"), ("limit=0", "limit"), ("limit=1001", "limit"),
        ("tenant=a", "tenant"), ("class=urgent", "class"), ("from=now", "from"),
    ):  # fmt: skip
        answer = await world.api.call("GET", f"/requests?{query}")
        assert (answer.status_code, answer.json()["param"]) == (422, param), query


async def test_b12_what_serves_requests_is_not_asked(world: World, free_port: int) -> None:
    """B12: where Redis is away, what has ended is still told; what has not is not known, which is
    503 and no 404."""
    record = await world.books.use(AT)
    away = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=100)
    gateways = Gateways(away, Births(away, never_lost))
    stories = RequestStories(world.books.engine, gateways, Copies(away))
    app = Litestar(
        [admin_router(world.api.administration, more=request_handlers(stories))],
        exception_handlers={Exception: answer_exception},
    )
    async with client_of(app) as client:
        api = AdminApi(client, world.api.administration, {})
        assert (await api.call("GET", f"/requests/{record.request_id}")).status_code == 200
        assert (await api.call("GET", "/requests")).status_code == 200
        answer = await api.call("GET", f"/requests/{an_admission().request_id}")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    await away.aclose()
