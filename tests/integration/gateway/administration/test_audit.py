"""The audit log, read in pages and by filters."""

import pytest

from gateway.administration import Administration, AuditFilters
from gateway.errors import Unprocessable


async def test_the_latest_come_first_in_pages(administration: Administration) -> None:
    """Following the cursors yields every entry once."""
    for number in range(5):
        await administration.create_tenant("cli:test", f"t{number}", "T")
    first = await administration.list_audit(4)
    rest = await administration.list_audit(4, first.next_cursor)
    subjects = [entry.subject_id for entry in first.items + rest.items]
    assert subjects == ["t4", "t3", "t2", "t1", "t0", "m"]
    assert rest.next_cursor is None


async def test_filters_narrow(administration: Administration) -> None:
    """Each alone and all together."""
    await administration.create_tenant("cli:one", "acme", "Acme")
    await administration.update_tenant("cli:two", "acme", name="Acme Ltd")
    await administration.create_tenant("cli:two", "globex", "Globex")

    async def found(**wanted: str) -> list[tuple[str, str]]:
        page = await administration.list_audit(filters=AuditFilters(**wanted))
        return [(entry.action, entry.subject_id) for entry in page.items]

    assert await found(actor="cli:one") == [("tenant.create", "acme")]
    assert await found(action="tenant.update") == [("tenant.update", "acme")]
    assert await found(subject_kind="model") == [("model.register", "m")]
    assert await found(subject_id="acme", actor="cli:two") == [("tenant.update", "acme")]
    assert await found(subject_id="nobody") == []


async def test_a_foreign_cursor_is_refused(administration: Administration) -> None:
    """Unprocessable, whatever it decodes to."""
    for cursor in ("", "%", "YWJj", "LTE", "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA"):
        with pytest.raises(Unprocessable) as refused:
            await administration.list_audit(cursor=cursor)
        assert refused.value.param == "cursor"
