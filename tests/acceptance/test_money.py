"""From the running demo: a month that ended becomes an invoice, and every way of adding it up comes
to the same total. docs/billing.md and README.md are run as they stand."""

import csv
import io
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import openai
import pypdfium2
import pytest
from weir_dev import Reply, WeirDev, weir_dev

from billing.domain.invoicing.periods import Month, month_of_instant, next_month, previous
from billing.domain.invoicing.simulated import SIMULATED_NOTE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "billing.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\.venv/bin/)?weir ((?:.|\\\n)*?)$(?<!\\)", re.MULTILINE)
OPTIONS = ("--engine", "simulated", "--gateways", "2", "--hosted", "simulated", "--history")
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """A demonstration with a month to invoice."""
    with weir_dev(tmp_path_factory.mktemp("demo"), *OPTIONS) as system:
        yield system


@pytest.fixture(scope="module")
def last_month() -> Month:
    """The one that the demonstration has."""
    return previous(this_month())


def this_month() -> Month:
    return month_of_instant(datetime.now(UTC), "UTC")


def of_last_month(text: str, month: Month, tenant: str = "acme") -> str:
    """What the pages say of October, of the month that the demonstration has."""
    following = next_month(month).name
    text = text.replace("2026-11-01", f"{following}-01").replace("2026-10", month.name)
    return text.replace("acme", tenant)


def weir(system: WeirDev, arguments: list[str], folder: Path) -> str:
    """What a command prints, run in `folder`."""
    ran = subprocess.run(
        [sys.executable, "-m", "gateway", *arguments, "--data-dir", str(system.data_dir)],
        capture_output=True, text=True, check=False, timeout=WITHIN_S, cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "TERM": "dumb"},
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, ""), (arguments, ran.stdout, ran.stderr)
    return ran.stdout


def finance(system: WeirDev, method: str, path: str, body: Any = None) -> Reply:
    """A request with the token of the seeded finance user."""
    token = system.ready["users"]["finance"]["token"]
    return system.request(method, system.gateway() + path, body, token=token)


def blocks(language: str) -> list[str]:
    """The page's fenced blocks of a language."""
    return [content for name, content in BLOCK.findall(PAGE) if name == language]


def commands(text: str) -> list[list[str]]:
    """Every `weir` command of a text, as a shell would split it."""
    return [shlex.split(each.replace("\\\n", " ")) for each in COMMAND.findall(text)]


async def sums(system: WeirDev, month: Month, tenant: str) -> tuple[Decimal, Decimal]:
    """What the page's statements give: rounded by line, and exact."""
    found = []
    for statement in blocks("sql"):
        (row,) = await system.sql(of_last_month(statement, month, tenant))
        found.append(Decimal(row[0]))
    rounded, exact = found
    return rounded, exact


async def test_the_same_total_however_it_is_added_up(
    demo: WeirDev, last_month: Month, tmp_path: Path
) -> None:
    """One command each, as README has them: the PDF's total, the CSV's sum, the document, the API,
    `SELECT sum(...)` over the rows and OpenAI's costs are one amount. Nothing of it is hosted:
    seeded tenants keep their data here, and history is made before anybody can change that. Lines
    of both are on the invoice of tests/integration/gateway/test_dev_history.py."""
    readme = (ROOT / "README.md").read_text()
    for arguments in commands(of_last_month(readme, last_month)):
        if arguments[0] == "invoice":
            weir(demo, arguments, tmp_path)
    (invoice,) = finance(
        demo, "GET", f"/billing/v1/invoices?tenant_id=acme&period={last_month.name}"
    ).json["items"]
    number, total = invoice["number"], Decimal(invoice["total"])
    assert (invoice["status"], invoice["simulated"]) == ("issued", True)
    assert total > 1
    document = pypdfium2.PdfDocument((tmp_path / f"{number}.pdf").read_bytes())
    printed = "".join(page.get_textpage().get_text_bounded() for page in document)
    assert f"{total:.2f}" in printed
    assert number in printed
    assert SIMULATED_NOTE in printed
    rows = list(csv.DictReader(io.StringIO((tmp_path / f"{number}.csv").read_text())))
    assert sum(Decimal(row["amount"]) for row in rows) == total
    rounded, exact = await sums(demo, last_month, "acme")
    assert rounded == total
    assert exact == sum(Decimal(row["amount_exact"]) for row in rows if row["row"] == "line")
    rows = [row for row in rows if row["row"] == "line"]
    assert {row["class"] for row in rows} == {"interactive", "batch"}
    assert {row["provider"] for row in rows} == {"self"}
    assert "cached_input_tokens" in {row["unit"] for row in rows}
    shown = finance(demo, "GET", f"/billing/v1/invoices/{number}.json").json
    assert (Decimal(shown["total"]), shown["notes"]) == (total, [SIMULATED_NOTE])
    for ending in ("pdf", "csv"):
        served = finance(demo, "GET", f"/billing/v1/invoices/{number}.{ending}").raw
        assert served == (tmp_path / f"{number}.{ending}").read_bytes()
    assert costs(demo, last_month) == exact
    assert told_by_psql(demo, last_month) == exact


