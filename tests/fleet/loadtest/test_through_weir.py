"""`weir loadtest` on a whole Weir: its tenants and keys, and rows against what was told."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from weir_command import Weir
from weir_dev import WeirDev, weir_dev

from backend.loadtest.tenants import KEYS_FILE, TenantsNotMade, ensure_tenants
from backend.loadtest.weir_system import read_system

LOAD = (
    *("--rate", "12", "--duration", "3", "--warmup", "0.5", "--tenants", "3"),
    *("--prefixes", "none", "--suffix-lengths", "uniform:20-40"),
    *("--output-lengths", "uniform:4-12", "--json"),
)
BOTTLENECK = "was the bottleneck"
"""On a machine that is busy with other tests it may be; then the run says so and fails."""
ONE_TOKEN_MORE = """
CREATE FUNCTION one_token_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.output_tokens := NEW.output_tokens + 1; RETURN NEW; END $$;
CREATE TRIGGER one_token_more BEFORE INSERT ON usage_record
FOR EACH ROW WHEN (NEW.tenant_id = 'loadtest-t01') EXECUTE FUNCTION one_token_more()
"""
AS_BEFORE = "DROP TRIGGER one_token_more ON usage_record; DROP FUNCTION one_token_more"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """Two gateways before one simulated worker."""
    data_dir = tmp_path_factory.mktemp("loadtest-weir")
    with weir_dev(data_dir, "--engine", "simulated", "--gateways", "2") as running:
        yield running


@pytest.fixture
def weir(capsys: pytest.CaptureFixture[str]) -> Weir:
    """The command line."""
    return Weir(capsys)


ONE_ROW_MORE = """
CREATE FUNCTION one_row_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.request_id := overlay(NEW.request_id::text PLACING 'ffffffffffff' FROM 25)::uuid;
    INSERT INTO usage_record SELECT NEW.*;
    RETURN NULL;
END $$;
CREATE TRIGGER one_row_more AFTER INSERT ON usage_record
FOR EACH ROW WHEN (NEW.tenant_id = 'loadtest-t01' AND NEW.request_id::text NOT LIKE '%ffffffffffff')
EXECUTE FUNCTION one_row_more()
"""
NO_ROW_MORE = "DROP TRIGGER one_row_more ON usage_record; DROP FUNCTION one_row_more"


def loadtest(weir: Weir, system: WeirDev, *arguments: str) -> tuple[int, Any, str]:
    """Exit status, JSON and standard error."""
    status, out, err = weir.run("loadtest", "--data-dir", str(system.data_dir), *LOAD, *arguments)
    return status, json.loads(out), err


def admitted(system: WeirDev) -> dict[str, int]:
    """What each gateway admitted, as far as its journal is shipped."""
    query = "SELECT gateway_id, sum(admitted_count)::int FROM journal_watermark GROUP BY 1"
    return {row[0]: row[1] for row in asyncio.run(system.sql(query))}


def keys_of(system: WeirDev) -> dict[str, dict[str, Any]]:
    """The keys that are remembered."""
    found: dict[str, dict[str, Any]] = json.loads((system.data_dir / KEYS_FILE).read_text())
    return found


def test_every_finished_request_has_its_row(weir: Weir, system: WeirDev) -> None:
    """Of both gateways, of its own tenant and class, with the tokens that the client was told."""
    before = admitted(system)
    status, found, err = loadtest(weir, system)
    assert status == 0 or (status == 1 and BOTTLENECK in err), err
    (run,) = found["runs"]
    by_gateway = [count - before.get(name, 0) for name, count in admitted(system).items()]
    assert sum(by_gateway) == run["load"]["requests"]
    assert max(by_gateway) - min(by_gateway) <= 1
    assert run["target"]["description"].startswith("Weir at ")
    assert run["target"]["simulated"] is True
    assert run["target"]["step_times"] == "h100x4-70b-fp8"
    assert run["ends"] == {"ok": run["all"]["sent"]}
    assert {group["name"] for group in run["by_class"]} == {"interactive", "batch"}
    assert run["rows"]["match"]
    assert run["rows"]["written"] == run["load"]["requests"] > 20
    assert found["row_mismatches"] == []
    sent = run["load"]["requests"]
    assert f"rows: {sent} of {sent} finished requests have one; every row agrees" in err


def test_a_gateway_by_its_url_says_that_it_is_simulated(weir: Weir, system: WeirDev) -> None:
    """It is known for a Weir, so that answers are as long as planned; it is asked for no loads."""
    loadtest(weir, system)
    key = keys_of(system)["loadtest-t00"]["interactive"]["secret"]
    status, out, err = weir.run(
        "loadtest",
        "--url",
        system.gateway(),
        "--api-key",
        key,
        *LOAD,
        "--output-lengths",
        "fixed:9",
    )
    assert status == 0 or (status == 1 and BOTTLENECK in err), err
    (run,) = json.loads(out)["runs"]
    assert run["target"]["simulated"] is True
    assert run["target"]["description"] == f"Weir at {system.gateway()}"
    assert run["tokens"]["output_planned_share"] == 1
    assert run["fleet"]["workers"] == []


def test_a_row_that_says_something_else_makes_it_fail(weir: Weir, system: WeirDev) -> None:
    """A database that adds a token to one tenant's rows is found out, by request id."""
    asyncio.run(altered(system, ONE_TOKEN_MORE))
    try:
        status, found, err = loadtest(weir, system)
    finally:
        asyncio.run(altered(system, AS_BEFORE))
    assert status == 1
    assert "MISMATCHES" in err
    assert "the usage records differ from what the clients were told" in err
    assert 0 < len(found["row_mismatches"]) < found["runs"][0]["load"]["requests"]
    assert all("output_tokens is" in mismatch for mismatch in found["row_mismatches"])


