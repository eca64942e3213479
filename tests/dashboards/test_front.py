"""Debian's HAProxy with our own configuration in front of two gateways."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import compose_file
import pytest
import servers
from dashboards.prometheus_server import program
from weir_dev import WeirDev, weir_dev

CONFIGURATION = compose_file.ROOT / "deploy/haproxy/haproxy.cfg"
ANSWERS_WITHIN_S = 20.0
ASKED = 60
KEPT_INSIDE = (
    "/metrics",
    "/metrics/",
    "//metrics",
    "/./metrics",
    "/%6detrics",
    "/%6Detrics?x=/v1/",
    "/metrics%2F",
    "/v1/../metrics",
    "/v1/%2e%2e/metrics",
    "/v1//..//metrics",
    "/v1/../../metrics",
)
FOR_OPERATORS = ("/console/login", "/admin/v1/tenants", "/billing/v1/prices", "/readyz")
"""What tenants have no use for, and what an operator gets there without being anybody."""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """Two gateways over one simulated worker."""
    folder = tmp_path_factory.mktemp("front")
    with weir_dev(folder, "--engine", "simulated", "--gateways", "2") as started:
        yield started


@dataclass(frozen=True)
class Front:
    """The balancer's two addresses."""

    tenants: str
    operators: str


@pytest.fixture(scope="module")
def front(system: WeirDev, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Names and ports changed, and names that are looked up."""
    ports = {":8080": servers.free_port(), ":8081": servers.free_port()}
    text = CONFIGURATION.read_text()
    for name, port in ports.items():
        text = text.replace(f"bind {name}\n", f"bind 127.0.0.1:{port}\n")
    text = re.sub(r"(?m)^resolvers .*\n(?:  .*\n)+", "", text)
    text = text.replace(" init-addr libc,none resolvers container_names", "")
    for index, url in enumerate(system.ready["gateways"], start=1):
        text = text.replace(f"gateway-{index}:8080", url.removeprefix("http://"))
    path: Path = tmp_path_factory.mktemp("haproxy") / "haproxy.cfg"
    path.write_text(text)
    command = [program("haproxy"), "-db", "-f", str(path)]
    with (path.parent / "haproxy.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = Front(*(f"http://127.0.0.1:{port}" for port in ports.values()))
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    try:
        while _status(system, url.operators, "/readyz") != 200:
            assert process.poll() is None, (path.parent / "haproxy.log").read_text()
            assert time.monotonic() < deadline, (path.parent / "haproxy.log").read_text()
        yield url
        process.send_signal(signal.SIGUSR1)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_the_configuration_is_valid() -> None:
    """As it stands; names of containers cannot be looked up here, and it starts without them."""
    words = [program("haproxy"), "-c", "-f", str(CONFIGURATION)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_passes_streams_on(system: WeirDev, front: Front) -> None:
    """A stream comes whole, under the id that the gateway gave it."""
    body = system.body(stream=True)
    reply = system.request("POST", f"{front.tenants}/v1/chat/completions", body, token=system.key())
    assert reply.status == 200
    assert reply.raw.endswith(b"data: [DONE]\n\n")
    assert reply.headers["x-request-id"]


@pytest.mark.parametrize("path", KEPT_INSIDE)
def test_metrics_stay_inside(system: WeirDev, front: Front, path: str) -> None:
    """Prometheus asks the gateways; nobody else is told, however the path is written."""
    for url in (front.tenants, front.operators):
        reply = system.request("GET", url + path)
        assert reply.status == 404
        assert b"weir_" not in reply.raw


def test_tenants_reach_their_own_api_alone(system: WeirDev, front: Front) -> None:
    """Operators have an address of their own for the rest, written as it likes."""
    assert _status(system, front.tenants, "/front/healthz") == 200
    assert _status(system, front.tenants, "/v1/models") == 401
    assert _status(system, front.tenants, "//v1/models") == 401
    for path in FOR_OPERATORS:
        for written in (path, f"/{path}", f"/v1/..{path}", f"/%{ord(path[1]):x}{path[2:]}"):
            assert _status(system, front.tenants, written) == 404, written
            assert _status(system, front.operators, written) in (200, 401), written


def test_a_gateway_that_stops_is_not_noticed(system: WeirDev, front: Front) -> None:
    """While one gateway is stopped and started again every request is answered: at once, or, in
    the tenth of a second in which it still listens, by the one retry that every SDK makes."""
    before = system.ready["pids"]["gateways"][0]
    url, key, body = f"{front.tenants}/v1/chat/completions", system.key(), system.body(max_tokens=4)
    again = 0
    for asked in range(ASKED):
        if asked == ASKED // 6:
            os.kill(before, signal.SIGTERM)
        reply = system.request("POST", url, body, token=key)
        if reply.status == 503:
            again += 1
            time.sleep(float(reply.headers["retry-after"]))
            reply = system.request("POST", url, body, token=key)
        assert reply.status == 200, reply.raw
    assert again <= 2
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    while system.ready["pids"]["gateways"][0] == before:
        assert time.monotonic() < deadline, "the stopped gateway did not come back"
        time.sleep(0.05)


def _status(system: WeirDev, url: str, path: str) -> int:
    try:
        return system.request("GET", url + path).status
    except OSError:
        return 0
