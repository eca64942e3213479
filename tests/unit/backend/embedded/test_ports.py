"""Ports: below the outgoing range, and not taken."""

import socket

import pytest

from backend.embedded import ports


def test_a_free_port_lies_below_those_of_outgoing_connections() -> None:
    """A restart never finds its port taken by an outgoing connection."""
    found = [ports.free_port() for _ in range(50)]
    assert all(ports.LOWEST_PORT <= port < ports.EPHEMERAL_PORT for port in found)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - what others may do
def test_a_port_that_somebody_listens_on_is_not_free(host: str) -> None:
    """A listener at the address, or at every address, makes a port taken."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        listener.listen()
        assert not ports.port_is_free(listener.getsockname()[1])


def test_a_port_is_free_again_after_its_listener_has_closed() -> None:
    """What a killed server leaves behind does not keep it from its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = listener.accept()
            accepted.close()  # closed first on the server's side: TIME_WAIT stays there
    assert ports.port_is_free(port)


def test_no_free_port_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With everything taken the search ends."""
    monkeypatch.setattr(ports, "port_is_free", lambda port: False)
    with pytest.raises(ports.NoFreePort, match="no free port"):
        ports.free_port()
