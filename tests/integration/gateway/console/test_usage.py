"""The page of usage: its figures are the records', for those who may see them, and its address
says all."""

import asyncio
import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from console_visitor import ME, Visitor
from invoice_world import MODEL, InvoiceWorld

from gateway.adapters.completeness import HOLDS_S
from gateway.adapters.usage_reports import UsageReports
from gateway.app import Gateway
from gateway.domain.account import Role
from gateway.errors import LimitReached, StoreUnavailable

HOSTILE = "<script>alert(1)</script>\"'"
DATA = re.compile(r'<script type="application/json" id="usage-plot-data">(.*?)</script>', re.DOTALL)
TODAY = datetime.now(UTC).date()
YESTERDAY = TODAY - timedelta(days=1)


def at(hour: int, minute: int = 0) -> str:
    """An instant of yesterday."""
    return f"{YESTERDAY}T{hour:02}:{minute:02}:00+00:00"


def days(**also: str) -> str:
    """The address's parameters for yesterday."""
    parts = {"from": str(YESTERDAY), "to": str(YESTERDAY), **also}
    return "&".join(f"{name}={value}" for name, value in parts.items())


def plot(page: str) -> Any:
    """What the page's plot draws."""
    found = DATA.search(page)
    assert found is not None
    return json.loads(found[1])


def rows(content: str) -> list[dict[str, str]]:
    """The rows of a file."""
    return list(csv.DictReader(io.StringIO(content)))


@pytest.fixture
async def world(gateway: Gateway, visitor: Visitor) -> InvoiceWorld:
    """Three tenants' usage of yesterday, one of a hostile name, some of it rolled up."""
    books = InvoiceWorld(gateway.postgres)
    await books.open()
    await books.price(currency="EUR", input_pico=2_000_000)
    await visitor.administration.create_tenant(ME, "globex", "Globex", currency="EUR")
    await visitor.administration.create_tenant(ME, "evil", HOSTILE)
    await gateway.directory.refresh()
    await books.use_all([at(3), at(3, 20), at(7)])
    await books.roll_up()
    await books.use(
        at(7, 1), currency="EUR", tenant_id="globex", api_key_id="=2+3", request_class="batch"
    )
    await books.use(at(9), tenant_id="evil", model="nobody-priced", output_tokens=1_000)
    return books


async def test_figures_are_the_records(visitor: Visitor, world: InvoiceWorld) -> None:
    """By tenant: the largest first, with what each cost in its own currency, and what has no price
    said so; the plot has every hour, and 0 where nothing was used."""
    await visitor.log_in()
    page = (await visitor.get(f"/console/usage?{days()}")).text
    drawn = plot(page)
    start_s = int(datetime.fromisoformat(f"{YESTERDAY}T00:00:00+00:00").timestamp())
    assert drawn["x"] == [start_s + hour * 3_600 for hour in range(24)]
    by_name = {each["name"]: each["values"] for each in drawn["series"]}
    assert list(by_name) == [HOSTILE, "Acme", "Globex"]
    assert [by_name["Acme"][hour] for hour in (2, 3, 7, 9)] == [0, 64, 32, 0]
    assert (by_name["Globex"][7], by_name[HOSTILE][9]) == (32, 1_012)
    listed = rows((await visitor.get(f"/console/usage/groups.csv?{days()}")).text)
    assert [each["tenant"] for each in listed] == ["evil", "acme", "globex"]
    assert [each["requests"] for each in listed] == ["1", "3", "1"]
    assert [each["cost_USD"] for each in listed] == ["", "0.0002652", ""]
    assert [each["cost_EUR"] for each in listed] == ["", "", "0.0000964"]
    assert [each["unpriced_requests"] for each in listed] == ["1", "0", "0"]
    assert "that have ended, billed or not" in page
    for shown in ("0.0002652", "0.0000964", "1 unpriced", "2 currencies", "never added"):
        assert shown in page
    lines = rows((await visitor.get(f"/console/usage/over-time.csv?{days()}")).text)
    assert len(lines) == 24
    drawn = {f"{HOSTILE} (evil)": "0", "Acme (acme)": "64", "Globex (globex)": "0"}
    assert lines[3] == {"start_utc": at(3)[:19] + "Z", **drawn}


