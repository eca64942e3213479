"""`weir dev`: from nothing to a key that works, and what it says where it cannot."""

import os
import shutil
import signal
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
import redis
import servers
from click.testing import CliRunner
from dev_launcher import DevRun, all_gone, status_of, weir_dev

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.dev import dev
from gateway.dev_ready import Ready
from gateway.domain.account import Role
from gateway.domain.tenant import RequestClass, Worker

SIMULATED = ("--engine", "simulated")
Account = tuple[int, int] | None
ACCOUNTS: list[Account] = [None, servers.nobody()] if os.geteuid() == 0 else [None]


@pytest.fixture(params=ACCOUNTS, ids=lambda account: "self" if account is None else "nobody")
def account(request: pytest.FixtureRequest) -> Account:
    """Whom it runs as; None is the present user."""
    chosen: Account = request.param
    return chosen


@pytest.fixture
def folder(account: Account) -> Iterator[Path]:
    """A folder of that account's own, which it can reach; its name holds a space."""
    made = Path(tempfile.mkdtemp(prefix="weir test "))
    made.chmod(0o755)
    if account is not None:
        os.chown(made, *account)
    yield made
    shutil.rmtree(made)


async def administered(ready: Ready) -> Administration:
    """The verbs on its database."""
    return Administration(async_engine(ready.database_url, pooled=False))


def ended(run: DevRun) -> tuple[int, str]:
    """The status and the output of a run that ends by itself."""
    return run.process.wait(60), run.output


async def test_from_an_empty_folder_everything_serves_and_ends_with_ctrl_c(
    folder: Path, account: Account
) -> None:
    """Nothing from PATH or HOME; each promise of ready.json holds; nothing is left running."""
    with weir_dev(folder / "data", *SIMULATED, "--gateways", "2", account=account) as run:
        ready = run.ready()
        assert stat.S_IMODE(os.stat(folder / "data" / "ready.json").st_mode) == 0o600
        assert stat.S_IMODE(os.stat(folder / "data" / "secrets.json").st_mode) == 0o600
        assert ready.gateways[0] == run.url
        assert len(ready.gateways) == len(ready.pids.gateways) == 2
        assert [(worker.id, worker.engine) for worker in ready.workers] == [
            ("simulated-0", "simulated")
        ]
        assert (ready.hosted, ready.pids.hosted) == (None, None)
        assert ready.models == ["smollm2-135m"]
        keys = [key for each in ready.tenants.values() for key in each.values()]
        assert len(set(keys)) == 4
        for url in ready.gateways:
            assert await status_of(f"{url}/readyz") == 200
            assert [await status_of(f"{url}/v1/models", key) for key in keys] == [200] * 4
            assert await status_of(f"{url}/v1/models", "sk-weir-unknown") == 401
        with redis.Redis.from_url(ready.redis_url) as client:
            assert client.ping()
        connection = await asyncpg.connect(ready.database_url)
        assert await connection.fetchval("SELECT count(*) FROM alembic_version") == 1
        await connection.close()
        users = await administered(ready)
        (price,) = (await users.list_prices()).items
        assert (price.model, price.provider, price.currency) == ("smollm2-135m", "self", "USD")
        for role, user in ready.users.items():
            found = await users.caller_by_token(user.token)
            assert found is not None, role
            assert (found.user.role, found.user.email) == (role, user.email)
        assert ready.users.keys() == set(Role) - {Role.TENANT_MEMBER}
        owner = ready.users[Role.TENANT_ADMIN]
        session = await users.log_in(owner.email, owner.password, address=None)
        assert (session.user.role, session.user.tenant_id) == (Role.TENANT_ADMIN, "acme")
        assert not all_gone(pids := run.pids())
        key = ready.tenants["acme"][RequestClass.INTERACTIVE]
        run.until(lambda: "Ctrl-C stops" in run.output, "the welcome")
        assert f'-H "Authorization: Bearer {key}"' in run.output
        assert f'base_url="{run.url}/v1", api_key="{key}"' in run.output
        assert run.stop() == 0
        assert all_gone(pids)
        assert not (folder / "data" / "ready.json").exists()


