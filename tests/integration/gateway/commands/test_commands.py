"""Administration by command line, on a real database."""

import getpass
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from redis import Redis
from weir_command import Weir

MODEL = ("model", "add", "m", "--context-tokens", "2048", "--max-output-tokens", "512")


def test_a_tenants_life(weir: Weir) -> None:
    """Create, list, show, suspend, resume; readable and as JSON."""
    assert weir.json("tenant", "create", "acme", "--currency", "EUR")["currency"] == "EUR"
    assert weir.json("tenant", "create", "globex", "--name", "Globex Inc")["name"] == "Globex Inc"
    table = weir.ok("tenant", "list").splitlines()
    assert table[0].split() == ["ID", "NAME", "SUSPENDED", "CURRENCY", "TIME_ZONE"]
    assert table[1].split() == ["acme", "acme", "no", "EUR", "UTC"]
    assert weir.json("tenant", "suspend", "acme")["suspended"] is True
    assert weir.json("tenant", "show", "acme")["suspended"] is True
    assert weir.json("tenant", "resume", "acme")["suspended"] is False
    assert re.search(r"^suspended +no$", weir.ok("tenant", "show", "acme"), re.MULTILINE)
    assert weir.refused("tenant", "create", "acme") == "weir: tenant acme exists already\n"
    assert "a-z" in weir.refused("tenant", "create", "Acme Inc")
    assert "nobody" in weir.refused("tenant", "show", "nobody")


