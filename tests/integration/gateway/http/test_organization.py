"""OpenAI's usage and costs endpoints, read with OpenAI's own SDK, over a real Postgres."""

import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import httpx2
import openai
import pytest
from invoice_world import MODEL, InvoiceWorld
from litestar import Litestar
from tenant_examples import a_key, a_tenant
from told_completeness import Told

from billing.domain.money import PICO_PER_UNIT
from gateway.adapters.completeness import Found
from gateway.adapters.postgres import async_engine
from gateway.adapters.usage_reports import UsageReports
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.domain.completeness import NOT_KNOWN
from gateway.domain.permissions import Permission
from gateway.errors import InvalidApiKey
from gateway.http.failures import answer_exception
from gateway.http.organization import organization_handlers
from gateway.http.organization_readers import Reader, reader_of
from gateway.http.usage import own_usage_handler
from gateway.http.v1 import one_each
from gateway.serving.authenticate import Caller

NOW = datetime.now(UTC).replace(microsecond=0)
START = NOW - timedelta(days=5)
START_S = int(START.timestamp())
PASSWORD = "correct horse battery"


class Organization:
    """The endpoints in this process, and who asks."""

    def __init__(self, world: InvoiceWorld) -> None:
        self.world = world
        self.tokens: dict[Role, str] = {}
        self.told = Told(world.engine, NOW)
        self.administration = Administration(world.engine)
        reports = UsageReports(world.engine, self.told)

        def caller_of(request: Any) -> Caller:
            """The tenant whose name is the key."""
            name = one_each(request.scope).get(b"authorization", b"").decode()[len("Bearer ") :]
            if not name.startswith("sk-"):
                raise InvalidApiKey("the API key is wrong or was revoked")
            return Caller(tenant=a_tenant(id=name[3:]), key=a_key())

        async def who(request: Any, permission: Permission) -> Reader:
            headers, users = one_each(request.scope), self.administration
            return await reader_of(headers, lambda: caller_of(request).tenant.id, users, permission)

        self.app = Litestar(
            [
                *organization_handlers(who, reports, None),
                own_usage_handler(caller_of, reports, None),
            ],
            exception_handlers={Exception: answer_exception},
        )

    def client(self, secret: str) -> openai.AsyncOpenAI:
        """OpenAI's SDK as it is, with an admin key."""
        http = httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app))  # type: ignore[arg-type]
        return openai.AsyncOpenAI(
            api_key="unused", admin_api_key=secret, base_url="http://weir.test/v1",
            http_client=http, max_retries=0,
        )  # fmt: skip

    async def token(self, role: Role) -> str:
        """A user's token."""
        email = f"{role}@weir.local"
        if role not in self.tokens:
            await self.administration.create_user("cli:test", email, role, PASSWORD)
            self.tokens[role] = await self.administration.issue_token("cli:test", email, "test")
        return self.tokens[role]

    async def get(self, secret: str, path: str) -> httpx2.Response:
        """Without the SDK."""
        http = httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app))  # type: ignore[arg-type]
        headers = {"authorization": f"Bearer {secret}"}
        return await http.get(f"http://weir.test/v1{path}", headers=headers)


@pytest.fixture
async def organization(database_url: str) -> AsyncIterator[Organization]:
    """Two tenants with random usage of five days in two currencies, some rolled up, some not."""
    world = InvoiceWorld(async_engine(database_url))
    await world.open()
    await world.price(currency="KWD", input_pico=1_234_567, output_pico=7, request_pico=3)
    chance = random.Random(8)  # noqa: S311 - repeatable, not secret
    for index in range(60):
        at = START + timedelta(seconds=chance.randint(0, 5 * 86_400 - 60))
        await world.use(
            at.isoformat(),
            currency=chance.choice(("USD", "KWD")),
            tenant_id=chance.choice(("acme", "globex")),
            api_key_id=chance.choice(("key_1", "key_2")),
            model=chance.choice((MODEL, MODEL, "newest")),
            request_class=chance.choice(("interactive", "batch")),
            prompt_tokens=chance.randint(50, 5_000),
            cached_prompt_tokens=chance.randint(0, 50),
            output_tokens=chance.randint(20, 900),
            reasoning_tokens=chance.randint(0, 20),
            billable=chance.random() < 0.8,
        )
        if index == 40:
            await world.roll_up()
    yield Organization(world)
    await world.engine.dispose()


