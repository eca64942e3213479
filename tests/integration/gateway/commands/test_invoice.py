"""`weir invoice`, `weir credit-note` and `weir seller`, on a real Postgres."""

import asyncio
import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from invoice_world import InvoiceWorld
from weir_command import Weir

from gateway.adapters.postgres import async_engine

OVERRIDE = ("--override", "there is no Redis in this test")
SELLER = ("seller", "set", "--name", "Weir Operations GmbH", "--country", "DE")


@pytest.fixture
def with_usage(weir: Weir, database_url: str) -> Weir:
    """The command, on a database with a price, the tenant `acme`, taxed at 19 %, and one request in
    January: 2.00 for the prompt, 0.10 for what was cached, 4.94 for the output."""
    asyncio.run(_use(database_url))
    weir.ok("tenant", "create", "acme")
    weir.ok("tenant", "billing", "acme", "--tax-rate", "19", "--tax-name", "VAT")
    return weir


async def _use(database_url: str) -> None:
    engine = async_engine(database_url, pooled=False)
    world = InvoiceWorld(engine)
    await world.price()
    await world.use(
        "2026-01-15T12:00:00Z",
        prompt_tokens=3_000_000,
        cached_prompt_tokens=1_000_000,
        output_tokens=1_234_567,
    )
    await world.roll_up()
    await engine.dispose()


def issued(weir: Weir) -> Any:
    """January's invoice."""
    weir.json(*SELLER)
    weir.json("invoice", "draft", "acme", "2026-01")
    return weir.json("invoice", "issue", "acme/2026-01", *OVERRIDE)


