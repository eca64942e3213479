"""Usage in sums: a tenant's own, and everybody's for those who may see it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from admin_api import AdminApi, client_of
from litestar import Litestar, Request
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from tenant_examples import a_key, a_tenant
from told_completeness import Told
from usage_examples import a_record, an_admission

from billing.postgres.usage_records import (
    GroupBy,
    JournaledRecord,
    UsageFilter,
    UsageSum,
    insert_batch,
)
from gateway.adapters import usage_reports
from gateway.adapters.completeness import Found
from gateway.adapters.postgres import async_engine
from gateway.adapters.usage_reports import WAITING_MAX, UsageReports
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.domain.completeness import Completeness
from gateway.errors import InvalidApiKey, StoreUnavailable
from gateway.http.billing import billing_router
from gateway.http.failures import answer_exception
from gateway.http.usage import own_usage_handler, usage_handler
from gateway.serving.authenticate import Caller

NOW = datetime.now(UTC).replace(microsecond=0)


def caller_of(request: Request[Any, Any, Any]) -> Caller:
    """The tenant whose name is the key."""
    name = request.headers.get("authorization", "")
    if not name:
        raise InvalidApiKey("no key")
    return Caller(tenant=a_tenant(id=name), key=a_key())


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[AsyncEngine]:
    """A pool on a database of this test's own, with three days of two tenants' usage."""
    engine = async_engine(database_url, pool_size=4)
    records = []
    for days, tenant, model, final in (
        (0, "acme", "m", True),
        (0, "acme", "m", False),
        (1, "acme", "n", True),
        (2, "globex", "m", True),
        (40, "acme", "m", True),
    ):
        at_ms = int((NOW - timedelta(days=days)).timestamp() * 1000)
        admission = an_admission(at_ms=at_ms, tenant_id=tenant, model=model)
        records.append(a_record(admission, final=final))
    async with engine.begin() as db:
        await insert_batch(db, [JournaledRecord(each, "g") for each in records])
    yield engine
    await engine.dispose()


@pytest.fixture
def told(postgres: AsyncEngine) -> Told:
    """What is known of completeness."""
    return Told(postgres, NOW)


@pytest.fixture
async def api(postgres: AsyncEngine, told: Told) -> AsyncIterator[AdminApi]:
    """Both endpoints."""
    reports = UsageReports(postgres, told)
    administration = Administration(postgres)
    app = Litestar(
        [
            own_usage_handler(caller_of, reports, None),
            billing_router(administration, more=[usage_handler(reports)]),
        ],
        exception_handlers={Exception: answer_exception},
    )
    async with client_of(app) as client:
        yield AdminApi(client, administration, {})


async def own(api: AdminApi, tenant: str, query: str = "") -> httpx.Response:
    """As a tenant asks."""
    headers = {"authorization": tenant} if tenant else {}
    return await api.client.get(f"/v1/usage{query}", headers=headers)


async def all_of_it(api: AdminApi, query: str = "", role: Role = Role.FINANCE) -> httpx.Response:
    """As finance asks."""
    return await api.call("GET", f"/usage{query}", role=role, below="/billing/v1")


def requests_of(sums: list[dict[str, Any]]) -> dict[str, int]:
    """By group."""
    return {each["group"]: each["requests"] for each in sums}


async def test_a_tenant_sees_its_own(api: AdminApi) -> None:
    """Of the last 30 days, by day, with what is provisional; nothing of another tenant."""
    answer = (await own(api, "acme")).json()
    today, yesterday = ((NOW - timedelta(days=days)).date().isoformat() for days in (0, 1))
    assert requests_of(answer["data"]) == {yesterday: 1, today: 2}
    assert answer["object"] == "usage"
    assert (answer["group_by"], answer["time_zone"], answer["until"]) == ("day", "UTC", None)
    assert (answer["complete"], answer["provisional_requests"]) == (True, 1)
    assert answer["complete_through"] == (NOW - timedelta(milliseconds=400)).isoformat(
        timespec="milliseconds"
    ).replace("+00:00", "Z")
    assert requests_of((await own(api, "globex", "?group_by=model")).json()["data"]) == {"m": 1}
    assert (await own(api, "nobody")).json()["data"] == []


async def test_a_tenant_chooses_no_tenant(api: AdminApi) -> None:
    """Neither by name nor by group: 400 in OpenAI's shape, with the parameter."""
    for query, param in (("?tenant_id=globex", "tenant_id"), ("?group_by=tenant", "group_by")):
        answer = await own(api, "acme", query)
        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, param)
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_value")
    assert (await own(api, "")).status_code == 401