async def test_files_tell_groups_by_id_and_by_name(visitor: Visitor, world: InvoiceWorld) -> None:
    """Two tenants of one name have a column each; a key's row says its name and whose it is; a
    tenant's own files say it too, and what is no key any more has its id alone."""
    verbs = visitor.administration
    await verbs.create_tenant(ME, "acme-2", "Acme")
    key, _ = await verbs.create_key(ME, "acme-2", "Nightly", "batch")
    await world.use(at(5), tenant_id="acme-2", api_key_id=key.id)
    await visitor.log_in()
    groups: list[dict[str, str]] = []
    async with asyncio.timeout(10):  # the gateway hears of a new tenant within a moment
        while "Acme" not in [each["name"] for each in groups if each["tenant"] == "acme-2"]:
            groups = rows((await visitor.get(f"/console/usage/groups.csv?{days()}")).text)
    assert {each["tenant"]: each["name"] for each in groups} == {
        "acme": "Acme", "acme-2": "Acme", "globex": "Globex", "evil": HOSTILE,
    }  # fmt: skip
    over = rows((await visitor.get(f"/console/usage/over-time.csv?{days()}")).text)
    assert (over[5]["Acme (acme)"], over[5]["Acme (acme-2)"]) == ("0", "32")
    groups = rows((await visitor.get(f"/console/usage/groups.csv?{days(by='key')}")).text)
    named = {each["key"]: (each["name"], each["tenant"]) for each in groups}
    assert named == {key.id: ("Nightly", "acme-2"), "key-1": ("", ""), "'=2+3": ("", "")}
    over = rows((await visitor.get(f"/console/usage/over-time.csv?{days(by='key')}")).text)
    assert over[5][f"Nightly ({key.id})"] == "32"
    await visitor.log_in(Role.TENANT_ADMIN, tenant_id="acme-2")
    (own,) = rows((await visitor.get(f"/console/own/usage/groups.csv?{days(by='key')}")).text)
    assert (own["key"], own["name"], own["tenant"]) == (key.id, "Nightly", "acme-2")


async def test_each_filter_group_and_measure(visitor: Visitor, world: InvoiceWorld) -> None:
    """Of a tenant, a key, a model, a class; told apart by each; of what is drawn."""
    await visitor.log_in()
    for query, expected in (
        ({"tenant_id": "acme", "by": "key"}, {"key-1": 96}),
        ({"class": "batch"}, {"Globex": 32}),
        ({"model": MODEL, "by": "class"}, {"interactive": 96, "batch": 32}),
        ({"key_id": "key-1", "by": "model"}, {MODEL: 96, "nobody-priced": 1_012}),
        ({"show": "requests"}, {"Acme": 3, HOSTILE: 1, "Globex": 1}),
        ({"show": "cached", "step": "day"}, {"Acme": 12, HOSTILE: 4, "Globex": 4}),
        ({"show": "output", "by": "class", "step": "15min"}, {"interactive": 1_060, "batch": 20}),
    ):
        answer = await visitor.get(f"/console/usage?{days(**query)}")
        assert answer.status_code == 200
        series = plot(answer.text)["series"]
        assert {each["name"]: sum(each["values"]) for each in series} == expected, query
    page = (await visitor.get(f"/console/usage?{days(show='requests', by='class')}")).text
    kept = re.findall(r'<option value="([^"]+)" selected>', page)
    assert {"requests", "class"} <= set(kept)


