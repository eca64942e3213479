"""`weir audit` and limits of several tenants, on a database."""

import asyncio

import asyncpg
import msgspec
import pytest
from weir_command import Weir


@pytest.fixture(autouse=True)
def tenants(weir: Weir) -> None:
    """Three of them."""
    for name in ("acme", "globex", "initech"):
        weir.ok("tenant", "create", name)


async def tamper(database_url: str) -> None:
    """What a superuser can do who goes round the triggers."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("SET session_replication_role = replica")
    await connection.execute("UPDATE audit_log SET actor = 'cli:other' WHERE id = 2")
    await connection.close()


def test_the_chain_is_checked(weir: Weir, database_url: str) -> None:
    """Status 0 and a head; with another head, and where an entry was changed, 1 and its id."""
    said = weir.ok("audit", "verify")
    assert said.startswith("3 entries fit; head 3:")
    head = said.split()[-1]
    assert weir.json("audit", "verify", "--from-id", "2", "--expect", head)["checked"] == 2
    later = f"4:{head[2:]}"
    assert weir.run("audit", "verify", "--expect", later)[0] == 1
    asyncio.run(tamper(database_url))
    status, out, err = weir.run("audit", "verify")
    assert (status, out) == (1, "")
    assert err.startswith("entry 2 does not fit: ")
    assert weir.run("audit", "verify", "--json")[0] == 1
    assert "there is no entry 9" in weir.refused("audit", "verify", "--from-id", "9")


def test_entries_as_files(weir: Weir) -> None:
    """Narrowed as the list is."""
    lines = weir.ok("audit", "export", "--format", "jsonl", "--tenant", "globex").splitlines()
    assert [msgspec.json.decode(line)["subject_id"] for line in lines] == ["globex"]
    assert len(weir.ok("audit", "export", "--action", "tenant.*").splitlines()) == 4
    assert weir.ok("audit", "export", "--until", "2020-01-01T00:00:00Z").count("\n") == 1


def test_b11_limits_of_several_tenants(weir: Weir) -> None:
    """B11: of those that are named or of all, each with its entry; all or none."""
    status, out, _ = weir.run("limit", "set", "acme", "globex", "--tpm", "9", "--json")
    done = msgspec.json.decode(out)
    assert status == 0
    assert [item["changed"] for item in done["items"]] == [True, True]
    page = weir.json("audit", "list", "--change", done["change_id"])
    assert [entry["subject_id"] for entry in page["items"]] == ["globex", "acme"]
    _, said, _ = weir.run("limit", "set", "--all", "--tpm", "9")
    assert said.startswith("changed 1 tenants, 2 had these limits already\n")
    assert "nobody" in weir.refused("limit", "set", "acme", "nobody", "--tpm", "10")
    assert weir.json("limit", "show", "acme")["tpm"] == 9
    assert "--all" in weir.refused("limit", "set", "acme", "--all", "--tpm", "10")
