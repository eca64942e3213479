"""`weir unit-cost` on a real Postgres."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from unit_cost_rows import add_samples, add_workers, rows, store
from weir_command import Weir

from gateway.adapters.postgres import async_engine

PERIOD = ("unit-cost", "--from", "2026-11-28T00:00:00Z", "--to", "2026-11-30T00:00:00Z")
PRICE = ("--price-per-gpu-hour", "2.35")
TWO_DAYS = (*PERIOD, *PRICE, "--gpus", "4")


def on(database_url: str, work: Callable[[AsyncEngine], Awaitable[None]]) -> None:
    """Do that in the database."""

    async def run() -> None:
        engine = async_engine(database_url, pooled=False)
        await work(engine)
        await engine.dispose()

    asyncio.run(run())


@pytest.fixture
def with_rows(database_url: str) -> str:
    """The database, with two tenants' usage."""
    on(database_url, lambda engine: store(engine, rows()))
    return database_url


def total(items: list[dict[str, str]], name: str) -> Decimal:
    """Exactly."""
    return sum((Decimal(item[name]) for item in items), Decimal(0))


@pytest.mark.parametrize("by", ["tenant", "model", "class", "day", "hour"])
def test_it_sums_to_the_bill(weir: Weir, with_rows: str, by: str) -> None:
    """By whatever it is shown: 192 GPU-hours at 2.35, and 0.01 of operations."""
    found = weir.json(*TWO_DAYS, "--operations-cost", "0.01", "--by", by)
    assert found["bill"]["total"] == "451.21"
    assert found["bill"]["gpu_hours"] == "192.000000"
    items = found["items"]
    assert total(items, "cost") + Decimal(found["bill"]["idle"]) == Decimal("451.21")
    parts = sum(total(items, part) for part in ("prefill", "decode", "kv"))
    assert parts == total(items, "cost") > 0
    assert total(items, "idle_share") == Decimal(found["bill"]["idle"])
    assert sum(item["requests"] for item in items) == 6
    assert len(found["hours"]) == 24
    assert found["step_model"]["measured"] is False


def test_tenants_pay_by_their_work(weir: Weir, with_rows: str) -> None:
    """Twice the work of a tenant's requests where nothing else differs, and other currencies
    apart."""
    found = weir.json(*TWO_DAYS, "--model", "m")
    acme, globex = found["items"]
    assert (acme["group"], acme["revenue"], acme["other_revenue"]) == (
        "acme",
        "0.01",
        {"JPY": "700"},
    )
    assert Decimal(acme["margin"]) == Decimal(acme["revenue"]) - Decimal(acme["cost"])
    assert (globex["requests"], globex["unpriced_requests"]) == (2, 1)
    # acme: prompts of 800, 800, 800, 0 (cached beyond the prompt) and 800 uncached, globex's two of
    # 800; each begun prompt costs 5.6 ms, 800 tokens 32 and their attention 1.28.
    of_a_prompt, of_cached = Decimal("38.88"), Decimal("5.6")
    ratio = Decimal(acme["prefill"]) / Decimal(globex["prefill"])
    assert abs(ratio - (4 * of_a_prompt + of_cached) / (2 * of_a_prompt)) < Decimal("1e-6")
    assert found["model"] == "m"
    assert "1 requests were served by hosted providers" in " ".join(found["notes"])


def test_hours_by_day_come_from_a_file(weir: Weir, with_rows: str, tmp_path: Path) -> None:
    """A day without hours bears nothing, and its work is said to be too much."""
    file = tmp_path / "hours.csv"
    file.write_text("date,gpu_hours\n2026-11-28,96\n2026-11-29,0\n")
    asked = (*PERIOD, *PRICE, "--hours-file", str(file), "--by", "day")
    found = weir.json(*asked)
    first, second = found["items"]
    assert (first["group"], second["group"], second["cost"]) == ("2026-11-28", "2026-11-29", "0.00")
    assert (found["bill"]["total"], found["bill"]["over_spans"]) == ("225.60", 1)
    assert "more work than was paid" in " ".join(found["notes"])
    file.write_text("date,gpu_hours\n2026-11-28,96\n2026-11-29,x\n2026-11-30,1\n")
    told = weir.refused(*asked)
    assert "--hours-file line 3: gpu_hours must be" in told
    assert "line 4: 2026-11-30 is not in the time" in told
    file.write_bytes(b"\xff")
    assert "--hours-file" in weir.refused(*asked)


def test_hours_come_from_samples(weir: Weir, with_rows: str) -> None:
    """Two workers that were seen for three hours: four GPUs each, and other models' left out."""

    async def sample(engine: AsyncEngine) -> None:
        async with engine.begin() as db:
            await add_workers(db, ("w1", "m"), ("w2", "n"))
            quarters = [timedelta(minutes=15 * step) for step in range(9)]
            await add_samples(db, "w1", *quarters)
            await add_samples(db, "w2", *quarters[:5])

    asked = (*PERIOD, *PRICE, "--from-samples")
    assert "no worker was seen" in weir.refused(*asked)
    on(with_rows, sample)
    found = weir.json(*asked)
    assert found["bill"]["gpu_hours"] == "12.000000"
    assert [hour["paid_gpu_hours"] for hour in found["hours"][:3]] == [
        "8.000000",
        "4.000000",
        "0.000000",
    ]
    assert weir.json(*asked, "--model", "m")["bill"]["gpu_hours"] == "8.000000"
    found = weir.json(*asked, "--coefficient", "gpus=8")
    assert found["bill"]["gpu_hours"] == "24.000000"


