"""Single requests on the console: lists, one found by whatever id a client saw, its whole life."""

import re
from html import unescape
from typing import Any

import pytest
from console_visitor import ME, Visitor
from invoice_world import MODEL, InvoiceWorld
from usage_examples import an_admission

from billing.domain.usage_record import Outcome, UsageSource
from gateway.adapters.request_story import RequestStories, Underway
from gateway.app import Gateway
from gateway.domain.account import Role
from gateway.errors import StoreUnavailable

AT = "2026-01-10T12:00:00.123+00:00"
HOSTILE = "<script>alert(1)</script>\"'"
LINK = re.compile(r'href="/console/requests/([0-9a-f-]{36})"')


def text_of(page: str) -> str:
    """What a page says, without its tags, in single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.fixture
async def world(gateway: Gateway) -> InvoiceWorld:
    """One price."""
    books = InvoiceWorld(gateway.postgres)
    await books.open()
    return books


async def as_tenant(visitor: Visitor, role: Role = Role.TENANT_ADMIN) -> None:
    """Log in as somebody of `acme`."""
    await visitor.log_in(role, tenant_id="acme")


async def test_a_life_is_told_whole(visitor: Visitor, world: InvoiceWorld) -> None:
    """Times, tokens, where they come from, what it cost and how that came to be, and the invoice
    that took it."""
    record = await world.use(AT, reasoning_tokens=5)
    issued = await world.close("2026-01")
    await visitor.log_in()
    said = text_of((await visitor.get(f"/console/requests/chatcmpl-{record.request_id}")).text)
    for expected in (
        str(record.request_id),
        "completed final",
        "Queued 3 ms",
        "First token (TTFT) 40 ms",
        "Per token (TPOT) 11 ms",
        "Longest gap 15 ms",
        "Attempt on local-0: completed; 20 tokens out 5 ms 245 ms",
        "End completed 250 ms",
        "The engine's own final count.",
        "In 12 tokens of them cached 4 tokens Out 20 tokens of them reasoning 5 tokens",
        "Cost 0.0000884 USD",
        "input tokens 8 1.00 a million 0.000008",
        "cached input tokens 4 0.10 a million 0.0000004",
        "output tokens 15 4.00 a million 0.00006",
        "reasoning tokens 5 4.00 a million 0.00002",
        "Together 0.0000884",
        f"{issued.invoice.number} of 2026-01, paid line 1: 8 of its 8 input tokens",
        "its gateway's journal",
        "Prompts and answers are never stored.",
    ):
        assert expected in said, expected


async def test_a_provider_is_named_once(visitor: Visitor, world: InvoiceWorld) -> None:
    """It is what served the request, and no worker of it is known."""
    record = await world.use(AT, provider="hosted:near", worker_id="hosted:near")
    await visitor.log_in()
    said = text_of((await visitor.get(f"/console/requests/{record.request_id}")).text)
    assert "Served by a hosted provider, near Gateway" in said
    assert "hosted:near, hosted" not in said


async def test_any_id_that_a_client_saw_is_found(visitor: Visitor, world: InvoiceWorld) -> None:
    """With its prefix, as a header, as an engine has it. What is none says so where it was typed,
    and what does not exist says what has no record."""
    record = await world.use(AT)
    await visitor.log_in()
    plain = str(record.request_id)
    for typed in (plain, f" chatcmpl-{plain} ", f"cmpl-{plain}", plain.replace("-", "")):
        led = await visitor.client.get("/console/requests/find", params={"id": typed})
        assert led.status_code == 303
        answer = await visitor.get(led.headers["location"])
        assert (answer.status_code, plain in answer.text) == (200, True)
    answer = await visitor.client.get("/console/requests/find", params={"id": HOSTILE})
    assert answer.status_code == 404
    assert "is no id of a request" in text_of(answer.text)
    assert "<script>alert" not in answer.text
    assert 'value="&lt;script&gt;alert(1)' in answer.text
    answer = await visitor.get(f"/console/requests/{an_admission().request_id}")
    assert answer.status_code == 404
    assert "one that was refused before that" in text_of(answer.text)


async def test_lists_go_on_by_their_last_request(visitor: Visitor, world: InvoiceWorld) -> None:
    """Newest first, with the filters kept on each page."""
    at = [f"2026-01-{day:02}T{hour:02}:00:00+00:00" for day in (3, 4, 5, 6) for hour in range(20)]
    records = await world.use_all(at)
    await world.use_all(at[:3], outcome=Outcome.TIMED_OUT)
    await visitor.log_in()
    path: str | None = (
        "/console/requests?outcome=completed&tenant_id=acme&from=2026-01-03T01:00&to=&key_id="
    )
    pages = []
    while path is not None:
        page = (await visitor.get(path)).text
        pages.append(LINK.findall(page))
        following = re.search(r'href="([^"]+)" rel="next"', page)
        path = unescape(following[1]) if following else None
        assert "First page" in page or len(pages) == 1
    assert [len(page) for page in pages] == [50, 29]
    expected = [str(each.request_id) for each in reversed(records[1:])]
    assert [name for page in pages for name in page] == expected


async def test_each_filter(visitor: Visitor, world: InvoiceWorld) -> None:
    """And what is none is said at its field."""
    changes: tuple[dict[str, Any], ...] = (
        {}, {"tenant_id": "globex"}, {"api_key_id": "key-2"}, {"request_class": "batch"},
        {"outcome": Outcome.WORKER_FAILED, "final": False}, {"model": "other"},
    )  # fmt: skip
    ids = [
        str((await world.use(f"2026-01-{day:02}T00:00:00+00:00", **each)).request_id)
        for day, each in enumerate(changes, 1)
    ]
    await visitor.log_in()
    for query, expected in (
        ("tenant_id=globex", [1]),
        ("key_id=key-2", [2]),
        ("class=batch", [3]),
        ("outcome=worker_failed", [4]),
        ("model=other", [5]),
        ("from=2026-01-02T00:00&to=2026-01-04T00:00:00", [2, 1]),
        ("tenant_id=globex&class=batch", []),
    ):
        page = (await visitor.get(f"/console/requests?{query}")).text
        assert LINK.findall(page) == [ids[at] for at in expected], query
    assert "No such requests" in page
    for query, field in (("from=now", "from"), ("class=urgent", "class"), ("outcome=x", "outcome")):
        answer = await visitor.get(f"/console/requests?{query}")
        assert answer.status_code == 422
        assert f'id="f-{field}-error"' in answer.text
        assert not LINK.findall(answer.text)
    assert (await visitor.get("/console/requests?cursor=x")).status_code == 422


async def test_nothing_there_says_what_to_do(visitor: Visitor, world: InvoiceWorld) -> None:
    """Where no request has ended yet."""
    await visitor.log_in()
    assert "No requests yet" in (await visitor.get("/console/requests")).text


async def test_money_is_for_those_who_may_see_it(visitor: Visitor, world: InvoiceWorld) -> None:
    """A viewer sees none; the rest is the same."""
    record = await world.use(AT)
    await visitor.log_in(Role.VIEWER)
    for path in ("/console/requests", f"/console/requests/{record.request_id}"):
        page = (await visitor.get(path)).text
        assert "0.0000884" not in page
        assert "local-0" in page


async def test_what_has_no_price_is_not_free(visitor: Visitor, world: InvoiceWorld) -> None:
    """Unpriced is said; what nobody is to pay for is something else."""
    unpriced = await world.use(AT, model="nobody-priced")
    free = await world.use(AT, billable=False, outcome=Outcome.WORKER_FAILED)
    await visitor.log_in(Role.FINANCE)
    said = text_of((await visitor.get(f"/console/requests/{unpriced.request_id}")).text)
    assert "Cost unpriced it is on no invoice until there is a price" in said
    said = text_of((await visitor.get(f"/console/requests/{free.request_id}")).text)
    assert "nothing is to be paid" in said
    assert "the worker failed" in said
    page = text_of((await visitor.get("/console/requests")).text)
    assert "unpriced" in page


@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.TENANT_MEMBER])
async def test_a_tenant_sees_its_own_and_nothing_of_what_serves_it(
    visitor: Visitor, world: InvoiceWorld, role: Role
) -> None:
    """INV-12: another's request is the page of one that does not exist, to the byte but for the id;
    another's list is one of nobody's."""
    await visitor.administration.create_tenant(ME, "globex", "Globex")
    own = await world.use(AT)
    other = await world.use(AT, tenant_id="globex")
    await as_tenant(visitor, role)
    page = (await visitor.get("/console/requests")).text
    assert LINK.findall(page) == [str(own.request_id)]
    page = (await visitor.get(f"/console/requests/{own.request_id}")).text
    assert "local-0" not in page
    assert "gw-1" not in page
    assert "journal" not in page
    assert ("0.0000884" in page) == (role is Role.TENANT_ADMIN)
    told = []
    for identifier in (other.request_id, an_admission().request_id):
        answer = await visitor.get(f"/console/requests/{identifier}")
        assert answer.status_code == 404
        told.append(answer.text.replace(str(identifier), "ID"))
    assert told[0] == told[1]
    told = []
    for tenant in ("globex", "nobody"):
        answer = await visitor.get(f"/console/requests?tenant_id={tenant}")
        assert answer.status_code == 404
        told.append(answer.text)
    assert told[0] == told[1]


async def test_a_draft_is_nothing_to_its_tenant(visitor: Visitor, world: InvoiceWorld) -> None:
    """Finance sees it."""
    record = await world.use(AT)
    await world.draft("2026-01")
    await as_tenant(visitor)
    page = text_of((await visitor.get(f"/console/requests/{record.request_id}")).text)
    assert "Invoice not yet on any" in page
    assert "draft" not in page


async def test_names_are_text(visitor: Visitor, world: InvoiceWorld) -> None:
    """Of a model, a key, a worker, whatever a record says."""
    record = await world.use(
        AT, model=HOSTILE, api_key_id=HOSTILE, worker_id=HOSTILE, tenant_id=HOSTILE,
        finish_reason=HOSTILE, usage_flags=(HOSTILE,),
    )  # fmt: skip
    await visitor.log_in()
    for path in ("/console/requests", f"/console/requests/{record.request_id}"):
        page = (await visitor.get(path)).text
        assert "<script>alert" not in page
        assert "alert(1)" in page


async def test_one_that_runs_and_one_whose_gateway_is_gone(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the tokens so far; what is not known yet is no 0."""
    admission = an_admission(model=MODEL)
    for is_gone, said in ((False, "It runs now."), (True, "was not seen for a minute")):

        async def find(*_: object, is_gone: bool = is_gone) -> Underway:
            return Underway("gw-2", admission, 12, 7, gateway_is_gone=is_gone)

        monkeypatch.setattr(RequestStories, "find", find)
        if not is_gone:
            await visitor.log_in()
        page = text_of((await visitor.get(f"/console/requests/{admission.request_id}")).text)
        assert said in page
        assert "Out so far 7 tokens" in page
        assert "First token (TTFT) – told when it ends" in page


