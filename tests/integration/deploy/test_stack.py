"""The compose file's services run: started in its order, asked for their health in its words, used,
and stopped in its time, each under what its container allows it."""

import json
import shlex
import sys
import time
import urllib.request
from collections.abc import Iterator

import compose_file
import contained
import pytest
from compose_stack import Stack, stack

pytestmark = pytest.mark.timeout(300)
ORDER = ("postgres", "valkey", "worker-local", "gateway-1", "gateway-2")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """What `docker compose up` starts by default, without what watches it."""
    environment = compose_file.filled_environment() | {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}
    with stack(tmp_path_factory.mktemp("stack"), environment) as services:
        assert all(services.health(name).returncode != 0 for name in ORDER), "green before it runs"
        services.initialize_postgres()
        services.start("postgres")
        services.start("valkey")
        services.finish("migrate")
        services.start("worker-local")
        services.finish("register-local")
        services.start("gateway-1")
        services.start("gateway-2")
        yield services


def test_it_serves(up: Stack) -> None:
    """A tenant made with the page's own commands gets an answer of the local model from either
    gateway, and what it used is in Postgres."""
    environment = up.environment("gateway-1") | {"WEIR_USER_PASSWORD": "correct horse battery"}
    printed = {}
    for words in _commands_of_the_page():
        done = up.container.run(up.uid("gateway-1"), (*words, "--json"), environment)
        assert done.returncode == 0, (words, done.stderr)
        printed[words[1]] = json.loads(done.stdout)
    assert set(printed) == {"user", "tenant", "key", "price"}
    secret = printed["key"]["secret"]
    for name in ("gateway-1", "gateway-2"):
        answer = _chat(f"http://127.0.0.1:{up.ports[name]}", secret)
        assert answer["usage"]["completion_tokens"] > 0
    deadline = time.monotonic() + 10
    while len(_rows(up)) < 2:
        assert time.monotonic() < deadline, _rows(up)
    assert {row["outcome"] for row in _rows(up)} == {"completed"}


def test_it_is_confined(up: Stack) -> None:
    """A gateway's user writes to its journal and to /tmp, and to nothing else; it has no
    capability and no way to one."""
    if not contained.CONTAINED:
        pytest.skip(f"{sys.platform} lends this user no mount namespace")
    places = (str(up.container.volumes_seen / "gateway-1"), "/tmp")  # noqa: S108 - its own
    for place in (*places, "/", "/opt", "/opt/weir", "/var/tmp", "/etc", "/home"):  # noqa: S108
        done = up.ask("gateway-1", "sh", "-c", f"touch {place}/tried")
        assert (done.returncode == 0) == (place in places), (place, done.stderr)
    status = up.ask("gateway-1", "cat", "/proc/self/status").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split()[0] != "0"
    assert fields["CapEff"] == "0" * 16
    assert fields["NoNewPrivs"] == "1"


def test_journals_are_on_their_volumes(up: Stack) -> None:
    """Each gateway's, and in it what its requests were."""
    for name in ("gateway-1", "gateway-2"):
        files = [path for path in (up.container.volumes / name).rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) > 0, name


def test_a_passing_health_check_can_fail(up: Stack) -> None:
    """A gateway whose Redis is gone is not healthy, and is again once it is back."""
    assert up.stop("valkey") == 0
    for name in ("gateway-1", "gateway-2"):
        assert up.health(name).returncode != 0
    up.start("valkey")
    for name in ("gateway-1", "gateway-2"):
        up.until_healthy(name)


def test_a_backup_is_restored(up: Stack) -> None:
    """The page's commands of Postgres' container, on a database that was lost, while gateways run:
    each record is there again."""
    before = _rows(up)
    assert before
    dump, restore = _commands_of("docker compose exec -T postgres ")
    folder = up.container.volume("backup", up.uid("postgres"))
    lost = ("dropdb --username=weir --force weir", "createdb --username=weir weir")
    for line in (dump, *lost, restore):
        _in_postgres(up, f"cd {folder}; {line}")
    up.finish("migrate")
    assert _rows(up) == before
    for name in ("gateway-1", "gateway-2"):
        up.until_healthy(name)


def test_it_stops_in_time(up: Stack) -> None:
    """Each service within its grace time, with status 0; a gateway finds its journal again."""
    assert up.stop("gateway-1") == 0
    up.start("gateway-1")
    assert {name: up.stop(name) for name in reversed(ORDER)} == dict.fromkeys(ORDER, 0)


def _commands_of_the_page() -> list[list[str]]:
    """What docs/operations/compose.md runs in a gateway's container."""
    return [shlex.split(line) for line in _commands_of("docker compose exec gateway-1 ")]


def _commands_of(prefix: str) -> list[str]:
    lines = (compose_file.ROOT / "docs/operations/compose.md").read_text().splitlines()
    return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]


def _in_postgres(up: Stack, line: str) -> None:
    """Run it there; an address of this machine stands in for the container's own socket."""
    given = up.environment("postgres")
    words = ("sh", "-ec", line)
    address = {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(up.ports["postgres"]),
        "PGPASSWORD": given["POSTGRES_PASSWORD"],
    }
    done = up.container.run(up.uid("postgres"), words, given | address)
    assert done.returncode == 0, (line, done.stderr)


def _rows(up: Stack) -> list[compose_file.Json]:
    listed = up.ask("gateway-1", "weir", "usage", "list", "--tenant", "initech", "--json")
    assert listed.returncode == 0, listed.stderr
    rows: list[compose_file.Json] = json.loads(listed.stdout)["items"]
    return rows


def _chat(url: str, secret: str) -> compose_file.Json:
    body = {
        "model": "smollm2-135m",
        "messages": [{"role": "user", "content": "What is a weir?"}],
        "max_tokens": 8,
    }
    request = urllib.request.Request(  # noqa: S310 - http, to this machine
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {secret}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
        found: compose_file.Json = json.loads(answer.read())
        return found
