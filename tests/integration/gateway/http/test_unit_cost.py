"""The unit cost on the finance API."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from admin_api import AdminApi, client_of
from litestar import Litestar
from sqlalchemy.ext.asyncio import AsyncEngine
from unit_cost_rows import UNTIL, rows, store

from gateway.adapters.completeness import Found, UsageCompleteness
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import Gateways
from gateway.adapters.redis import connect_redis
from gateway.adapters.unit_costs import UnitCosts
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.domain.completeness import Completeness
from gateway.http.billing import billing_router
from gateway.http.failures import answer_exception
from gateway.http.openapi_unit_cost import UnitCostAnswer
from gateway.http.unit_cost import unit_cost_handlers

ASKED = {
    "since": "2026-11-28T00:00:00Z",
    "until": "2026-11-30T00:00:00Z",
    "price_per_gpu_hour": "2.35",
    "gpus": "4",
}


class _Told(UsageCompleteness):
    """All that had ended an hour after the time that is asked about is in."""

    def __init__(self, postgres: AsyncEngine) -> None:
        redis = connect_redis("redis://127.0.0.1:1", timeout_ms=100)
        super().__init__(Gateways(redis, _Never()), postgres)

    async def look(self) -> Found:
        """That."""
        through = int(UNTIL.timestamp() * 1000) + 3_600_000
        return Found(Completeness(through, int(datetime.now(UTC).timestamp() * 1000)), 0)


class _Never:
    async def born_ms(self, tenant_id: str) -> int:
        """Nothing was lost."""
        return 0


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[AdminApi]:
    """The finance API over two tenants' usage."""
    postgres = async_engine(database_url, pool_size=4)
    await store(postgres, rows())
    administration = Administration(postgres)
    costs = UnitCosts(postgres, _Told(postgres))
    app = Litestar(
        [billing_router(administration, more=unit_cost_handlers(costs))],
        exception_handlers={Exception: answer_exception},
    )
    async with client_of(app) as client:
        yield AdminApi(client, administration, {})
    await postgres.dispose()


async def get(api: AdminApi, role: Role = Role.FINANCE, **changes: Any) -> Any:
    """The answer for an address; None leaves a parameter out."""
    asked = {name: value for name, value in (ASKED | changes).items() if value is not None}
    query = urlencode(asked, doseq=True)
    return await api.call("GET", f"/unit-cost?{query}", role=role, below="/billing/v1")


async def post(api: AdminApi, role: Role = Role.FINANCE, **changes: Any) -> Any:
    """The answer for a body."""
    return await api.call("POST", "/unit-cost", ASKED | changes, role=role, below="/billing/v1")


@pytest.mark.parametrize("role", [Role.ADMIN, Role.FINANCE])
async def test_both_ways_answer_the_same(api: AdminApi, role: Role) -> None:
    """As documented, summing to the bill, and saying that nothing is missing."""
    same = {"hosted": ["list:groq", "list:novita"], "by": "model", "operations_cost": "1"}
    by_address = await get(api, role, coefficient=["batch=65", "scale=1.05"], **same)
    by_body = await post(api, role, coefficients={"batch": "65", "scale": "1.05"}, **same)
    assert (by_address.status_code, by_body.status_code) == (200, 200)
    assert by_address.json() == by_body.json()
    answer = msgspec.json.decode(by_address.content, type=UnitCostAnswer)
    charged = sum(Decimal(item.cost) for item in answer.items)
    assert charged + Decimal(answer.bill.idle) == Decimal(answer.bill.total) == Decimal("452.20")
    assert [item.group for item in answer.items] == ["m", "n"]
    assert answer.step_model.coefficients["batch"] == "65"
    assert [each.name for each in answer.hosted] == ["list:groq", "list:novita"]
    assert (answer.complete, answer.provisional_requests) == (True, 1)


async def test_a_body_gives_hours_by_day(api: AdminApi) -> None:
    """Each day once; what is wrong with one is told with its place."""
    days = [("2026-11-28", "96"), ("2026-11-29", "0.5")]
    hours = [{"date": day, "gpu_hours": gpu_hours} for day, gpu_hours in days]
    answer = await post(api, gpus=None, hours=hours)
    assert answer.json()["bill"]["gpu_hours"] == "96.500000"
    answer = await post(api, gpus=None, hours=hours[:1] * 2)
    assert (answer.status_code, answer.json()["param"]) == (422, "hours")
    assert "item 1: 2026-11-28 is there twice" in answer.text


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
async def test_who_may_not(api: AdminApi, role: Role) -> None:
    """What the pool costs is finance's: 403, a problem."""
    for answer in (await get(api, role), await post(api, role)):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"since": None}, "since"),
        ({"price_per_gpu_hour": None}, "price_per_gpu_hour"),
        ({"since": "yesterday"}, "since"),
        ({"since": "2026-11-28T00:00:00"}, "since"),
        ({"until": "2099-01-01T00:00:00Z"}, "until"),
        ({"gpus": ["4", "5"]}, "gpus"),
        ({"gpus": "0"}, "gpus"),
        ({"colour": "red"}, "colour"),
        ({"by": "colour"}, "by"),
        ({"model": "\0"}, "model"),
        ({"from_samples": "yes"}, "from_samples"),
        ({"from_samples": "true"}, "from_samples"),
        ({"from_samples": "true", "gpus": None}, "from_samples"),
        ({"coefficient": "batch"}, "coefficient"),
        ({"hosted": "nobody"}, "hosted"),
        ({"currency": "EUR", "hosted": "list"}, "hosted"),
    ],
)
async def test_what_is_wrong_is_a_problem(
    api: AdminApi, changes: dict[str, Any], param: str
) -> None:
    """422, with the parameter."""
    answer = await get(api, **changes)
    assert (answer.status_code, answer.json()["param"]) == (422, param), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("changes", "param"),
    [({"gpus": 4}, "gpus"), ({"colour": 1}, "colour"), ({"since": "2026-11-28"}, "since")],
)
async def test_a_body_that_is_wrong_is_a_problem(
    api: AdminApi, changes: dict[str, Any], param: str
) -> None:
    """Numbers are no texts, unknown fields are none, a time has an offset."""
    answer = await post(api, **changes)
    assert (answer.status_code, answer.json()["param"]) == (422, param)
