"""The audit log is a chain: whoever writes is in it, and whatever is changed is found."""

import asyncio
import csv
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.administration import Administration, AuditFilters
from gateway.administration.audit_export import ExportFormat
from gateway.domain.audit_chain import Head
from gateway.errors import Unprocessable

ME = "cli:test"
PAGE = Path(__file__).parents[4] / "docs" / "audit.md"
OLD_RELEASE = """INSERT INTO audit_log (actor, action, subject_kind, subject_id, before, after)
    VALUES ('cli:old', 'key.limits', 'key', :key, '{"rpm": 1}', '{"rpm": 1.50}')"""


async def entries(administration: Administration, count: int = 8) -> None:
    """Some changes: `count` tenants, t0 first."""
    for number in range(count):
        await administration.create_tenant(ME, f"t{number}", "T")


async def tamper(engine: AsyncEngine, *statements: str) -> None:
    """What a superuser can do who goes round the triggers."""
    async with engine.begin() as db:
        await db.execute(text("SET LOCAL session_replication_role = replica"))
        for statement in statements:
            await db.execute(text(statement))


async def head_of(administration: Administration) -> Head:
    """The head of a chain that fits."""
    report = await administration.verify_audit()
    assert report.misfit is None
    assert report.head is not None
    return report.head


async def test_what_is_written_fits(administration: Administration) -> None:
    """All of it, from any entry on; each part says from where to go on."""
    await entries(administration)
    whole = await administration.verify_audit()
    assert (whole.checked, whole.misfit, whole.next_id) == (9, None, None)
    assert whole.head is not None
    later = await administration.verify_audit(4, expect=whole.head)
    assert (later.checked, later.head, later.misfit) == (6, whole.head, None)
    part = await administration.verify_audit(entries_max=4)
    assert (part.checked, part.next_id) == (4, 5)
    with pytest.raises(Unprocessable):
        await administration.verify_audit(99)


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (["UPDATE audit_log SET actor = 'cli:other' WHERE id = 4"], 4),
        (["UPDATE audit_log SET at = at + interval '1 us' WHERE id = 5"], 5),
        (['UPDATE audit_log SET after = after || \'{"name": "U"}\' WHERE id = 6'], 6),
        (["UPDATE audit_log SET tenant_id = NULL WHERE id = 6"], 6),
        (["DELETE FROM audit_log WHERE id = 4"], 5),
        (["DELETE FROM audit_log WHERE id = 1"], 2),
        (
            [
                "UPDATE audit_log SET id = -3 WHERE id = 3",
                "UPDATE audit_log SET id = 3 WHERE id = 4",
                "UPDATE audit_log SET id = 4 WHERE id = -3",
            ],
            3,
        ),
    ],
    ids=["edit", "time", "content", "tenant", "middle", "beginning", "swap"],
)
async def test_what_was_changed_is_found(
    administration: Administration, engine: AsyncEngine, statements: list[str], found: int
) -> None:
    """The first entry that does not fit is named."""
    await entries(administration)
    await tamper(engine, "ALTER TABLE audit_log ALTER id DROP IDENTITY", *statements)
    report = await administration.verify_audit()
    assert report.misfit is not None
    assert (report.misfit.id, report.next_id) == (found, None)