def test_hosted_prices(weir: Weir, with_rows: str) -> None:
    """Of a provider of ours as it is set, of a list, or as said; a model without a price is not
    passed over."""
    weir.ok("model", "add", "m", "--context-tokens", "2048", "--max-output-tokens", "512")
    weir.ok(
        "hosted", "add", "x", "--url", "https://ai.example", "--model", "m=big",
        "--price", "m=1,2",
    )  # fmt: skip
    asked = (*TWO_DAYS, "--model", "m", "--hosted-input", "1", "--hosted-output", "2.00")
    ours, listed, said = weir.json(*asked, "--hosted", "x", "--hosted", "list:groq")["hosted"]
    assert (ours["name"], listed["name"], said["name"]) == ("x", "list:groq", "hosted")
    assert ours["prices"] == said["prices"] == {"m": {"input": "1.00", "output": "2.00"}}
    # 10,000 tokens in, 506 out.
    assert ours["cost"] == said["cost"] == "0.011012"
    assert ours["break_even_utilisation"] == said["break_even_utilisation"]
    assert "x has no price for n" in weir.refused(*TWO_DAYS, "--hosted", "x")
    assert "no provider 'y'" in weir.refused(*TWO_DAYS, "--hosted", "y")


def test_people_get_a_table(weir: Weir, with_rows: str) -> None:
    """That fits a terminal, and says that records may be missing where nobody knows."""
    status, out, err = weir.run(*TWO_DAYS, "--hosted", "list")
    lines = out.splitlines()
    assert status == 0
    assert max(map(len, lines)) <= 100
    assert lines[0] == "Unit cost of all models, in USD"
    assert any(line.startswith("At 0.0 % utilisation a million output tokens") for line in lines)
    assert sum(line.startswith("list:") and line.endswith("dearer") for line in lines) == 0
    assert any(line.split()[:1] == ["(total)"] and "451.2000" in line for line in lines)
    assert err == "Records may be missing: complete through nothing that is known.\n"


def test_the_pages_command_runs(weir: Weir) -> None:
    """As it stands there."""
    page = (Path(__file__).parents[4] / "docs" / "unit-cost.md").read_text()
    command = shlex.split(page.split("```")[1].replace("\\\n", " "))
    assert command[:2] == ["weir", "unit-cost"]
    status, out, _ = weir.run(*command[1:])
    assert status == 0
    assert "paid   5952.000  15187.20  at 2.3500 an hour, operations 1200.00" in out


def test_without_any_usage_all_is_idle(weir: Weir) -> None:
    """A bill is a bill."""
    found = weir.json(*TWO_DAYS)
    assert (found["items"], found["bill"]["idle"]) == ([], "451.20")
    assert found["now"] == dict.fromkeys(found["now"])
    assert "all of it is idle" in found["summary"][0]
    assert "all of it is idle" in weir.run(*TWO_DAYS)[1]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((*PERIOD, *PRICE), "--pool-hours"),
        ((*PERIOD, "--gpus", "4"), "--price-per-gpu-hour"),
        ((*TWO_DAYS, "--pool-hours", "9"), "--gpus"),
        ((*TWO_DAYS, "--currency", "XXX"), "--currency"),
        ((*TWO_DAYS, "--operations-cost", "-1"), "--operations-cost"),
        ((*TWO_DAYS, "--by", "colour"), "--by"),
        ((*TWO_DAYS, "--coefficient", "a0"), "--coefficient"),
        ((*TWO_DAYS, "--coefficient", "a0=1", "--coefficient", "a0=2"), "--coefficient"),
        ((*TWO_DAYS, "--coefficient", "batch=0"), "--coefficient"),
        ((*TWO_DAYS, "--profile", "tpu"), "--profile"),
        ((*TWO_DAYS, "--hosted", "list:nobody"), "--hosted"),
        ((*TWO_DAYS, "--hosted-input", "1"), "--hosted-output"),
        ((*TWO_DAYS, "--hours-file", "/nowhere"), "--hours-file"),
        ((*TWO_DAYS, "--to", "2099-01-01T00:00:00Z"), "--to"),
        ((*TWO_DAYS, "--from", "2026-11-30T00:00:00Z"), "--from"),
        ((*TWO_DAYS, "--from", "1990-11-30T00:00:00Z"), "--from"),
        ((*TWO_DAYS, "--model", ""), "--model"),
    ],
)
def test_what_is_wrong_is_one_line(weir: Weir, options: tuple[str, ...], named: str) -> None:
    """With status 2, naming the option."""
    assert named in weir.refused(*options)
