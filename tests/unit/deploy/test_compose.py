"""docker-compose.yml: valid, complete, and as strict as it says. No container engine is needed."""

import json
import re
from collections.abc import Iterator
from typing import Any

import compose_file
import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from click import Context, Group

from backend.sglang.launch import SglangSettings, launch_arguments
from gateway.cli import weir
from gateway.settings import listen_address, load_settings

SCHEMA = compose_file.ROOT / "tests/unit/deploy/specification/compose-spec.json"
GATEWAYS = ("gateway-1", "gateway-2")
OURS = ("weir-gateway", "weir-worker")
WITHOUT_HEALTH = {
    "migrate": "ends",
    "register-local": "ends",
    "register-sglang": "ends",
    "otel-collector": "its image has no other program",
}


@pytest.fixture(scope="module")
def services() -> dict[str, compose_file.Json]:
    """The services as they would be started."""
    return compose_file.services(compose_file.filled_environment())


def test_it_is_valid_by_the_specification() -> None:
    """By the Compose Specification's own schema, with its variables put in and without."""
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    for document in (
        compose_file.compose(compose_file.filled_environment()),
        yaml.safe_load(compose_file.COMPOSE.read_text()),
    ):
        assert [error.message for error in validator.iter_errors(document)] == []
    broken = compose_file.raw_compose()
    broken["services"]["valkey"]["stop_grace_periode"] = "30s"
    assert list(validator.iter_errors(broken)), "the schema refuses nothing"
    assert "version" not in compose_file.raw_compose()


def test_every_variable_is_in_the_example() -> None:
    """And the example names none that nothing reads."""
    text = re.sub(r"(?m)^\s*#.*$", "", compose_file.COMPOSE.read_text())
    used = {name for name, _, _ in compose_file.references(text)}
    assert used | {"COMPOSE_PROFILES"} == set(compose_file.example_environment())


def test_defaults_are_those_of_the_example() -> None:
    """Whoever leaves a line out of .env gets what the example says."""
    example = compose_file.example_environment()
    for name, operator, default in compose_file.references(compose_file.COMPOSE.read_text()):
        if operator == ":-" and name != "OTEL_EXPORTER_OTLP_ENDPOINT":
            assert default == example[name], name


def test_no_secret_has_a_default() -> None:
    """Each one is empty in the example, is asked for by name, and without it nothing starts."""
    example = compose_file.example_environment()
    text = compose_file.COMPOSE.read_text()
    for name in compose_file.SECRETS:
        assert example[name] == ""
        operators = {op for found, op, _ in compose_file.references(text) if found == name}
        assert operators == {":?"}
        lacking = compose_file.filled_environment() | {name: ""}
        with pytest.raises(compose_file.VariableMissing, match=name):
            compose_file.services(lacking)
    for each in text.splitlines():
        if re.search(r"(PASSWORD|SECRET|_AUTH|AUTHORIZATION):", each):
            assert "${" in each, f"a secret of its own: {each}"


def test_secrets_are_not_committed() -> None:
    """The file that they are written into is none of the repository's."""
    ignored = (compose_file.ROOT / ".gitignore").read_text().splitlines()
    assert ".env" in ignored
    assert ".env.example" not in ignored


def test_profiles_of_the_example_exist(services: dict[str, compose_file.Json]) -> None:
    """By default the local worker and what watches run; without any, gateways and stores do."""
    known = {profile for service in services.values() for profile in service.get("profiles", ())}
    assert known == {"local", "sglang", "observability"}
    assert compose_file.example_environment()["COMPOSE_PROFILES"] == "local,observability"
    plain = {name for name, service in services.items() if "profiles" not in service}
    assert plain == {"postgres", "valkey", "migrate", *GATEWAYS, "front"}


def test_whom_a_service_waits_for_runs_too(services: dict[str, compose_file.Json]) -> None:
    """A service waits for services that exist, of its own profile or of none, and for health only
    where there is a health check."""
    for name, service in services.items():
        for other, wanted in service.get("depends_on", {}).items():
            profiles = services[other].get("profiles")
            assert profiles is None or profiles == service.get("profiles"), (name, other)
            condition = wanted["condition"]
            assert (condition == "service_healthy") <= _is_asked(services[other])
            if services[other].get("restart") == "no":
                assert condition == "service_completed_successfully", (name, other)
    assert services["gateway-1"]["depends_on"]["migrate"]["condition"].endswith("successfully")