async def test_the_page_of_one_that_runs_reads_itself_anew_until_it_ends(
    visitor: Visitor, world: InvoiceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then whole, and no more; nobody follows another tenant's."""
    record = await world.use(AT)
    path = f"/console/requests/{record.request_id}"
    admission = an_admission(model=MODEL)
    real, told = RequestStories.find, [7]

    async def find(*_: object) -> Underway:
        return Underway("gw-2", admission, 12, told[0], gateway_is_gone=False)

    await visitor.log_in()
    ended = await visitor.get(f"{path}/now", **{"hx-request": "true"})
    assert (ended.text, ended.headers["hx-refresh"]) == ("", "true")
    assert "data-live" not in (await visitor.get(path)).text
    monkeypatch.setattr(RequestStories, "find", find)
    page = (await visitor.get(f"/console/requests/{admission.request_id}")).text
    now = f"/console/requests/{admission.request_id}/now"
    assert f'hx-get="{now}"' in page
    assert re.search(r"Running [\d.,]+ m?s .* so far", text_of(page))
    assert "goes on" not in page
    told[0] = 8
    part = await visitor.get(now)
    assert "<html" not in part.text
    assert "hx-refresh" not in part.headers
    assert "Out so far 8 tokens" in text_of(part.text)
    monkeypatch.setattr(RequestStories, "find", real)
    assert (await visitor.get(now)).status_code == 404


async def test_an_account_that_may_change_says_so(visitor: Visitor, world: InvoiceWorld) -> None:
    """A reaper's, with counts that nobody vouches for."""
    record = await world.use(
        AT, final=False, outcome=Outcome.GATEWAY_LOST, usage_source=UsageSource.ESTIMATED
    )
    await world.sql(
        "INSERT INTO usage_provisional (request_id, admitted_at, gateway_id) "
        "VALUES (:id, uuid_v7_time(:id), 'gw-3')",
        id=record.request_id,
    )
    await visitor.log_in()
    page = text_of((await visitor.get(f"/console/requests/{record.request_id}")).text)
    assert "This account is provisional." in page
    assert "Nothing was heard from the engine" in page
    assert "its gateway was lost" in page
    assert "provisional" in (await visitor.get("/console/requests")).text


async def test_while_requests_cannot_be_read_the_pages_say_so(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, with the filters kept; nothing is said not to exist."""

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("requests cannot be read at the moment")

    for method in ("page", "find"):
        monkeypatch.setattr(RequestStories, method, away)
    await visitor.log_in()
    answer = await visitor.get("/console/requests?tenant_id=acme")
    assert answer.status_code == 503
    assert "Requests are not known right now." in answer.text
    assert 'value="acme"' in answer.text
    answer = await visitor.get(f"/console/requests/{an_admission().request_id}")
    assert answer.status_code == 503