async def test_a_tail_that_is_cut_off_is_found_by_a_head(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Without it what is left fits; an entry that was put there instead is another."""
    await entries(administration)
    head = await head_of(administration)
    await tamper(engine, "DELETE FROM audit_log WHERE id >= 8")
    assert (await administration.verify_audit()).misfit is None
    gone = await administration.verify_audit(expect=head)
    assert gone.misfit is not None
    assert (gone.misfit.id, gone.misfit.why) == (9, "it is gone")
    await administration.create_tenant(ME, "u8", "T")
    await administration.create_tenant(ME, "u9", "T")
    other = await administration.verify_audit(expect=head)
    assert other.misfit is not None
    assert (other.misfit.id, other.misfit.why) == (9, "it is another than the one expected")


async def test_every_writer_is_chained_in_the_order_of_ids(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Twenty writers that hold no lock of the directory, of the release before: no id twice, no
    gap, and the chain fits."""

    async def write(number: int) -> None:
        async with engine.begin() as db:
            await db.execute(text(OLD_RELEASE), {"key": f"k{number}"})

    await asyncio.gather(*map(write, range(20)), entries(administration, 3))
    report = await administration.verify_audit()
    assert (report.checked, report.misfit) == (24, None)
    assert report.head is not None
    assert report.head.id == 24


async def test_a_made_up_hash_or_id_does_not_count(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Nor a time, a tenant or a form."""
    async with engine.begin() as db:
        await db.execute(
            text("""INSERT INTO audit_log
            (id, at, actor, action, subject_kind, subject_id, tenant_id, form, hash)
            OVERRIDING SYSTEM VALUE
            VALUES (77, '2020-01-01Z', 'a', 'b', 'model', 'c', 'acme', 9, '\\x00')""")
        )
    entry = (await administration.list_audit(1)).items[0]
    assert (entry.id, entry.tenant_id) == (2, None)
    assert entry.at_ms > 1_700_000_000_000
    assert (await administration.verify_audit()).misfit is None


async def test_an_entry_has_the_tenant_that_its_subject_belongs_to(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Also where the entry itself does not say it, and the writer is of the release before."""
    await administration.create_tenant(ME, "acme", "Acme")
    await administration.create_tenant(ME, "globex", "Globex")
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    await administration.put_key_limits(ME, key.id, {"tpm": 9})
    async with engine.begin() as db:
        await db.execute(text(OLD_RELEASE), {"key": key.id})
    page = await administration.list_audit(filters=AuditFilters(tenant_id="acme"))
    assert [entry.action for entry in page.items] == [
        "key.limits", "key.limits", "key.create", "tenant.create",
    ]  # fmt: skip
    assert page.items[0].change_id is None
    changes = {entry.change_id for entry in page.items[1:]}
    assert len(changes) == 3


async def test_a_rotation_is_one_change_of_two_entries(administration: Administration) -> None:
    """They share the id of the change, which finds both."""
    await administration.create_tenant(ME, "acme", "Acme")
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    await administration.rotate_key(ME, key.id, grace_ms=0)
    change_id = (await administration.list_audit(1)).items[0].change_id
    page = await administration.list_audit(filters=AuditFilters(change_id=change_id))
    assert [entry.action for entry in page.items] == ["key.rotate", "key.create"]


async def test_the_pages_script_checks_an_export(
    administration: Administration, engine: AsyncEngine, tmp_path: Path
) -> None:
    """The script of docs/audit.md finds the head that `weir audit verify` finds, over texts that
    spreadsheets and careless readers stumble on; and the entry that was changed."""
    actors = ("=1+1", "'quoted", 'a "b",\r\nc', "ünï ⚙", "\ttab", "-1", "@a", "+1")
    for number, actor in enumerate(actors):
        await administration.create_tenant(actor, f"t{number}", 'ünï "⚙"')
    async with engine.begin() as db:
        await db.execute(text(OLD_RELEASE), {"key": "=HYPERLINK()"})
    head = await head_of(administration)
    script, file = tmp_path / "check.py", tmp_path / "audit.csv"
    script.write_text(script_of(PAGE.read_text()))
    file.write_bytes(await exported(administration, ExportFormat.CSV))
    said = await asyncio.to_thread(run, script, file)
    assert (said.returncode, said.stdout.split()) == (0, ["fits", f"{head.id}:{head.hash}"])
    assert cells_that_begin_a_formula(csv.reader(file.open(newline=""))) == []
    await tamper(engine, "UPDATE audit_log SET actor = 'b' WHERE id = 3")
    file.write_bytes(await exported(administration, ExportFormat.CSV))
    said = await asyncio.to_thread(run, script, file)
    assert said.returncode == 1
    assert "entry 3 " in said.stderr


def run(script: Path, file: Path) -> subprocess.CompletedProcess[str]:
    """The script, given the file."""
    command = [sys.executable, str(script), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def script_of(page: str) -> str:
    """The page's script in Python; the page promises at most fifteen lines."""
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    assert len(found[1].splitlines()) <= 15
    return found[1]


async def exported(administration: Administration, wanted: ExportFormat) -> bytes:
    """The whole log as a file."""
    pieces = administration.export_audit(wanted, AuditFilters())
    return b"".join([piece async for piece in pieces])


def cells_that_begin_a_formula(rows: Iterable[list[str]]) -> list[str]:
    """Cells that a spreadsheet would work out."""
    return [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t"))]
