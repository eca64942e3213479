"""`weir price import`: a whole file or nothing, looked at first."""

import asyncio
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from usage_examples import a_record, an_admission
from weir_command import Weir

from billing.postgres.rollups import roll_up
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine

ROOT = Path(__file__).resolve().parents[4]
MODEL = ("model", "add", "m", "--context-tokens", "2048", "--max-output-tokens", "512")
FILE = """[[price]]
model = "m"
input = "1.00"
output = "4.00"

[[price]]
model = "m"
tenant_id = "acme"
input = "0.50"
output = "2.00"
request = "0.01"
"""


@pytest.fixture
def with_tenant(weir: Weir) -> Weir:
    """The command, on a database that knows the model `m` and the tenant `acme`."""
    weir.ok(*MODEL)
    weir.ok("tenant", "create", "acme", "--name", "Acme")
    return weir


def written(folder: Path, text: str, name: str = "prices.toml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_file_is_taken_whole_and_twice_is_once(with_tenant: Weir, tmp_path: Path) -> None:
    """Each line says whether it was new; audited one by one."""
    weir, file = with_tenant, written(tmp_path, FILE)
    first = weir.json("price", "import", file)
    assert [(each["line"], each["is"]) for each in first["lines"]] == [(1, "new"), (6, "new")]
    assert (first["written"], first["effect"]) == (True, None)
    second = weir.json("price", "import", file)
    assert [each["is"] for each in second["lines"]] == ["same", "same"]
    changed = weir.json("price", "import", written(tmp_path, FILE.replace("4.00", "5.00")))
    assert [each["is"] for each in changed["lines"]] == ["changed", "same"]
    stored = weir.json("price", "list")["items"]
    assert len(stored) == 3
    assert stored[0] == {k: v for k, v in changed["lines"][0].items() if k not in ("line", "is")}
    audit = weir.json("audit", "list", "--subject-kind", "price")["items"]
    assert [entry["after"]["id"] for entry in audit] == [price["id"] for price in stored]
    assert audit[0]["before"] == stored[2]


def test_the_page_and_the_readme_say_what_works(weir: Weir, tmp_path: Path) -> None:
    """The file of prices in docs/http-api.md, and every command on prices in README.md."""
    weir.ok("model", "add", "smollm2-135m", *MODEL[3:])
    weir.ok("tenant", "create", "acme", "--name", "Acme")
    (example,) = re.findall(
        r"```\n(currency = .*?)```", (ROOT / "docs/http-api.md").read_text(), re.DOTALL
    )
    view = weir.json("price", "import", written(tmp_path, example), "--dry-run")
    assert [each["is"] for each in view["lines"]] == ["new", "new"]
    commands = re.findall(
        r"^\.venv/bin/weir (price .*)$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert len(commands) == 6
    for command in commands:
        weir.ok(*command.split())


def test_a_csv_is_as_good(with_tenant: Weir, tmp_path: Path) -> None:
    table = "model,tenant_id,input,output\nm,,1.00,4.00\nm,acme,0.50,2.00\n"
    said = with_tenant.ok("price", "import", written(tmp_path, table, "prices.csv"))
    assert [line.split()[1:5] for line in said.splitlines()[1:]] == [
        ["new", "m", "self", "-"],
        ["new", "m", "self", "acme"],
    ]


def test_a_bad_line_keeps_all_of_them_out(with_tenant: Weir, tmp_path: Path) -> None:
    """Every bad line is named with its number, also those that only the store can tell; exit
    status 2, and nothing is stored."""
    weir = with_tenant
    unknown = FILE.replace('"acme"', '"nobody"').replace('model = "m"\ninput', 'model = "n"\ninput')
    file = written(tmp_path, unknown)
    for dry in ((), ("--dry-run",)):
        status, out, err = weir.run("price", "import", file, *dry)
        assert (status, out) == (2, "")
        lines = err.splitlines()
        assert lines[0].startswith(f"{file}:1: model: there is no model n")
        assert lines[1].startswith(f"{file}:6: tenant_id: there is no tenant nobody")
        assert "2 faults" in lines[2]
    assert weir.json("price", "list")["items"] == []
    twice = written(tmp_path, FILE + FILE.partition("\n\n")[0])
    status, _, err = weir.run("price", "import", twice)
    assert (status, err.splitlines()[0]) == (2, f"{twice}:12: an earlier line says the same")


@pytest.mark.parametrize("name", ["prices.json", "none.toml"])
def test_what_is_no_such_file_is_refused(with_tenant: Weir, tmp_path: Path, name: str) -> None:
    written(tmp_path, "{}", "prices.json")
    assert name in with_tenant.refused("price", "import", str(tmp_path / name))


def test_a_dry_run_shows_the_effect_and_writes_nothing(
    with_tenant: Weir, tmp_path: Path, database_url: str
) -> None:
    """What every tenant's 30 days would cost, by hand: acme's 1,000 requests of 12 prompt and 20
    output tokens at 0.50 and 2.00 a million are 0.046, and 10 more for the requests; globex pays
    the list's 1.00 and 4.00."""
    weir = with_tenant
    weir.ok("tenant", "create", "globex", "--name", "Globex")
    asyncio.run(_use(database_url))
    file = written(tmp_path, FILE)
    view = weir.json("price", "import", file, "--dry-run")
    assert view["written"] is False
    assert [each["is"] for each in view["lines"]] == ["new", "new"]
    acme, globex = view["effect"]
    assert (acme["tenant_id"], acme["requests"], acme["cost"]) == ("acme", 1_000, "0.00")
    assert (acme["at_prices_before"], acme["unpriced_before"]) == ("0.00", 1_000)
    assert (acme["at_prices_after"], acme["unpriced_after"]) == ("10.046", 0)
    assert (globex["at_prices_after"], globex["difference"]) == ("0.092", "0.092")
    assert weir.json("price", "list")["items"] == []
    assert weir.json("audit", "list", "--subject-kind", "price")["items"] == []
    table = weir.ok("price", "import", file, "--dry-run").splitlines()
    assert table[-2].split()[1:7] == ["acme", "USD", "1000", "0.00", "0.00", "10.046"]


def test_a_dry_run_hides_no_rise_behind_a_later_price(
    with_tenant: Weir, tmp_path: Path, database_url: str
) -> None:
    """A hundredfold from tomorrow and as now in a year, by this file or by what is written: each
    instant has its effect. The 1,000 requests cost 0.092 as now; also where the list's price comes
    to a tenant only when its own ends."""
    weir = with_tenant
    weir.ok("tenant", "create", "globex", "--name", "Globex")
    now, dear = ("--input", "1.00", "--output", "4.00"), 'input = "100"\noutput = "400"\n'
    weir.ok("price", "set", "m", *now)
    weir.ok("price", "set", "m", "--tenant", "acme", *now)
    weir.ok(
        *("price", "withdraw", "m", "--tenant", "acme"),
        *("--effective-from", _in_days(100)),
    )
    asyncio.run(_use(database_url))
    line = '[[price]]\nmodel = "m"\n'
    rise = f'{line}{dear}effective_from = "{_in_days(1)}"\n'
    back = f'{line}input = "1"\noutput = "4"\neffective_from = "{_in_days(365)}"\n'
    effect = weir.json("price", "import", written(tmp_path, rise + back), "--dry-run")["effect"]
    assert [(e["at"][:10], e["tenant_id"], e["difference"]) for e in effect] == [
        (_in_days(1)[:10], "acme", "0.00"),
        (_in_days(1)[:10], "globex", "9.108"),
        (_in_days(100)[:10], "acme", "9.108"),
        (_in_days(365)[:10], "acme", "0.00"),
        (_in_days(365)[:10], "globex", "0.00"),
    ]


def _in_days(days: int) -> str:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)
    return at.isoformat().replace("+00:00", "Z")


async def _use(database_url: str) -> None:
    """A thousand requests each of acme and globex, and one of too long ago, rolled up."""
    now_ms = time.time_ns() // 1_000_000
    fields: dict[str, Any] = {"model": "m", "currency": "USD", "cached_prompt_tokens": 0}
    admissions = [
        an_admission(at_ms=now_ms - 3_600_000, tenant_id=tenant)
        for tenant in ("acme", "globex")
        for _ in range(1_000)
    ]
    admissions.append(an_admission(at_ms=now_ms - 32 * 86_400_000, tenant_id="acme"))
    rows = [
        JournaledRecord(a_record(each, **fields), "gw-1", 7, seq)
        for seq, each in enumerate(admissions, 1)
    ]
    engine = async_engine(database_url, pooled=False)
    async with engine.begin() as db:
        await insert_batch(db, rows)
    while True:
        async with engine.begin() as db:
            if not await roll_up(db):
                break
    await engine.dispose()
