"""The embedded Valkey: its settings, its address, and what else may listen there."""

import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from backend.embedded import DataDir, EmbeddedValkey, StartFailed, running


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[DataDir]:
    """An open data directory."""
    opened = DataDir.open(tmp_path / "data")
    yield opened
    opened.close()


def test_it_keeps_what_was_acknowledged_and_evicts_nothing(data_dir: DataDir) -> None:
    """An append-only file synced every second, and writes refused rather than keys dropped."""
    valkey = EmbeddedValkey(data_dir)
    with running(valkey), redis.Redis.from_url(valkey.url, decode_responses=True) as client:
        wanted = {
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        assert {name: client.config_get(name)[name] for name in wanted} == wanted


def test_nobody_gets_in_without_the_password(data_dir: DataDir) -> None:
    """Another user of the machine may reach the port, and nothing more."""
    valkey = EmbeddedValkey(data_dir)
    with (
        running(valkey),
        redis.Redis(port=valkey.port) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()
    for path in (data_dir.path / "valkey").iterdir():
        assert path.is_dir() or stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.fault
def test_after_kill_9_it_is_back_at_its_address_with_everything(data_dir: DataDir) -> None:
    """A supervisor starts it again; the clients' URL holds."""
    valkey = EmbeddedValkey(data_dir)
    with running(valkey) as process, redis.Redis.from_url(valkey.url) as client:
        client.set("kept", 1)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    with running(valkey), redis.Redis.from_url(valkey.url) as client:
        assert client.get("kept") == b"1"
    assert EmbeddedValkey(data_dir).url == valkey.url


def test_a_port_that_was_taken_meanwhile_is_chosen_again(data_dir: DataDir) -> None:
    """Between two runs another program may have come to listen there."""
    first = EmbeddedValkey(data_dir)
    with socket.create_server(("127.0.0.1", first.port)):
        second = EmbeddedValkey(data_dir)
    assert second.port != first.port
    assert EmbeddedValkey(data_dir).port == second.port


def test_another_server_at_the_port_is_not_taken_for_it(data_dir: DataDir) -> None:
    """Readiness is this server's own: it knows the password. The failure names the log."""
    valkey = EmbeddedValkey(data_dir)
    with (
        socket.create_server(("127.0.0.1", valkey.port)),
        pytest.raises(StartFailed, match=r"valkey ended with status 1; .*valkey\.log"),
        running(valkey),
    ):
        pytest.fail("it was taken for ready")