async def test_ten_groups_are_drawn_as_eight_and_the_rest(
    visitor: Visitor, world: InvoiceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the table goes on by its last row, each group once, under the same sum of all."""
    for count in range(10):
        await world.use_all([at(5)] * (count + 1), api_key_id=f"key-{count:02}")
    monkeypatch.setattr("gateway.console.usage.GROUPS_ON_PAGE", 4)
    await visitor.log_in()
    path: str | None = f"/console/usage?{days(by='key', tenant_id='acme', show='requests')}"
    seen: list[str] = []
    while path is not None:
        page = (await visitor.get(path)).text
        drawn = plot(page)["series"]
        assert [each["name"] for each in drawn] == [
            *(f"key-{count:02}" for count in (9, 8, 7, 6, 5, 4, 3)), "key-02", "3 others",
        ]  # fmt: skip
        assert drawn[-1]["values"][5] + drawn[-1]["values"][3] + drawn[-1]["values"][7] == 6
        assert sum(sum(each["values"]) for each in drawn) == 58
        seen += re.findall(r'class="name">(key-\d+)</a>', page)
        following = re.search(r'href="([^"]+)" rel="next"', page)
        path = unescape(following[1]) if following else None
    assert seen == [f"key-{count:02}" for count in (9, 8, 7, 6, 5, 4, 3)] + [
        *("key-02", "key-1", "key-01", "key-00")
    ]


async def test_who_sees_no_money_sees_none(visitor: Visitor, world: InvoiceWorld) -> None:
    """Neither on the page nor in its files."""
    await visitor.log_in(Role.VIEWER)
    page = (await visitor.get(f"/console/usage?{days()}")).text
    assert "0.0002652" not in page
    assert "unpriced" not in page
    (first, *_) = rows((await visitor.get(f"/console/usage/groups.csv?{days()}")).text)
    assert not [name for name in first if "cost" in name or "unpriced" in name]


async def test_names_are_text_wherever_they_stand(visitor: Visitor, world: InvoiceWorld) -> None:
    """In tables, plots, suggestions and files, where none becomes a formula."""
    await visitor.log_in()
    for path in (f"/console/usage?{days()}", "/console/usage/tenants?tenant_id=alert"):
        page = (await visitor.get(path)).text
        assert "<script>alert" not in page
        assert "alert(1)" in page
    query = f"{days()}&tenant_id=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
    assert "<script>alert" not in (await visitor.get(f"/console/usage?{query}")).text
    content = (await visitor.get(f"/console/usage/groups.csv?{days(by='key')}")).text
    assert {each["key"] for each in rows(content)} == {"key-1", "'=2+3"}
    answer = await visitor.get(f"/console/usage/over-time.csv?{days(by='key')}")
    assert "'=2+3" in answer.text.splitlines()[0]
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"


async def test_slips_of_the_pen_stand_at_their_field(visitor: Visitor, world: InvoiceWorld) -> None:
    """422, with what was typed kept; no figures of something else are shown, nor in a file."""
    await visitor.log_in()
    for query, field, said in (
        ("tenant_id=nobody", "tenant_id", "is the id of no tenant"),
        ("from=2026-02-30", "from", "must be a day like"),
        ("from=2026-03-02&to=2026-03-01", "from", "must not be after"),
        ("from=2020-01-01&to=2026-01-01", "from", "at most 400 days"),
        ("by=worker", "by", "must be one of"),
        ("class=urgent", "class", "must be one of"),
    ):
        answer = await visitor.get(f"/console/usage?{query}")
        assert answer.status_code == 422, query
        assert f'id="f-{field}-error"' in answer.text
        assert said in answer.text
        assert DATA.search(answer.text) is None
        assert (await visitor.get(f"/console/usage/groups.csv?{query}")).status_code == 422
    assert 'value="nobody"' in (await visitor.get("/console/usage?tenant_id=nobody")).text


async def test_no_usage_says_what_to_do(visitor: Visitor, world: InvoiceWorld) -> None:
    """Of a time or of a filter without any."""
    await visitor.log_in()
    page = (await visitor.get("/console/usage?from=2025-01-01&to=2025-01-02")).text
    assert "Nothing was used in these 2 days" in page
    assert "Show 30 days" in page
    page = (await visitor.get(f"/console/usage?{days(key_id='none')}")).text
    assert "Show all usage" in page


@pytest.mark.parametrize("error", [StoreUnavailable("usage cannot be read at the moment"), None])
async def test_while_usage_cannot_be_read_the_page_says_so(
    visitor: Visitor, world: InvoiceWorld, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """With what was chosen kept; what is not known is no 0."""
    refused = error or LimitReached("too many at once", kind="requests", retry_after_ms=1_000)

    async def away(*_: object, **__: object) -> None:
        raise refused

    monkeypatch.setattr(UsageReports, "chart", away)
    await visitor.log_in()
    answer = await visitor.get(f"/console/usage?{days(tenant_id='acme')}")
    assert answer.status_code == (503 if error else 429)
    assert "Usage is not known right now." in answer.text
    assert 'value="acme"' in answer.text
    assert "Nothing was used" not in answer.text


async def test_it_says_whether_anything_is_missing(
    visitor: Visitor, world: InvoiceWorld, gateway: Gateway
) -> None:
    """A record that waits for a person is in no figure: then nothing is complete."""
    await visitor.log_in()
    page = (await visitor.get(f"/console/usage?{days()}")).text
    assert "Some usage may be missing." not in page
    await world.sql(
        "INSERT INTO usage_dead_letter (gateway_id, source, reason, payload)"
        " VALUES ('gw-1', 'test', 'test', '')"
    )
    async with asyncio.timeout(3 * HOLDS_S):
        while "Some usage may be missing." not in page:  # a look holds for a second
            page = (await visitor.get(f"/console/usage?{days()}")).text