def told_by_psql(system: WeirDev, month: Month) -> Decimal:
    """What the page's own shell command prints."""
    (shell,) = blocks("bash")
    shell = of_last_month(shell, month).replace(".weir", str(system.data_dir))
    ran = subprocess.run(
        ["/bin/bash", "-c", shell], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return Decimal(ran.stdout.splitlines()[2])


def costs(system: WeirDev, month: Month) -> Decimal:
    """What `/v1/organization/costs` says to the tenant's key."""
    start, end = int(month.start.timestamp()), int(month.end.timestamp())
    url = system.gateway() + f"/v1/organization/costs?start_time={start}&end_time={end}&limit=31"
    page = json.loads(system.request("GET", url, token=system.key("acme")).raw, parse_float=Decimal)
    assert not page["has_more"]
    return sum(
        (Decimal(each["amount"]["value"]) for bucket in page["data"] for each in bucket["results"]),
        Decimal(0),
    )


async def test_the_pages_commands_run_as_they_stand(
    demo: WeirDev, last_month: Month, tmp_path: Path
) -> None:
    """Every fenced command of docs/billing.md, in order, of the other tenant: with a seller and
    tax, and still what the rows say."""
    for block in blocks(""):
        for arguments in commands(of_last_month(block, last_month, "globex")):
            told = weir(demo, arguments, tmp_path)
            assert told, arguments
    (invoice,) = finance(demo, "GET", "/billing/v1/invoices?tenant_id=globex").json["items"]
    subtotal, tax, total = (Decimal(invoice[each]) for each in ("subtotal", "tax", "total"))
    rounded, _ = await sums(demo, last_month, "globex")
    assert (invoice["status"], subtotal, total) == ("issued", rounded, subtotal + tax)
    assert tax == (subtotal * Decimal("0.19")).quantize(Decimal("0.01"), ROUND_HALF_UP)
    listed = ["usage", "list", "--until", f"{last_month.end:%Y-%m-%dT%H:%M:%SZ}", "--json"]
    records = json.loads(weir(demo, listed, tmp_path))["items"]
    assert {tuple(each["usage_flags"]) for each in records} == {("simulated",)}
    assert "simulated: 100 of these\n" in weir(demo, listed[:-1], tmp_path)


def test_what_is_used_now_is_on_the_next_invoice(demo: WeirDev, tmp_path: Path) -> None:
    """This month's real requests, through OpenAI's SDK: its draft has them to the token, says
    nothing of simulated usage, and cannot be issued before the month is over."""
    client = openai.OpenAI(base_url=demo.gateway() + "/v1", api_key=demo.key("acme"))
    month = this_month()
    for index in range(3):
        answer = client.chat.completions.create(
            model=demo.model,
            messages=[{"role": "user", "content": "Tell me of rivers. " * 10}],
            max_tokens=8 + index,
        )
        assert answer.usage is not None
    draft = {"tenant_id": "acme", "period": month.name}
    deadline = time.monotonic() + WITHIN_S
    while True:
        drafted = finance(demo, "POST", "/billing/v1/invoices", draft).json
        if drafted["row_count"] == 3:
            break
        assert time.monotonic() < deadline, drafted
    assert (drafted["status"], drafted["number"], drafted["simulated"]) == ("draft", None, False)
    units = {line["unit"]: int(line["quantity"]) for line in drafted["lines"]}
    assert units["output_tokens"] == 8 + 9 + 10
    assert {line["kind"] for line in drafted["lines"]} == {"usage"}
    refused = finance(demo, "POST", f"/billing/v1/invoices/{drafted['id']}/issue")
    assert refused.status == 409
    in_the_way = {each["obstacle"]: each["can_be_overridden"] for each in refused.json["blockers"]}
    assert in_the_way["period_open"] is False
