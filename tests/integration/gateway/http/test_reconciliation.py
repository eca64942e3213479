"""`GET /billing/v1/reconciliation`."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from admin_api import AdminApi
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.reconciliation.findings import Check, Finding, Verdict, skipped, terms
from billing.postgres.reconcile_runs import FINDINGS_KEPT, Kind, keep_run
from gateway.domain.account import Role

LAST_WEEK = datetime.now(UTC) - timedelta(days=7)
REQUEST = UUID(int=7)
PATH = "/reconciliation"


def a_finding(number: int) -> Finding:
    return Finding(Check.ATTEMPTS, f"acme {number}", REQUEST, number, "tokens", "made up")


async def keep(engine: AsyncEngine, *verdicts: Verdict, at: datetime = LAST_WEEK) -> int:
    async with engine.begin() as db:
        return await keep_run(
            db, Kind.QUARTER, at, at + timedelta(minutes=15), started_at=at, verdicts=verdicts
        )


async def shown(api: AdminApi, query: str = "") -> Any:
    answer = await api.call("GET", PATH + query, role=Role.FINANCE, below="/billing/v1")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_runs_are_listed_with_what_they_found(api: AdminApi, engine: AsyncEngine) -> None:
    """The latest first, by page; every finding is counted and the first are kept."""
    assert await shown(api) == {"items": [], "next_cursor": None}
    many = tuple(a_finding(number) for number in range(1, FINDINGS_KEPT + 6))
    old = datetime.now(UTC)
    first = await keep(engine, Verdict(Check.ATTEMPTS, terms(records=9), many), at=old)
    second = await keep(engine, skipped(Check.INVOICES, "no invoices"), at=old)
    page = await shown(api, "?limit=1")
    assert [item["id"] for item in page["items"]] == [second]
    assert page["items"][0]["checks"][0]["not_applicable"] == "no invoices"
    rest = await shown(api, f"?limit=1&cursor={page['next_cursor']}")
    (run,) = rest["items"]
    assert run["started_at"] <= run["ended_at"]
    assert rest["next_cursor"] is None
    assert (run["id"], run["kind"], run["findings"]) == (first, "quarter", FINDINGS_KEPT + 5)
    (check,) = run["checks"]
    assert (check["check"], check["ok"], check["terms"]) == ("REC-6", False, {"records": 9})
    assert check["findings_count"] == FINDINGS_KEPT + 5
    assert len(check["findings"]) == FINDINGS_KEPT
    assert check["findings"][0] == {
        "subject": "acme 1",
        "request_id": str(REQUEST),
        "size": 1,
        "unit": "tokens",
        "what": "made up",
    }


async def test_a_run_takes_the_place_of_the_one_before(api: AdminApi, engine: AsyncEngine) -> None:
    """Over the same period; one that finds nothing leaves the last that did."""
    now = datetime.now(UTC)
    for count in (1, 0, 2, 0, 0):
        many = tuple(a_finding(number) for number in range(1, count + 1))
        await keep(engine, Verdict(Check.ATTEMPTS, (), many), at=now)
    assert [item["findings"] for item in (await shown(api))["items"]] == [0, 2]


async def test_quarters_without_findings_are_forgotten(api: AdminApi, engine: AsyncEngine) -> None:
    """After two days; those with any stay."""
    found = await keep(engine, Verdict(Check.ATTEMPTS, (), (a_finding(1),)))
    await keep(engine, Verdict(Check.ATTEMPTS))
    new = await keep(engine, Verdict(Check.ATTEMPTS), at=datetime.now(UTC))
    assert [item["id"] for item in (await shown(api))["items"]] == [new, found]


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
async def test_it_is_finances(api: AdminApi, role: Role) -> None:
    answer = await api.call("GET", PATH, role=role, below="/billing/v1")
    assert answer.status_code == 403


@pytest.mark.parametrize("query", ["?limit=0", "?limit=1001", "?cursor=x"])
async def test_a_bad_page_is_a_clear_error(api: AdminApi, query: str) -> None:
    answer = await api.call("GET", PATH + query, below="/billing/v1")
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("application/problem+json")