async def test_a_second_start_finds_the_first_ones_keys_and_undoes_no_change(
    tmp_path: Path,
) -> None:
    """A revoked key stays revoked, a suspended tenant suspended, a disabled user disabled; workers
    of the first start are gone, an administrator's own is not."""
    with weir_dev(tmp_path / "data", *SIMULATED, "--workers", "2") as run:
        first = run.ready()
        admin = await administered(first)
        acme = {key.name: key for key in (await admin.list_keys("acme")).items}
        await admin.revoke_key("test", acme["batch"].id)
        await admin.update_tenant("test", "globex", suspended=True)
        await admin.update_user("test", "finance@weir.local", disabled=True)
        own = Worker(id="own", model="smollm2-135m", url="http://127.0.0.1:9")
        await admin.register_worker("test", own)
        assert run.stop() == 0
    with weir_dev(tmp_path / "data", *SIMULATED) as run:
        second = run.ready()
        assert second.tenants == first.tenants
        assert second.users == first.users
        assert (second.redis_url, second.database_url) == (first.redis_url, first.database_url)
        admin = await administered(second)
        listed = {key.name: key for key in (await admin.list_keys("acme")).items}
        assert listed["batch"].revoked_at_ms is not None
        assert len(listed) == len((await admin.list_keys("acme")).items) == 2
        assert (await admin.get_tenant("globex")).suspended
        assert len((await admin.list_prices()).items) == 1
        assert await admin.caller_by_token(second.users[Role.FINANCE].token) is None
        ids = [worker.id for worker in (await admin.list_workers()).items]
        assert sorted(ids) == ["own", "simulated-0"]
        statuses = {
            key: await status_of(f"{run.url}/v1/models", secret)
            for key, secret in second.tenants["acme"].items()
        }
        assert statuses == {RequestClass.INTERACTIVE: 200, RequestClass.BATCH: 401}