def test_a_row_that_nobody_asked_for_makes_it_fail(weir: Weir, system: WeirDev) -> None:
    """A second row under another id: each request has its one row, and there is one too many."""
    asyncio.run(altered(system, ONE_ROW_MORE))
    try:
        status, found, err = loadtest(weir, system)
    finally:
        asyncio.run(altered(system, NO_ROW_MORE))
    assert status == 1
    assert found["row_mismatches"]
    for mismatch in found["row_mismatches"]:
        assert mismatch.startswith("loadtest-t01, ")
        assert "that no request of this run accounts for" in mismatch
    assert not found["runs"][0]["rows"]["match"]
    assert "the usage records differ" in err


async def altered(system: WeirDev, statements: str) -> None:
    """Run SQL as the owner of the database."""
    connection = await asyncpg.connect(system.ready["database_url"])
    try:
        await connection.execute(statements)
    finally:
        await connection.close()


async def test_tenants_and_keys_are_made_once_and_their_limits_each_time(system: WeirDev) -> None:
    """A key that was revoked is made again; the file is its owner's alone."""
    found = read_system(system.data_dir)
    first = await ensure_tenants(found, ["a"], limits=None, data_dir=system.data_dir)
    again = await ensure_tenants(found, ["a", "b"], limits={"rpm": 7}, data_dir=system.data_dir)
    assert again["a"] == first["a"]
    assert set(again) == {"a", "b"}
    assert system.admin("GET", "/admin/v1/tenants/loadtest-a/limits").json["rpm"] == 7
    revoked = keys_of(system)["loadtest-a"]["batch"]["id"]
    assert system.admin("DELETE", f"/admin/v1/keys/{revoked}").status == 200
    third = await ensure_tenants(found, ["a"], limits=None, data_dir=system.data_dir)
    assert third["a"]["interactive"] == first["a"]["interactive"]
    assert third["a"]["batch"] != first["a"]["batch"]
    assert system.admin("GET", "/admin/v1/tenants/loadtest-a/limits").json["rpm"] is None
    assert (system.data_dir / KEYS_FILE).stat().st_mode & 0o777 == 0o600


async def test_limits_that_weir_refuses_are_said(system: WeirDev) -> None:
    """With its own words."""
    found = read_system(system.data_dir)
    with pytest.raises(TenantsNotMade, match="422"):
        await ensure_tenants(found, ["a"], limits={"speed": 1}, data_dir=system.data_dir)


def test_limits_are_in_force_and_refusals_are_not_rows(weir: Weir, system: WeirDev) -> None:
    """Requests over them end `rate_limited`; the books still agree."""
    status, found, err = loadtest(weir, system, "--limits", '{"rpm": 3}')
    assert status == 0 or (status == 1 and BOTTLENECK in err), err
    (run,) = found["runs"]
    assert run["ends"]["rate_limited"] > 0
    assert run["rows"]["match"]
    assert run["rows"]["written"] <= 9


def test_a_folder_gets_the_report(weir: Weir, system: WeirDev, tmp_path: Path) -> None:
    """Without a secret in it."""
    folder = tmp_path / "out"
    loadtest(weir, system, "--output", str(folder))
    names = {path.name for path in folder.iterdir()}
    assert {"summary.json", "requests.jsonl", "report.html"} <= names
    secrets = [key["secret"] for keys in keys_of(system).values() for key in keys.values()]
    secrets += [system.ready["users"]["admin"]["token"], system.ready["database_url"]]
    for path in folder.iterdir():
        content = path.read_bytes()
        assert not any(secret.encode() in content for secret in secrets)
