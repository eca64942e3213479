"""The page of the audit log: what changed, filtered, and whether the chain fits."""

import re

import pytest
from console_visitor import ME, Visitor

from gateway.administration import Administration, NewPrice
from gateway.domain.account import Role
from gateway.errors import StoreUnavailable

NASTY = """<script>alert(1)</script>"'"""
ENTRY = re.compile(r'id="entry-(\d+)"')


async def test_an_entry_says_what_was_before_and_what_is_after(visitor: Visitor) -> None:
    """Only what changed, field by field; and leads to all of its subject and of who did it."""
    await visitor.log_in(Role.VIEWER)
    await visitor.administration.update_tenant(ME, "acme", name="Acme & Sons")
    page = (await visitor.get("/console/audit?action=tenant.update")).text
    assert len(ENTRY.findall(page)) == 1
    assert "<del>Acme</del>" in page
    assert "<ins>Acme &amp; Sons</ins>" in page
    assert "<code>currency</code>" not in page
    assert "name Acme → Acme &amp; Sons" in page
    assert "/console/audit?subject_kind=tenant&amp;subject_id=acme" in page
    assert "/console/audit?actor=cli%3Atest" in page


async def test_what_is_named_like_a_script_is_text(visitor: Visitor) -> None:
    """In entries, filters and links."""
    await visitor.log_in()
    await visitor.administration.update_tenant(ME, "acme", name=NASTY)
    await visitor.administration.issue_token(NASTY, "admin@weir.local", "t")
    for path in (
        "/console/audit",
        "/console/audit?actor=" + NASTY,
        "/console/audit?action=" + NASTY,
    ):
        page = (await visitor.get(path)).text
        assert "alert(1)" in page
        assert "<script>alert" not in page


async def test_entries_of_one_change_stand_together(visitor: Visitor) -> None:
    """With a link to all of it, which shows them and no other."""
    await visitor.log_in()
    await visitor.administration.create_tenant(ME, "globex", "Globex")
    wanted = [(name, {"max_sequences": 7}) for name in ("acme", "globex")]
    await visitor.administration.put_many_limits(ME, wanted)
    page = (await visitor.get("/console/audit")).text
    assert "One change, 2 entries here" in page
    found = re.search(r'entry-group-head.*?href="([^"]+)"', page)
    assert found is not None
    page = (await visitor.get(found[1])).text
    assert len(ENTRY.findall(page)) == 2
    assert "max_sequences" in page


async def test_filters_hold_and_pages_follow(visitor: Visitor) -> None:
    """Every entry once, the latest first; a filter goes along to the next page and to the files."""
    await visitor.log_in()
    for number in range(60):
        await visitor.administration.issue_token(ME, "admin@weir.local", f"t{number}")
    path, seen = "/console/audit?action=token.*", []
    while path:
        page = (await visitor.get(path)).text
        seen += [int(each) for each in ENTRY.findall(page)]
        following = re.search(r'href="([^"]+)" rel="next"', page)
        path = following[1].replace("&amp;", "&") if following else ""
    assert len(seen) == 60
    assert seen == sorted(seen, reverse=True)
    file = re.search(r'href="(/admin/v1/audit.csv[^"]*)"', page)
    assert file is not None
    answer = await visitor.client.get(file[1])
    assert answer.status_code == 200
    assert len(answer.text.splitlines()) == 61
    page = (await visitor.get("/console/audit?tenant_id=nobody")).text
    assert "No entry matches" in page
    assert ENTRY.findall(page) == []