def test_every_file_exists(services: dict[str, compose_file.Json]) -> None:
    """Whatever is mounted from this repository, read-only; other volumes are declared."""
    declared = compose_file.raw_compose()["volumes"]
    mounted = set()
    for name, source, _, mode in _mounts(services):
        if source.startswith("."):
            assert mode == "ro", (name, source)
            assert source == "./models" or (compose_file.ROOT / source).exists(), (name, source)
        else:
            assert source in declared
            mounted.add(source)
    assert mounted == set(declared)
    for service in services.values():
        if "build" in service:
            assert (compose_file.ROOT / service["build"]["dockerfile"]).exists()


def test_a_journal_has_one_gateway(services: dict[str, compose_file.Json]) -> None:
    """Each gateway has a volume of its own where its journal is, and no other service mounts it."""
    journals = {}
    for name, source, target, _ in _mounts(services):
        if source.startswith("journal"):
            assert source not in journals, source
            journals[source] = name
            assert target == services[name]["environment"]["WEIR_JOURNAL_DIR"]
    assert sorted(journals.values()) == sorted(GATEWAYS)


@pytest.mark.parametrize("name", GATEWAYS)
def test_a_gateway_reads_its_environment(services: dict[str, compose_file.Json], name: str) -> None:
    """Every WEIR_ variable is a setting, and all of them parse together."""
    environment = services[name]["environment"]
    settings = load_settings(environment)
    known = {f"WEIR_{field.upper()}" for field in settings.__dataclass_fields__}
    assert {key for key in environment if key.startswith("WEIR_")} <= known
    assert listen_address(settings) == ("0.0.0.0", 8080)  # noqa: S104 - inside its container
    grace_s = settings.shutdown_grace_ms / 1000
    assert _seconds(services[name]["stop_grace_period"]) >= grace_s + 10
    assert _seconds(services["front"]["stop_grace_period"]) >= grace_s + 10


def test_gateways_differ_only_in_name_and_journal(services: dict[str, compose_file.Json]) -> None:
    """Two replicas of one thing."""
    first, second = (dict(services[name]) for name in GATEWAYS)
    for own in ("hostname", "volumes"):
        assert first.pop(own) != second.pop(own)
    assert first == second


def test_images_are_pinned(services: dict[str, compose_file.Json]) -> None:
    """Each by an exact version, never `latest`; ours are built from this repository."""
    for name, service in services.items():
        image, _, tag = service["image"].partition(":")
        assert re.match(r"v?\d+\.\d+(\.\d+)?", tag), (name, service["image"])
        assert (image in OURS) == ("build" in service)


def test_every_service_is_confined(services: dict[str, compose_file.Json]) -> None:
    """No service runs as root, writes to its root file system, may gain a capability or become
    more than it is, or takes all the machine's memory."""
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        assert "privileged" not in service, name
        assert "cap_add" not in service, name
        assert service["image"].startswith(OURS) or service["user"].split(":")[0] != "0", name
        assert service["restart"] in ("unless-stopped", "no"), name
        assert service["init"] is True, name
        if service["restart"] != "no":
            assert _seconds(service["stop_grace_period"]) >= 20, name


def test_health_is_asked_of_everything(services: dict[str, compose_file.Json]) -> None:
    """But of what ends by itself, and of the one image that cannot ask."""
    without = {name for name, service in services.items() if not _is_asked(service)}
    assert without == set(WITHOUT_HEALTH)
    for name in without & {each for each, service in services.items() if "build" in service}:
        assert services[name]["healthcheck"] == {"disable": True}, "it would have its image's"


def test_streams_end_at_their_gateways(services: dict[str, compose_file.Json]) -> None:
    """A stop reaches gateways at once: nothing has to be stopped before them, least of all what
    streams run through, which gives them their whole time."""
    waited_for = {other for service in services.values() for other in service.get("depends_on", {})}
    assert not waited_for & {*GATEWAYS, "front"}
    assert "depends_on" not in services["front"]
    text = (compose_file.ROOT / "deploy/haproxy/haproxy.cfg").read_text()
    (hard_stop_s,) = (int(found) for found in re.findall(r"(?m)^  hard-stop-after (\d+)s$", text))
    assert hard_stop_s > max(_seconds(services[name]["stop_grace_period"]) for name in GATEWAYS)
    assert _seconds(services["front"]["stop_grace_period"]) > hard_stop_s