def test_a_month_becomes_an_invoice_and_files(
    with_usage: Weir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drafted, issued and exported, by the tenant's month, the number or the id: every file says
    one total, and is the same bytes each time."""
    weir = with_usage
    weir.json(*SELLER)
    drafted = weir.json("invoice", "draft", "acme", "2026-01")
    assert (drafted["status"], drafted["number"], drafted["total"]) == ("draft", None, "8.38")
    done = weir.json("invoice", "issue", "acme/2026-01", *OVERRIDE)
    assert done["id"] == drafted["id"]
    assert weir.json("invoice", "issue", done["number"]) == done
    assert done["override"]["reason"] == OVERRIDE[1]
    monkeypatch.chdir(tmp_path)
    told = weir.json("invoice", "export", "acme/2026-01")
    assert told["file"] == f"{done['number']}.pdf"
    assert told["content_hash"] == done["content_hash"]
    first = Path(told["file"]).read_bytes()
    assert "8.38" in pypdfium2.PdfDocument(first)[0].get_textpage().get_text_range()
    weir.ok("invoice", "export", done["id"], "-o", "again.pdf")
    assert Path("again.pdf").read_bytes() == first
    table = weir.ok("invoice", "export", done["number"], "--format", "csv", "--output", "-")
    rows = csv.DictReader(io.StringIO(table, newline=""))
    assert sum(Fraction(row["amount"]) for row in rows) == Fraction("8.38")
    document = json.loads(weir.ok("invoice", "export", done["id"], "--format", "json", "-o", "-"))
    assert document["total"] == "8.38"
    entries = weir.json("audit", "list", "--subject-kind", "invoice")["items"]
    assert [entry["action"] for entry in entries] == ["invoice.issue", "invoice.draft"]
    assert all(entry["actor"].startswith("cli:") for entry in entries)


def test_people_read_an_invoice_as_a_table(with_usage: Weir) -> None:
    weir = with_usage
    shown = weir.ok("invoice", "draft", "acme", "2026-01").splitlines()
    assert ["total", "8.38"] in [line.split() for line in shown]
    heading = next(line for line in shown if line.startswith("POSITION"))
    assert heading.split()[-4:] == ["QUANTITY", "UNIT_PRICE", "PRICE_PER", "AMOUNT"]
    assert shown[-1].split()[-5:] == ["output_tokens", "1234567", "4.00", "1000000", "4.94"]
    assert weir.ok("invoice", "show", "acme/2026-01").splitlines() == shown
    listed = weir.ok("invoice", "list", "--status", "draft", "--tenant", "acme").splitlines()
    assert listed[0].split()[:3] == ["NUMBER", "STATUS", "TENANT_ID"]
    assert listed[1].split()[1:6] == ["draft", "acme", "2026-01", "USD", "8.38"]
    assert weir.json("invoice", "list", "--period", "2026-02")["items"] == []


def test_what_is_in_the_way_is_one_line(with_usage: Weir) -> None:
    """Without a seller, and without a Redis to ask what runs; a draft stays a draft."""
    weir = with_usage
    weir.ok("invoice", "draft", "acme", "2026-01")
    refused = weir.refused("invoice", "issue", "acme/2026-01")
    assert "nobody has said who sells" in refused
    assert "no Redis" in refused
    weir.ok(*SELLER)
    assert "no Redis" in weir.refused("invoice", "issue", "acme/2026-01")
    assert weir.json("invoice", "show", "acme/2026-01")["status"] == "draft"


def test_payments_and_credit_notes(with_usage: Weir, tmp_path: Path) -> None:
    """A line is credited, a part is paid, and the rest is credited: the invoice is settled."""
    weir = with_usage
    done = issued(weir)
    note = weir.json("credit-note", "issue", done["number"], "--line", "3=4.00", "--reason", "r")
    assert (note["total"], note["lines"][0]["position"]) == ("4.76", 3)
    paid = ("--amount", "1.00", "--received-on", "2026-02-10", "--reference", "bank-1")
    assert weir.json("invoice", "pay", done["number"], *paid)["invoice"]["paid"] == "1.00"
    assert ["status", "issued"] in [
        line.split() for line in weir.ok("invoice", "pay", done["number"], *paid).splitlines()
    ]
    rest = weir.json("credit-note", "issue", "acme/2026-01", "--reason", "the rest")
    assert Fraction(note["total"]) + Fraction(rest["total"]) == Fraction(done["total"])
    assert weir.json("invoice", "show", done["id"])["status"] == "paid"
    assert "payments or credit notes" in weir.refused(
        "invoice", "void", done["number"], "--reason", "x"
    )
    listed = weir.json("credit-note", "list", "--invoice", done["number"])["items"]
    assert [each["number"] for each in listed] == [rest["number"], note["number"]]
    assert weir.json("credit-note", "show", note["number"]) == note
    shown = weir.ok("credit-note", "show", note["id"]).splitlines()
    assert shown[-1].split() == ["3", "smollm2-135m", "output_tokens", "4.94", "4.00"]
    path = tmp_path / "note.pdf"
    weir.ok("credit-note", "export", note["number"], "-o", str(path))
    assert "4.76" in pypdfium2.PdfDocument(path.read_bytes())[0].get_textpage().get_text_range()


def test_a_payment_is_taken_back(with_usage: Weir) -> None:
    """What is too much is asked for and shown; taken back, the invoice is owed again."""
    weir = with_usage
    done = issued(weir)
    paid = ("--amount", "9.00", "--received-on", "2026-02-10", "--reference", "bank-1")
    refused = weir.refused("invoice", "pay", done["number"], *paid)
    assert "only 8.38 USD of it are outstanding" in refused
    told = [
        line.split()
        for line in weir.ok("invoice", "pay", done["id"], *paid, "--may-overpay").splitlines()
    ]
    assert ["overpays", "yes"] in told
    assert ["overpaid", "0.62"] in told
    listed = weir.ok("invoice", "list").splitlines()
    assert listed[0].split()[5:8] == ["TOTAL", "OUTSTANDING", "OVERPAID"]
    assert listed[1].split()[5:8] == ["8.38", "0.00", "0.62"]
    back = weir.json("invoice", "reverse", "acme/2026-01", "bank-1", "--reason", "not ours")
    assert (back["amount"], back["reason"]) == ("-9.00", "not ours")
    shown = weir.ok("invoice", "show", done["number"])
    assert ["overpaid", "0.00"] in [line.split() for line in shown.splitlines()]
    assert shown.splitlines()[-2].split()[:4] == ["bank-1", "2026-02-10", "9.00", "yes"]
    assert "no such payment" in weir.refused(
        "invoice", "reverse", done["number"], "bank-2", "--reason", "x"
    )
    actions = [each["action"] for each in weir.json("audit", "list")["items"]]
    assert actions[:2] == ["invoice.payment_taken_back", "invoice.payment"]


def test_a_void_invoice_frees_its_month(with_usage: Weir) -> None:
    weir = with_usage
    done = issued(weir)
    voided = weir.json("invoice", "void", done["number"], "--reason", "wrong address")
    assert (voided["status"], voided["void_reason"]) == ("void", "wrong address")
    assert "acme/2026-01" in weir.refused("invoice", "show", "acme/2026-01")
    second = weir.json("invoice", "draft", "acme", "2026-01")
    assert (second["total"], second["id"] != done["id"]) == (done["total"], True)


def test_the_seller_is_changed_by_name(weir: Weir) -> None:
    """What is named changes; an empty text takes it away."""
    assert "seller set" in weir.refused("seller", "show")
    assert "--country" in weir.refused("seller", "set", "--name", "Weir GmbH")
    first = weir.json(*SELLER, "--bank", "IBAN DE02", "--bank", "BIC X", "--tax-id", "DE1")
    assert (first["bank"], first["tax_id"], first["invoice_prefix"]) == (
        ["IBAN DE02", "BIC X"],
        "DE1",
        "INV",
    )
    second = weir.json("seller", "set", "--tax-id", "", "--time-zone", "Europe/Berlin")
    assert second == {**first, "tax_id": None, "time_zone": "Europe/Berlin"}
    assert weir.json("seller", "show") == second
    assert '["IBAN DE02","BIC X"]' in weir.ok("seller", "show")
    assert len(weir.json("audit", "list", "--subject-kind", "seller")["items"]) == 2


def test_what_is_wrong_is_one_line(with_usage: Weir, tmp_path: Path) -> None:
    """Exit status 2, naming what is at fault; 1 where a file cannot be written."""
    weir = with_usage
    done = issued(weir)
    number = done["number"]
    paid = ("--received-on", "2026-02-10", "--reference", "b")
    credit = ("credit-note", "issue", number, "--reason", "r")
    for arguments, named in (
        (("invoice", "draft", "acme", "2026-13"), "period"),
        (("invoice", "draft", "acme", "January"), "period"),
        (("invoice", "draft", "nobody", "2026-01"), "nobody"),
        (("invoice", "draft", "acme", "2026-01", "--currency", "ZZZ"), "currency"),
        (("invoice", "draft", "acme"), "MONTH"),
        (("invoice", "show", "INV-1999-000001"), "INV-1999-000001"),
        (("invoice", "show", "acme/2031-01"), "acme/2031-01"),
        (("invoice", "void", number), "--reason"),
        (("invoice", "void", number, "--reason", " "), "reason"),
        (("invoice", "pay", number, "--amount", "1.001", *paid), "amount"),
        (("invoice", "pay", number, "--amount", "9.00", *paid), "8.38 USD"),
        (("invoice", "pay", number, "--amount", "1", "--received-on", "soon"), "--received-on"),
        (("invoice", "list", "--status", "lost"), "--status"),
        (("invoice", "list", "--cursor", "x"), "cursor"),
        (("invoice", "export", number, "--format", "xml"), "--format"),
        ((*credit, "--line", "1"), "--line"),
        ((*credit, "--line", "x=1"), "--line"),
        ((*credit, "--line", "1=2.01"), "2.00 USD left"),
        ((*credit, "--line", "9=1.00"), "no line 9"),
        (("credit-note", "show", "CN-1999-000001"), "CN-1999-000001"),
        (("seller", "set", "--country", "Germany"), "country"),
        (("seller", "set", "--credit-note-prefix", "INV"), "credit_note_prefix"),
    ):
        assert named in weir.refused(*arguments), arguments
    folder = str(tmp_path / "nowhere" / "x.pdf")
    assert "nowhere" in weir.refused("invoice", "export", number, "-o", folder, status=1)
    assert weir.json("invoice", "show", number) == done
