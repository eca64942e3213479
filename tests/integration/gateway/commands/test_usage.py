import asyncio
from typing import Any

import msgspec
import pytest
from servers import free_port
from usage_examples import a_record, an_admission

from billing.domain.usage_record import UsageRecord
from billing.postgres.usage_records import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine
from gateway.cli import main

START_MS = 1_795_970_000_000


async def insert(database_url: str, count: int) -> list[UsageRecord]:
    """So many records, one a minute, of two tenants in turn."""
    records = [
        a_record(
            an_admission(at_ms=START_MS + step * 60_000, tenant_id=("acme", "globex")[step % 2])
        )
        for step in range(count)
    ]
    engine = async_engine(database_url, pooled=False)
    async with engine.begin() as db:
        await insert_batch(db, [JournaledRecord(record, "gw-1") for record in records])
    await engine.dispose()
    return records


async def weir(
    capsys: pytest.CaptureFixture[str], database_url: str, *arguments: str
) -> tuple[int | str | None, str, str]:
    """Exit status, output and errors of `weir usage ...`."""

    def run() -> int | str | None:
        with pytest.raises(SystemExit) as left:
            main(["usage", *arguments, "--database-url", database_url])
        return left.value.code

    status = await asyncio.to_thread(run)
    out, err = capsys.readouterr()
    return status, out, err


async def as_json(
    capsys: pytest.CaptureFixture[str], database_url: str, *arguments: str
) -> dict[str, Any]:
    status, out, err = await weir(capsys, database_url, *arguments, "--json")
    assert (status, err) == (0, "")
    return msgspec.json.decode(out, type=dict[str, Any])


async def test_records_are_listed_by_page(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The latest first, a tenant's own, each once over the pages."""
    records = await insert(database_url, 9)
    mine = [str(record.request_id) for record in records if record.tenant_id == "acme"]
    seen: list[str] = []
    options = ["list", "--tenant", "acme", "--limit", "2"]
    cursor: str | None = ""
    while cursor is not None:
        more = ["--cursor", cursor] if cursor else []
        page = await as_json(capsys, database_url, *options, *more)
        seen += [item["request_id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert seen == mine[::-1]


async def test_a_listed_record_has_the_views_fields(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JSON names what the contract's view names."""
    (record,) = await insert(database_url, 1)
    page = await as_json(capsys, database_url, "list")
    (item,) = page["items"]
    assert item["class"] == "interactive"
    assert item["admitted_at"] == "2026-11-29T16:33:20Z"
    assert item["output_tokens"] == record.output_tokens
    assert item["cost_pico"] is None


async def test_since_and_until_are_a_half_open_interval(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the first instant on, before the second."""
    records = await insert(database_url, 5)
    since, until = "2026-11-29T16:34:20Z", "2026-11-29T17:36:20+01:00"
    page = await as_json(capsys, database_url, "list", "--since", since, "--until", until)
    assert [item["request_id"] for item in page["items"]] == [
        str(record.request_id) for record in (records[2], records[1])
    ]


async def test_sums(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the dimension that was asked for."""
    await insert(database_url, 5)
    found = await as_json(capsys, database_url, "sum", "--by", "tenant")
    assert found["group_by"] == "tenant"
    assert [
        (item["group"], item["requests"], item["output_tokens"]) for item in found["items"]
    ] == [
        ("acme", 3, 60),
        ("globex", 2, 40),
    ]


async def test_people_get_tables(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A heading, a line each, and how to go on."""
    await insert(database_url, 3)
    _, out, _ = await weir(capsys, database_url, "list", "--limit", "2")
    lines = out.splitlines()
    assert lines[0].split()[:2] == ["ADMITTED_AT", "REQUEST_ID"]
    assert len(lines) == 4
    assert lines[3].startswith("more: --cursor ")
    _, out, _ = await weir(capsys, database_url, "sum", "--by", "day")
    assert out.splitlines()[1].split()[:2] == ["2026-11-29", "3"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--cursor", "nonsense"),
        ("list", "--since", "yesterday"),
        ("list", "--since", "2026-11-29T00:00:00"),
        ("list", "--limit", "0"),
        ("sum", "--by", "colour"),
    ],
)
async def test_bad_input_is_one_line_and_status_2(
    database_url: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """Whatever is wrong with an option."""
    status, out, err = await weir(capsys, database_url, *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)


async def test_without_postgres_it_is_one_line_and_status_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And no password in it."""
    url = f"postgresql://u:hunter2@127.0.0.1:{free_port()}/x"
    status, out, err = await weir(capsys, url, "sum")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "hunter2" not in err


async def test_one_request_shows_its_life(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its id in any form, with its streams; one that is not there is refused."""
    (record,) = await insert(database_url, 1)
    life = await as_json(capsys, database_url, "request", f"chatcmpl-{record.request_id}")
    assert (life["id"], life["state"]) == (str(record.request_id), "ended")
    assert len(life["attempts"]) == 1
    status, out, err = await weir(capsys, database_url, "request", str(record.request_id))
    assert (status, err) == (0, "")
    assert "tokens.output" in out
    assert "local-0" in out
    for name in ("nothing", str(an_admission().request_id)):
        status, out, err = await weir(capsys, database_url, "request", name)
        assert (status, out, err) == (2, "", f"weir: there is no request {name}\n")