async def all_buckets(client: openai.AsyncOpenAI, kind: str, **asked: Any) -> list[Any]:
    """Every page, as the SDK reads them."""
    usage = client.admin.organization.usage
    read = usage.completions if kind == "usage" else usage.costs
    page = await read(start_time=START_S, **asked)
    buckets = list(page.data)
    while page.has_more:
        assert page.next_page is not None
        page = await read(start_time=START_S, page=page.next_page, **asked)
        buckets += page.data
    return buckets


@pytest.mark.parametrize("width", ["1m", "1h", "1d"])
async def test_tokens_add_up_to_v1_usage(organization: Organization, width: str) -> None:
    """B17, INV-12: buckets without a gap, empty ones too, whose sums are those of /v1/usage for the
    tenant, whatever the width, the grouping and the length of pages."""
    client = organization.client("sk-acme")
    answer = await organization.get("sk-acme", f"/usage?since={START:%Y-%m-%dT%H:%M:%SZ}")
    own = Counter[str]()
    for day in answer.json()["data"]:
        own.update({name: count for name, count in day.items() if name != "group"})
    assert own["requests"] > 10
    limit = {"1m": 1440, "1h": 50, "1d": 2}[width]
    for group_by in ([], ["project_id", "model", "api_key_id", "batch"]):
        buckets = await all_buckets(
            client, "usage", bucket_width=width, group_by=group_by, limit=limit,
            end_time=int(NOW.timestamp()),
        )  # fmt: skip
        assert buckets[0].start_time == START_S
        assert buckets[-1].end_time == int(NOW.timestamp())
        for before, after in pairwise(buckets):
            assert before.end_time == after.start_time
        results = [result for bucket in buckets for result in bucket.results]
        assert {result.object for result in results} == {"organization.usage.completions.result"}
        assert sum(result.num_model_requests for result in results) == own["requests"]
        assert sum(result.input_tokens for result in results) == own["prompt_tokens"]
        assert sum(result.input_cached_tokens for result in results) == own["cached_prompt_tokens"]
        assert sum(result.output_tokens for result in results) == own["output_tokens"]
        if group_by:
            assert {result.project_id for result in results} == {"acme"}
            assert {result.model for result in results} == {MODEL, "newest"}
            assert {result.batch for result in results} == {True, False}
        else:
            assert all(len(bucket.results) <= 1 for bucket in buckets)
            assert width == "1d" or any(not bucket.results for bucket in buckets)


async def test_costs_add_up_to_the_rows(organization: Organization) -> None:
    """To the pico, read as the exact numbers that they are; by line item and whole, per currency;
    what has no price is said and is no 0 (B20, B26)."""
    rows = await organization.world.query(
        "SELECT tenant_id, currency, coalesce(sum(cost_pico), 0),"
        " count(*) FILTER (WHERE billable AND cost_pico IS NULL) FROM usage_record GROUP BY 1, 2"
    )
    assert all(count for *_, count in rows)
    secret = await organization.token(Role.FINANCE)
    for groups in ("", "&group_by[]=project_id", "&group_by=line_item&group_by=project_id"):
        answer = await organization.get(
            secret, f"/organization/costs?start_time={START_S}&limit=180{groups}"
        )
        page = json.loads(answer.content, parse_float=Decimal, parse_int=Decimal)
        picos, unpriced = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for bucket in page["data"]:
            for result in bucket["results"]:
                key = (result["project_id"] or "all", result["amount"]["currency"])
                unpriced[key] += result["unpriced_requests"]
                value = result["amount"]["value"]
                if value is None:
                    assert result["unpriced_requests"] > 0
                    continue
                pico = Decimal(value) * PICO_PER_UNIT
                assert pico == int(pico)
                picos[key] += int(pico)
        wanted, unpriced_wanted = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for tenant, currency, pico, count in rows:
            key = (tenant if groups else "all", currency.lower())
            wanted[key] += int(pico)
            unpriced_wanted[key] += count
        assert (picos, unpriced) == (wanted, unpriced_wanted), groups
        assert page["unpriced_requests"] == sum(unpriced_wanted.values())