def test_threads_do_not_follow_the_cores(services: dict[str, compose_file.Json]) -> None:
    """On a machine of many cores nothing runs into its own limit of processes."""
    for name in ("prometheus", "otel-collector", "grafana"):
        assert int(services[name]["environment"]["GOMAXPROCS"]) * 16 <= services[name]["pids_limit"]
    assert services["worker-local"]["environment"]["TOKIO_WORKER_THREADS"] == "4"
    text = (compose_file.ROOT / "deploy/haproxy/haproxy.cfg").read_text()
    assert re.findall(r"(?m)^  nbthread (\d+)$", text) == ["4"]


def test_no_log_fills_the_disk(services: dict[str, compose_file.Json]) -> None:
    """Whatever a service writes, it is rotated."""
    for name, service in services.items():
        assert service["logging"]["options"] == {"max-size": "20m", "max-file": "5"}, name


def test_ports_are_of_this_machine_alone(services: dict[str, compose_file.Json]) -> None:
    """Only three services are reached from outside their networks, each at 127.0.0.1."""
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert set(published) == {"front", "prometheus", "grafana"}
    for ports in published.values():
        assert all(port.startswith("127.0.0.1:") for port in ports)


def test_stores_and_workers_are_on_networks_without_a_way_out(
    services: dict[str, compose_file.Json],
) -> None:
    """And only what needs a store is beside it."""
    networks = compose_file.raw_compose()["networks"]
    assert networks["stores"] == networks["workers"] == {"internal": True}
    beside = {name for name, service in services.items() if "stores" in service["networks"]}
    ours = {name for name, service in services.items() if service["image"].startswith(OURS[0])}
    assert beside == {"postgres", "valkey", *ours}
    for name in ("postgres", "valkey", "worker-local", "sglang"):
        assert len(services[name]["networks"]) == 1


def test_our_commands_exist(
    services: dict[str, compose_file.Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of our images is one that this release has, with options that it knows."""
    seen = set()
    for name, service in services.items():
        for variable, value in service.get("environment", {}).items():
            monkeypatch.setenv(variable, value)
        for words in _our_commands(service):
            seen.add(" ".join(words[:2]))
            command: Any = weir
            rest = list(words)
            while isinstance(command, Group):
                command = command.commands.get(rest[0]) or weir.get_command(Context(weir), rest[0])
                assert command is not None, (name, rest)
                rest = rest[1:]
            command.make_context(name, rest)
    assert seen == {"migrate", "serve", "backend local", "model add", "worker add"}


def test_sglang_is_started_as_weir_starts_it(services: dict[str, compose_file.Json]) -> None:
    """With the flags that Weir relies on: what `weir backend sglang` would run."""
    command = services["sglang"]["command"]
    values = dict(flag.split("=", 1) for flag in command if "=" in flag)
    settings = SglangSettings(
        model_path=values["--model-path"],
        served_model_name=values["--served-model-name"],
        host="0.0.0.0",  # noqa: S104 - inside its container
        context_tokens=int(values["--context-length"]),
        kv_fraction=0.88,
        tensor_parallel_size=int(values["--tensor-parallel-size"]),
    )
    assert command == launch_arguments(settings)
    assert services["sglang"]["entrypoint"] == ["python3", "-m", "sglang.launch_server"]
    reserved = services["sglang"]["deploy"]["resources"]["reservations"]["devices"]
    assert reserved == [{"driver": "nvidia", "count": "1", "capabilities": ["gpu"]}]


def test_redis_keeps_what_it_was_told() -> None:
    """An append-only file, and nothing evicted; more memory for the container than for the data."""
    text = (compose_file.ROOT / "deploy/valkey/valkey.conf").read_text()
    lines = dict(line.split(maxsplit=1) for line in text.splitlines() if line[:1].isalpha())
    assert lines["appendonly"] == "yes"
    assert lines["appendfsync"] == "everysec"
    assert lines["maxmemory-policy"] == "noeviction"
    assert lines["maxmemory"] == "1gb"
    assert "requirepass" not in lines


def _mounts(
    services: dict[str, compose_file.Json],
) -> Iterator[tuple[str, str, str, str | None]]:
    for name, service in services.items():
        for volume in service.get("volumes", ()):
            source, target, *mode = volume.split(":")
            yield name, source, target, mode[0] if mode else None


def _our_commands(service: compose_file.Json) -> Iterator[list[str]]:
    if not service["image"].startswith(OURS):
        return
    if "entrypoint" in service:
        for line in service["command"][0].splitlines():
            program, *words = line.split()
            assert program == "weir"
            yield words
    else:
        yield service.get("command", ["serve"])


def _is_asked(service: compose_file.Json) -> bool:
    return "test" in service.get("healthcheck", {})


def _seconds(span: str) -> int:
    return int(span.removesuffix("s"))