def test_an_occupied_directory_and_a_taken_port_are_one_line_each(tmp_path: Path) -> None:
    """Nothing is started; what runs goes on."""
    with weir_dev(tmp_path / "data", *SIMULATED, "--no-seed") as run:
        ready = run.ready()
        assert (ready.tenants, ready.users) == ({}, {})
        with weir_dev(tmp_path / "data", *SIMULATED) as second:
            assert ended(second) == (
                1,
                f"weir: {tmp_path / 'data'} is in use by another weir, process {run.process.pid}\n",
            )
        with weir_dev(tmp_path / "other", *SIMULATED, port=run.port) as second:
            assert ended(second) == (
                1,
                f"weir: port {run.port} is in use: choose another with --port\n",
            )
        assert not (tmp_path / "other" / "valkey").exists()
        assert run.ready() == ready
        assert not all_gone(run.pids())


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """Also where the servers that need it start side by side."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log").touch()
    with weir_dev(tmp_path / "data", *SIMULATED) as run:
        status, said = ended(run)
    assert status == 1
    assert said.endswith(f": cannot make {tmp_path / 'data' / 'log'}: File exists\n")
    assert "Traceback" not in said


async def test_stores_of_the_environment_are_used_instead(
    tmp_path: Path, redis_url: str, empty_database_url: str
) -> None:
    """They are migrated and seeded, not started and not stopped."""
    environment = {"WEIR_REDIS_URL": redis_url, "WEIR_DATABASE_URL": empty_database_url}
    with weir_dev(tmp_path / "data", *SIMULATED, environment=environment) as run:
        ready = run.ready()
        assert (ready.redis_url, ready.database_url) == (redis_url, empty_database_url)
        assert (ready.pids.redis, ready.pids.postgres) == (None, None)
        key = ready.tenants["acme"][RequestClass.INTERACTIVE]
        assert await status_of(f"{run.url}/v1/models", key) == 200
        assert run.stop() == 0
    assert not (tmp_path / "data" / "postgres").exists()
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()


def test_a_redis_of_the_environment_that_is_away_is_one_line(
    tmp_path: Path, empty_database_url: str, free_port: int
) -> None:
    """The variable is named, its value is not."""
    environment = {
        "WEIR_REDIS_URL": f"redis://:hidden@127.0.0.1:{free_port}/0",
        "WEIR_DATABASE_URL": empty_database_url,
    }
    with weir_dev(tmp_path / "data", *SIMULATED, environment=environment) as run:
        status, output = ended(run)
    assert status == 1
    assert output.splitlines()[-1].startswith("weir: WEIR_REDIS_URL cannot be reached: ")
    assert "hidden" not in output


@pytest.mark.parametrize(("loads", "kind"), [(True, "sglang"), (False, "openai")])
async def test_an_engine_at_a_url_is_registered_as_what_it_speaks(
    tmp_path: Path, free_port: int, loads: bool, kind: str
) -> None:
    """Its models are asked for; it is neither started nor stopped."""
    models_served = {"big": 4096, "small": None}
    with servers.engine_with_models(free_port, models_served, reports_loads=loads):
        url = f"http://127.0.0.1:{free_port}"
        with weir_dev(tmp_path / "data", "--engine", f"{url}/v1/") as run:
            ready = run.ready()
            admin = await administered(ready)
            workers = (await admin.list_workers()).items
            models = (await admin.list_models()).items
            assert run.stop() == 0
    assert ready.models == ["big", "small"]
    assert ready.pids.workers == []
    assert [(w.id, w.model, w.url, w.kind, w.engine) for w in workers] == [
        (f"{kind}-0", "big", url, kind, kind),
        (f"{kind}-0-1", "small", url, kind, kind),
    ]
    assert [(m.id, m.context_tokens) for m in models] == [("big", 4096), ("small", 8192)]


def test_an_engine_that_does_not_answer_is_one_line(tmp_path: Path, free_port: int) -> None:
    """Said before anything is started."""
    url = f"http://127.0.0.1:{free_port}"
    with weir_dev(tmp_path / "data", "--engine", url) as run:
        status, output = ended(run)
    assert status == 1
    assert output.splitlines()[-1].startswith(f"weir: the engine at {url} does not answer: ")
    assert not (tmp_path / "data" / "valkey").exists()


def test_ctrl_c_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    """Interrupted between two steps it stops what it has started, with status 130."""
    with weir_dev(tmp_path / "data", *SIMULATED) as run:
        run.until(lambda: "schema" in run.output, "the second step")
        run.interrupt()
        assert run.process.wait(30) == 130
    with weir_dev(tmp_path / "data", *SIMULATED) as run:
        assert run.ready().models == ["smollm2-135m"]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--hosted", "magic"), 2, "must be simulated, none or the base URL of a provider"),
        (("--hosted", "http://u:p@h/v1"), 2, "must be simulated, none or the base URL"),
        (("--engine", "magic"), 2, "must be local, simulated or the base URL of an engine"),
        (("--engine", "http://127.0.0.1:9", "--workers", "2"), 2, "--engine URL is one already"),
        (("--port", "0"), 2, "0 is not in the range 1<=x<=65535"),
        (("--gateways", "0"), 2, "0 is not in the range"),
        (("--history", "--no-seed"), 2, "the tenants that --no-seed leaves out"),
    ],
)
def test_bad_options_are_one_line_and_status_2(
    options: tuple[str, ...],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is made or started for them."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(dev, options)
    assert os.listdir(tmp_path) == []
    assert (result.exit_code, said in result.output) == (status, True)


def test_a_platform_without_the_local_model_is_offered_what_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line, status 1."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(dev, [])
    assert result.exit_code == 1
    assert "use --engine simulated, or --engine URL" in result.output


def test_gateways_take_the_next_free_ports(tmp_path: Path, free_port: int) -> None:
    """A port in between that is taken is left out."""
    with (
        socket.create_server(("127.0.0.1", free_port + 1)),
        weir_dev(
            tmp_path / "data", *SIMULATED, "--no-seed", "--gateways", "2", port=free_port
        ) as run,
    ):
        ready = run.ready()
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(30) == 0
    assert ready.gateways == [f"http://127.0.0.1:{free_port + n}" for n in (0, 2)]