async def test_line_items_are_kinds_of_tokens(organization: Organization) -> None:
    """With their quantities; some can be asked for by name, and what each price makes of them is
    what they cost."""
    client = organization.client("sk-acme")
    buckets = await all_buckets(client, "costs", group_by=["line_item"], limit=180)
    items: dict[tuple[str, str], list[Decimal]] = {}
    for bucket in buckets:
        for result in bucket.results:
            assert result.object == "organization.costs.result"
            if result.amount.value is not None:
                key = (result.line_item, result.amount.currency)
                have = items.setdefault(key, [Decimal(0), Decimal(0)])
                have[0] += Decimal(str(result.quantity))
                have[1] += Decimal(str(result.amount.value))
    assert {name for name, _ in items} == {
        f"{MODEL}, {kind}"
        for kind in ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens",
                     "requests")
    }  # fmt: skip
    quantity, amount = items[f"{MODEL}, input_tokens", "usd"]
    assert amount.quantize(Decimal("1e-9")) == (quantity / 1_000_000).quantize(Decimal("1e-9"))
    wanted = [f"{MODEL}, requests"]
    only = await all_buckets(client, "costs", line_items=wanted, limit=180)
    found = [result for bucket in only for result in bucket.results]
    assert {result.amount.currency for result in found} == {"kwd"}
    assert {result.line_item for result in found} == {None}
    assert sum(Decimal(str(result.amount.value)) for result in found) == pytest.approx(
        items[wanted[0], "kwd"][1]
    )


async def test_nobody_sees_another_tenant(organization: Organization) -> None:
    """INV-12: a key sees its own tenant, and whether there is another is not told; roles without
    money see no costs; all who run Weir see all usage, or that of those that they name."""
    for other in ("globex", "nobody"):
        with pytest.raises(openai.PermissionDeniedError) as refused:
            await organization.client("sk-acme").admin.organization.usage.completions(
                start_time=START_S, project_ids=["acme", other]
            )
        assert (refused.value.code, refused.value.param) == ("project_not_allowed", "project_ids")
        assert other not in str(refused.value)
    for secret in ("wrong", "wu-" + "x" * 43, ""):
        with pytest.raises(openai.AuthenticationError) as unknown:
            await organization.client(secret or " ").admin.organization.usage.costs(
                start_time=START_S
            )
        assert unknown.value.code == "invalid_api_key"
    for role in (Role.OPERATOR, Role.VIEWER):
        viewer = organization.client(await organization.token(role))
        with pytest.raises(openai.PermissionDeniedError) as refused:
            await viewer.admin.organization.usage.costs(start_time=START_S)
        assert refused.value.code == "role_not_allowed"
    counts = {tenant: len(await records_of(organization, tenant)) for tenant in ("acme", "globex")}
    for role in (Role.ADMIN, Role.FINANCE, Role.VIEWER):
        client = organization.client(await organization.token(role))
        for named, wanted in ((None, sum(counts.values())), (["globex"], counts["globex"])):
            asked = {} if named is None else {"project_ids": named}
            buckets = await all_buckets(client, "usage", **asked)
            found = [result for bucket in buckets for result in bucket.results]
            assert sum(result.num_model_requests for result in found) == wanted
    for own_named in ({}, {"project_ids": ["acme"]}):
        own = await all_buckets(
            organization.client("sk-acme"), "usage", group_by=["project_id"], **own_named
        )
        assert {each.project_id for bucket in own for each in bucket.results} == {"acme"}