async def test_times_are_utc_and_kept_as_they_were_typed(visitor: Visitor) -> None:
    """A field of a browser says no zone; a link may."""
    await visitor.log_in()
    for text, shown in (
        ("2026-01-01T00:00", "2026-01-01T00:00"),
        ("2026-01-01T02:00:05%2B02:00", "2026-01-01T00:00:05"),
        ("2026-01-01", "2026-01-01T00:00"),
    ):
        answer = await visitor.get(f"/console/audit?since={text}")
        assert answer.status_code == 200
        assert f'value="{shown}"' in answer.text
        assert ENTRY.findall(answer.text)
        assert f"since={shown.replace(':', '%3A')}Z" in answer.text
    assert ENTRY.findall((await visitor.get("/console/audit?until=2026-01-01T00:00")).text) == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("action=a*b", "a * stands at its end"),
        ("since=yesterday", "must be an instant such as"),
        ("until=0001-01-01T00:00", "must be a time like"),
        ("cursor=x%00", "none that a page led to"),
    ],
)
async def test_a_filter_that_is_none_says_so_at_its_field(
    visitor: Visitor, query: str, said: str
) -> None:
    """And what was typed stays."""
    await visitor.log_in()
    answer = await visitor.get(f"/console/audit?{query}")
    assert answer.status_code == 422
    assert said in answer.text
    assert ENTRY.findall(answer.text) == []


@pytest.mark.parametrize(("role", "shown"), [(Role.OPERATOR, False), (Role.FINANCE, True)])
async def test_who_reads_no_money_sees_that_a_price_changed_and_not_how(
    visitor: Visitor, role: Role, shown: bool
) -> None:
    """Whoever does, sees it."""
    price = NewPrice(
        model="m",
        provider="self",
        currency="USD",
        input_pico=123_456,
        output_pico=1_600_000,
        cached_input_pico=None,
    )
    await visitor.administration.set_price(ME, price)
    await visitor.log_in(role)
    page = (await visitor.get("/console/audit?action=price.set")).text
    assert len(ENTRY.findall(page)) == 1
    assert ("0.123456" in page) == shown
    assert ("which your role does not read" in page) != shown


async def test_the_chain_is_checked_and_its_head_shown(visitor: Visitor) -> None:
    """In steps; a head that was written down is found again, another is not."""
    await visitor.log_in(Role.VIEWER)
    page = (await visitor.get("/console/audit/chain")).text
    assert "Verified" not in page
    page = (await visitor.get("/console/audit/chain?check=1")).text
    assert "Verified through entry" in page
    head = re.search(r'<code id="head">(\d+):([0-9a-f]{64})</code>', page)
    assert head is not None
    page = (await visitor.get(f"/console/audit/chain?expect={head[1]}:{head[2]}")).text
    assert "Verified through entry" in page
    page = (await visitor.get(f"/console/audit/chain?expect={head[1]}:{'0' * 64}")).text
    assert f"Entry {head[1]} does not fit" in page
    assert "Verified" not in page


async def test_a_long_chain_is_gone_through_in_steps(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each begins where the one before ended."""
    monkeypatch.setattr("gateway.console.audit.CHECKED", 2)
    await visitor.log_in()
    page = (await visitor.get("/console/audit/chain?check=1")).text
    seen = []
    while (
        following := re.search(r'href="(/console/audit/chain\?from_id[^"]+)"', page)
    ) is not None:
        seen.append(following[1])
        page = (await visitor.get(following[1].replace("&amp;", "&"))).text
        assert "Verified through entry" in page
    assert len(seen) >= 2
    assert "it is the last" in page


@pytest.mark.parametrize("query", ["from_id=999999", "from_id=x", "expect=5"])
async def test_what_is_no_entry_is_said_at_its_field(visitor: Visitor, query: str) -> None:
    """422, with the form as it was."""
    await visitor.log_in()
    answer = await visitor.get(f"/console/audit/chain?{query}")
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert "Verified" not in answer.text


async def test_while_postgres_is_away_nothing_is_called_empty(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, and not a log without entries."""
    await visitor.log_in()

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("Postgres cannot be reached")

    monkeypatch.setattr(Administration, "list_audit", away)
    answer = await visitor.get("/console/audit")
    assert answer.status_code == 503
    assert "Nothing was changed yet" not in answer.text