async def test_finance_sees_all_or_one(api: AdminApi) -> None:
    """By tenant unless it asks otherwise; a range is half open."""
    answer = (await all_of_it(api)).json()
    assert requests_of(answer["items"]) == {"acme": 3, "globex": 1}
    assert answer["next_cursor"] is None
    assert (answer["complete"], answer["provisional_requests"]) == (True, 1)
    answer = (await all_of_it(api, "?tenant_id=acme&group_by=model", Role.ADMIN)).json()
    assert requests_of(answer["items"]) == {"m": 2, "n": 1}
    day = timedelta(days=1)
    since, until = (at.isoformat().replace("+00:00", "Z") for at in (NOW - day, NOW))
    answer = (await all_of_it(api, f"?since={since}&until={until}")).json()
    assert requests_of(answer["items"]) == {"acme": 1}


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
async def test_who_sees_no_money_sees_what_was_used(api: AdminApi, role: Role) -> None:
    """There is none in it."""
    answer = (await all_of_it(api, role=role)).json()
    assert requests_of(answer["items"]) == {"acme": 3, "globex": 1}


async def test_what_is_wrong_is_a_problem(api: AdminApi) -> None:
    """422, with the parameter; also where the database could not even compare it."""
    wrong = (("?since=yesterday", "since"), ("?tenant_id=%00", "tenant_id"))
    for query, param in (*wrong, ("?tenant_id=" + "a" * 9_000, "tenant_id")):
        answer = await all_of_it(api, query)
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.json()["code"], answer.json()["param"]) == ("unprocessable", param)


async def test_it_says_where_something_is_missing(api: AdminApi, told: Told) -> None:
    """A gateway is late; or nobody knows: the numbers come all the same."""
    late = Completeness(told.now_ms - 60_000, told.now_ms, ("g",))
    told.found = Found(late, 0)
    for answer in ((await own(api, "acme")).json(), (await all_of_it(api)).json()):
        assert answer["complete"] is False
        assert answer["complete_through"] is not None
    told.found = Found(Completeness(None, None), 0)
    answer = (await all_of_it(api)).json()
    assert (answer["complete"], answer["complete_through"]) == (False, None)
    assert requests_of(answer["items"]) == {"acme": 3, "globex": 1}
    assert "g" not in answer


async def test_one_tenant_locks_no_other_out(
    api: AdminApi, postgres: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty questions of one at once, whose rows nobody can read at the moment: most are refused as
    OpenAI does; another tenant and finance are answered meanwhile, and the rest once that is over.
    What finance asks of a tenant takes none of its turns."""
    reading = UsageReports._sums
    held, free = asyncio.Event(), asyncio.Event()

    async def slowly(
        reports: UsageReports,
        db: AsyncConnection,
        chosen: UsageFilter,
        group_by: GroupBy,
        time_zone: str,
    ) -> list[UsageSum]:
        if chosen.tenant_id == "acme" and group_by is GroupBy.DAY:
            held.set()
            await free.wait()
        return await reading(reports, db, chosen, group_by, time_zone)

    monkeypatch.setattr(UsageReports, "_sums", slowly)
    asked = [asyncio.create_task(own(api, "acme")) for _ in range(40)]
    async with asyncio.timeout(10):
        await held.wait()
        for answer in (
            await own(api, "globex"),
            await all_of_it(api),
            await all_of_it(api, "?tenant_id=acme&group_by=model"),
        ):
            assert answer.status_code == 200
        refused = [answer async for answer in _first(asked, 40 - 1 - WAITING_MAX)]
        assert {answer.status_code for answer in refused} == {429}
        assert refused[0].json()["error"] | {"message": ""} == {
            "message": "", "type": "requests", "code": "rate_limit_exceeded", "param": None,
        }  # fmt: skip
        assert refused[0].headers["retry-after"] == "1"
        free.set()
        answers = await asyncio.gather(*asked)
    assert sorted(answer.status_code for answer in answers)[: 1 + WAITING_MAX] == [200] * 5


async def _first(
    tasks: list[asyncio.Task[httpx.Response]], count: int
) -> AsyncIterator[httpx.Response]:
    """Those that end first."""
    ends = asyncio.as_completed(tasks)
    for _ in range(count):
        yield await next(ends)


async def test_a_look_of_many_statements_takes_no_longer_than_one_may(
    postgres: AsyncEngine, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, and its turn is the next one's: no statement of it takes long, all together do."""
    monkeypatch.setattr(usage_reports, "TIMEOUT_MS", 200)
    reports = UsageReports(postgres, told)

    async def for_ever(db: AsyncConnection) -> None:
        while True:
            await db.execute(text("SELECT 1"))

    async def once(db: AsyncConnection) -> object:
        return await db.scalar(text("SELECT 1"))

    with pytest.raises(StoreUnavailable):
        await reports.read(for_ever, asked_by="acme")
    assert (await reports.read(once, asked_by="acme"))[0] == 1


async def test_postgres_is_away(told: Told, free_port: int) -> None:
    """503, not an empty sum."""
    away = async_engine(f"postgresql://nobody@127.0.0.1:{free_port}/none", pool_size=1)
    handler = own_usage_handler(caller_of, UsageReports(away, told), None)
    app = Litestar([handler], exception_handlers={Exception: answer_exception})
    async with client_of(app) as client:
        answer = await client.get("/v1/usage", headers={"authorization": "acme"})
    assert answer.status_code == 503
    assert answer.json()["error"]["param"] is None
    await away.dispose()