async def test_what_has_no_price_is_no_0(organization: Organization) -> None:
    """B20, B26: an amount that nobody knows is null, with how many requests that is of; beside what
    is known they are counted apart."""
    at = (NOW - timedelta(hours=1)).isoformat()
    await organization.world.use(at, tenant_id="lonely", model="newest")
    client = organization.client("sk-lonely")
    page: Any
    no_groups: Any = []
    by_item: Any = ["line_item"]
    for groups in (no_groups, by_item):
        page = await client.admin.organization.usage.costs(start_time=START_S, group_by=groups)
        (result,) = [result for bucket in page.data for result in bucket.results]
        assert (result.amount.value, result.amount.currency) == (None, "usd")
        assert result.model_extra["unpriced_requests"] == page.model_extra["unpriced_requests"] == 1
        assert result.line_item == ("newest, unpriced" if groups else None)
    await organization.world.use(
        at, tenant_id="lonely", prompt_tokens=1_000_000, cached_prompt_tokens=0, output_tokens=0
    )
    await organization.world.use(at, tenant_id="lonely", model="newest", billable=False)
    page = await client.admin.organization.usage.costs(start_time=START_S)
    (result,) = [result for bucket in page.data for result in bucket.results]
    assert (result.amount.value, result.model_extra["unpriced_requests"]) == (1.0, 1)


async def records_of(organization: Organization, tenant: str) -> list[Any]:
    """That tenant's rows."""
    return await organization.world.query(
        "SELECT request_id FROM usage_record WHERE tenant_id = :tenant", tenant=tenant
    )


async def test_filters_narrow_what_is_counted(organization: Organization) -> None:
    """By key, model and batch, each as the rows have it."""
    client = organization.client(await organization.token(Role.FINANCE))
    for asked, condition in (
        ({"api_key_ids": ["key_1"]}, "api_key_id = 'key_1'"),
        ({"models": ["newest", "none"]}, "model = 'newest'"),
        ({"batch": True}, "class = 'batch'"),
        ({"batch": False, "models": [MODEL]}, f"class = 'interactive' AND model = '{MODEL}'"),
    ):
        buckets = await all_buckets(client, "usage", **asked)
        found = sum(each.num_model_requests for bucket in buckets for each in bucket.results)
        rows = await organization.world.query(
            f"SELECT request_id FROM usage_record WHERE {condition}"
        )
        assert found == len(rows) > 0, asked


async def test_what_has_no_meaning_here_is_null_or_refused(organization: Organization) -> None:
    """No user, no tier; a filter that could only be answered with nothing is refused by name, in
    OpenAI's shape."""
    client = organization.client("sk-acme")
    groups: Any = ["user_id", "service_tier", "api_source"]
    page: Any = await client.admin.organization.usage.completions(
        start_time=START_S, group_by=groups
    )
    results = [result for bucket in page.data for result in bucket.results]
    assert {(each.user_id, each.service_tier, each.api_source) for each in results} == {
        (None, None, "unlabeled")
    }
    with pytest.raises(openai.BadRequestError) as refused:
        await client.admin.organization.usage.completions(start_time=START_S, user_ids=["u"])
    assert (refused.value.param, refused.value.type) == ("user_ids", "invalid_request_error")
    answer = await organization.get("sk-acme", "/organization/costs?start_time=yesterday")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "start_time"


async def test_it_says_whether_anything_may_be_missing(organization: Organization) -> None:
    """Beside what OpenAI's objects have."""
    client = organization.client("sk-acme")
    page = await client.admin.organization.usage.completions(start_time=START_S)
    assert page.model_extra is not None
    assert page.model_extra["complete"] is True
    organization.told.found = Found(NOT_KNOWN, 0)
    costs = await client.admin.organization.usage.costs(start_time=START_S)
    assert costs.model_extra is not None
    assert (costs.model_extra["complete"], costs.model_extra["complete_through"]) == (False, None)
