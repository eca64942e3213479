"""TCP ports below the range that the kernel gives to outgoing connections.

A listener on a port of that range can find it taken, when it is started again, by a connection
that some program made meanwhile.
"""

import secrets
import socket

LOWEST_PORT = 10_240
EPHEMERAL_PORT = 32_768
ATTEMPTS = 200


class NoFreePort(RuntimeError):
    """No port was found free."""


def free_port(*, avoid: frozenset[int] = frozenset()) -> int:
    """A port in [10240, 32768) that nothing listens on at 127.0.0.1, chosen at random.

    It is not reserved: whoever binds it first has it. Raises NoFreePort.
    """
    for _ in range(ATTEMPTS):
        port = LOWEST_PORT + secrets.randbelow(EPHEMERAL_PORT - LOWEST_PORT)
        if port not in avoid and port_is_free(port):
            return port
    raise NoFreePort(f"no free port between {LOWEST_PORT} and {EPHEMERAL_PORT}")


def port_is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            # Two may bind an address that neither listens on; only listening is exclusive.
            probe.listen(1)
        except OSError:
            return False
    return True