def test_lists_go_on_at_the_cursor(weir: Weir) -> None:
    """A page says how to get the next one."""
    for tenant_id in ("a", "b", "c"):
        weir.ok("tenant", "create", tenant_id)
    first = weir.json("tenant", "list", "--limit", "2")
    rest = weir.json("tenant", "list", "--limit", "2", "--cursor", first["next_cursor"])
    assert [tenant["id"] for tenant in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["next_cursor"] is None
    assert f"--cursor {first['next_cursor']}" in weir.ok("tenant", "list", "--limit", "2")
    weir.refused("tenant", "list", "--limit", "0")


def test_a_keys_life(weir: Weir) -> None:
    """Created with its secret, listed without, rotated with a grace, revoked."""
    weir.ok("tenant", "create", "acme")
    weir.ok(*MODEL)
    created = weir.json(
        "key", "create", "acme", "--name", "ci", "--class", "batch", "--model", "m",
        "--ip-allow", "10.0.0.0/8", "--expires-at", "2100-01-01T00:00:00Z",
    )  # fmt: skip
    assert created["secret"].startswith("sk-weir-")
    assert (created["class"], created["models"]) == ("batch", ["m"])
    rotated = weir.json("key", "rotate", created["id"], "--grace", "30m")
    assert rotated["secret"] != created["secret"]
    listed = weir.ok("key", "list", "acme", "--json")
    assert {key["id"] for key in msgspec.json.decode(listed)["items"]} == {
        created["id"],
        rotated["id"],
    }
    for secret in (created["secret"], rotated["secret"]):
        assert secret not in listed
        assert secret not in weir.ok("audit", "list", "--json")
    assert weir.json("key", "revoke", rotated["id"])["revoked_at"] is not None
    assert "grace" in weir.refused("key", "rotate", created["id"], "--grace", "soon")
    assert "offset" in weir.refused(
        "key", "create", "acme", "--name", "k", "--expires-at", "2100-01-01T00:00:00"
    )
    assert "CIDR" in weir.refused("key", "create", "acme", "--name", "k", "--ip-allow", "home")


def test_limit_set_changes_only_what_is_named(weir: Weir) -> None:
    """`none` takes a limit away; a model and a key have limits of their own."""
    weir.ok("tenant", "create", "acme")
    weir.ok(*MODEL)
    weir.ok("limit", "set", "acme", "--max-sequences", "8", "--tpm", "1000")
    changed = weir.json("limit", "set", "acme", "--max-sequences", "none", "--weight", "3")
    assert (changed["max_sequences"], changed["tpm"], changed["weight"]) == (None, 1000, 3)
    narrowed = weir.json("limit", "set", "acme", "--model", "m", "--tpm", "10")
    assert narrowed["models"]["m"]["tpm"] == 10
    assert {name for name, value in narrowed["models"]["m"].items() if value is not None} == {"tpm"}
    assert weir.json("limit", "show", "acme") == narrowed
    key_id = weir.json("key", "create", "acme", "--name", "k")["id"]
    assert weir.json("limit", "set", "--key", key_id, "--rpm", "0")["rpm"] == 0
    assert weir.json("limit", "show", "--key", key_id)["rpm"] == 0
    assert weir.json("limit", "show", "acme") == narrowed


def test_a_keys_waiting_is_its_tenants_until_it_has_one(weir: Weir) -> None:
    """`none` gives it back; a tenant's waiting is always bounded."""
    weir.ok("tenant", "create", "acme")
    key_id = weir.json("key", "create", "acme", "--name", "k", "--class", "interactive")["id"]
    own = weir.json("limit", "set", "--key", key_id, "--tpm", "100")
    assert (own["max_queued"], own["max_wait_ms"]) == (None, None)
    own = weir.json("limit", "set", "--key", key_id, "--max-queued", "0", "--max-wait-ms", "5000")
    assert (own["tpm"], own["max_queued"], own["max_wait_ms"]) == (100, 0, 5_000)
    own = weir.json("limit", "set", "--key", key_id, "--max-wait-ms", "none")
    assert (own["max_queued"], own["max_wait_ms"]) == (0, None)
    assert weir.json("limit", "show", "--key", key_id) == own
    raised = weir.json("limit", "set", "acme", "--max-wait-ms", "60000")
    assert (raised["max_queued"], raised["max_wait_ms"]) == (64, 60_000)
    for name in ("max-queued", "max-wait-ms"):
        refused = weir.refused("limit", "set", "acme", f"--{name}", "none")
        assert name.replace("-", "_") in refused
    assert weir.json("limit", "show", "acme") == raised


def test_a_budget_is_a_text_of_digits(weir: Weir) -> None:
    """R14: "500" is as good as "500.00", and either stays as it is; `none` takes it away (B04)."""
    weir.ok("tenant", "create", "acme")
    weir.ok(*MODEL)
    weir.ok("price", "set", "m", "--input", "0.40", "--output", "1.60")
    for amount in ("500", "500.00", "0"):
        changed = weir.json("limit", "set", "acme", "--monthly-budget", amount)
        assert changed["monthly_budget"] == amount
    narrowed = weir.json("limit", "set", "acme", "--model", "m", "--monthly-budget", "5")
    assert narrowed["models"]["m"]["monthly_budget"] == "5"
    assert "monthly_budget" in weir.refused("limit", "set", "acme", "--monthly-budget", "5.001")
    assert weir.json("limit", "set", "acme", "--monthly-budget", "none")["monthly_budget"] is None


def test_limits_that_cannot_be_are_one_line(weir: Weir) -> None:
    """Exit status 2, and the line names the limit."""
    weir.ok("tenant", "create", "acme")
    assert "tpm" in weir.refused("limit", "set", "acme", "--tpm", "many")
    assert "tpm" in weir.refused("limit", "set", "acme", "--tpm", "-1")
    assert "monthly_budget" in weir.refused("limit", "set", "acme", "--monthly-budget", "5.00")
    assert "data_policy" in weir.refused("limit", "set", "acme", "--data-policy", "anywhere")
    assert "models.gpt-5" in weir.refused("limit", "set", "acme", "--model", "gpt-5", "--tpm", "1")
    weir.refused("limit", "set", "acme")
    weir.refused("limit", "set", "--tpm", "1")
    weir.refused("limit", "set", "acme", "--key", "key_x", "--tpm", "1")


def test_the_fleet(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models and workers; a worker's key is taken from the variable that is named and never
    printed."""
    weir.ok(*MODEL)
    monkeypatch.setenv("ENGINE_KEY", "engine-secret")
    added = weir.ok(
        "worker", "add", "w", "--model", "m", "--url", "http://10.0.0.1:1",
        "--api-key-env", "ENGINE_KEY", "--json",
    )  # fmt: skip
    assert "engine-secret" not in added
    assert msgspec.json.decode(added)["has_api_key"] is True
    assert weir.json("worker", "drain", "w")["draining"] is True
    assert weir.json("worker", "drain", "w", "--resume")["draining"] is False
    assert weir.json("worker", "list")["items"][0]["url"] == "http://10.0.0.1:1"
    assert weir.json("worker", "list")["items"][0]["class"] is None
    add = ("worker", "add", "w", "--model", "m", "--url", "http://10.0.0.1:1")
    assert weir.json(*add, "--class", "batch")["class"] == "batch"
    assert "batch" in weir.ok("worker", "list")
    assert weir.json(*add)["class"] is None
    assert "--class" in weir.refused(*add, "--class", "urgent")
    assert weir.json("worker", "remove", "w") == {"id": "w", "removed": True}
    assert weir.json("worker", "list")["items"] == []
    assert weir.json("model", "list")["items"][0]["context_tokens"] == 2048
    assert "model" in weir.refused("worker", "add", "w", "--model", "x", "--url", "http://h:1")


def test_users_and_the_audit_log(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token is printed once; every change names the operating system's user."""
    monkeypatch.setenv("WEIR_USER_PASSWORD", "correct horse battery")
    weir.ok("user", "create", "a@b.c", "--role", "finance")
    token = weir.json("user", "token", "a@b.c", "--name", "laptop")["token"]
    assert weir.json("user", "list")["items"][0]["role"] == "finance"
    assert weir.json("user", "disable", "a@b.c")["disabled"] is True
    assert weir.json("user", "enable", "a@b.c")["disabled"] is False
    weir.ok("user", "revoke-token", "a@b.c", "--name", "laptop")
    printed = weir.ok("audit", "list", "--json")
    assert token not in printed
    assert "horse" not in printed
    entries = msgspec.json.decode(printed)["items"]
    assert {entry["actor"] for entry in entries} == {f"cli:{getpass.getuser()}"}
    assert [entry["action"] for entry in entries] == [
        "token.revoke",
        "user.update",
        "user.update",
        "token.issue",
        "user.create",
    ]
    narrowed = weir.json("audit", "list", "--action", "token.issue", "--limit", "5")
    assert [entry["action"] for entry in narrowed["items"]] == ["token.issue"]


def test_a_data_directory_names_the_stores(
    weir: Weir,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    database_url: str,
    redis_url: str,
) -> None:
    """`--data-dir` reads ready.json, and revocations then go to its Redis too."""
    monkeypatch.setenv("WEIR_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    ready = {"database_url": database_url, "redis_url": redis_url, "gateways": []}
    (tmp_path / "ready.json").write_bytes(msgspec.json.encode(ready))
    weir.ok("tenant", "create", "acme", "--data-dir", str(tmp_path))
    key_id = weir.json("key", "create", "acme", "--name", "k", "--data-dir", str(tmp_path))["id"]
    weir.ok("key", "revoke", key_id, "--data-dir", str(tmp_path))
    with Redis.from_url(redis_url) as client:
        assert f"key:{key_id}:".encode() in b"".join(client.zrange("weir:revoked", 0, -1))
    monkeypatch.delenv("WEIR_DATABASE_URL")
    monkeypatch.chdir(tmp_path)
    assert ".weir/ready.json" in weir.refused("tenant", "list")
    weir.refused("tenant", "list", "--data-dir", ".", "--database-url", database_url)
    (tmp_path / "ready.json").write_text("{")
    weir.refused("tenant", "list", "--data-dir", ".")


def test_an_unreachable_database_is_one_line_and_status_1(weir: Weir) -> None:
    """Bad input is 2, a failed operation 1."""
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    line = weir.refused("tenant", "list", "--database-url", nowhere, status=1)
    assert "Postgres cannot be reached" in line
    weir.refused("tenant", "list", "--database-url", "mysql://h/db")


def test_migrate_says_what_it_did(
    weir: Weir, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From nothing to head, then nothing more to do; reads $WEIR_DATABASE_URL."""
    monkeypatch.setenv("WEIR_DATABASE_URL", empty_database_url)
    done = weir.json("migrate")
    assert (done["from"], done["changed"]) == (None, True)
    assert weir.ok("migrate") == f"schema is at {done['to']} already\n"
    assert weir.json("migrate", "--database-url", empty_database_url)["changed"] is False
    monkeypatch.delenv("WEIR_DATABASE_URL")
    weir.refused("migrate")
    weir.refused("migrate", "--database-url", "postgresql://nobody@127.0.0.1:1/none", status=1)


UNDECODABLE = "a\udcff"
"""As Python has bytes of the command line that are no UTF-8."""


@pytest.mark.parametrize(
    "arguments",
    [
        ("hosted", "show", UNDECODABLE),
        ("hosted", "list", "--cursor", UNDECODABLE),
        ("hosted", "add", "x", "--url", "https://h/v1", "--model", UNDECODABLE + "=x"),
        ("tenant", "show", UNDECODABLE),
        ("tenant", "create", "x", "--name", UNDECODABLE),
        ("key", "create", "x", "--name", UNDECODABLE),
        ("limit", "show", UNDECODABLE),
        ("limit", "set", "x", "--tpm", UNDECODABLE),
        ("worker", "drain", UNDECODABLE),
        ("model", "add", UNDECODABLE, "--context-tokens", "1", "--max-output-tokens", "1"),
        ("user", "disable", UNDECODABLE),
        ("audit", "list", "--actor", UNDECODABLE),
        ("usage", "list", "--tenant", UNDECODABLE),
        ("dev", "--engine", UNDECODABLE),
        ("check", "--" + UNDECODABLE),
        (UNDECODABLE,),
    ],
)
def test_undecodable_arguments_are_one_line(weir: Weir, arguments: tuple[str, ...]) -> None:
    """Exit status 2, whatever the command would have done with them."""
    assert weir.refused(*arguments) == "weir: an argument is not valid UTF-8\n"


def test_undecodable_bytes_of_a_real_command_line(weir: Weir) -> None:
    """As a shell gives them, in a process of its own."""
    command: list[str | bytes] = [sys.executable, "-m", "gateway", "hosted", "show", b"\xff"]
    ended = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr == b"weir: an argument is not valid UTF-8\n"


def test_undecodable_text_of_the_environment_is_one_line(
    weir: Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its value nor a traceback is shown."""
    weir.ok(*MODEL)
    monkeypatch.setenv("API_KEY", "hunter2" + UNDECODABLE)
    worker = ("worker", "add", "w", "--model", "m", "--url", "http://h:1")
    assert "hunter2" not in weir.refused(*worker, "--api-key-env", "API_KEY")
    monkeypatch.setenv("WEIR_DATABASE_URL", "postgresql://u:hunter2" + UNDECODABLE + "@h/x")
    assert "hunter2" not in weir.refused("tenant", "list", status=1)
