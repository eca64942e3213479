"""docker-compose.yml as Docker Compose would read it: merged, and its variables put in."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yml"
ENV_EXAMPLE = ROOT / ".env.example"
SECRETS = (
    "WEIR_POSTGRES_PASSWORD",
    "WEIR_REDIS_PASSWORD",
    "WEIR_CACHE_SALT_SECRET",
    "WEIR_GRAFANA_PASSWORD",
)
"""What has no default; the example leaves each of them empty."""

Json = dict[str, Any]
_REFERENCE = re.compile(r"\$(?:(\$)|\{([A-Z0-9_]+)(?:(:?[-?])([^}]*))?\})")


class VariableMissing(Exception):
    """A variable that must be set is not; the message names it."""


def raw_compose() -> Json:
    """The file with its anchors merged and its variables as they stand."""
    read: Json = yaml.safe_load(COMPOSE.read_text())
    return read


def compose(environment: Mapping[str, str]) -> Json:
    """The file with the variables of `environment`. Raises VariableMissing."""
    replaced: Json = _replaced(raw_compose(), environment)
    return replaced


def services(environment: Mapping[str, str]) -> dict[str, Json]:
    """Its services by name."""
    found: dict[str, Json] = compose(environment)["services"]
    return found


def example_environment() -> dict[str, str]:
    """What .env.example says."""
    lines = (line.strip() for line in ENV_EXAMPLE.read_text().splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def filled_environment() -> dict[str, str]:
    """The example with its secrets filled in, as whoever starts it does."""
    return example_environment() | dict.fromkeys(SECRETS, "5ec2e7" * 8)


def references(text: str) -> Iterator[tuple[str, str | None, str]]:
    """Each variable in a text: its name, its operator if any, and what follows that."""
    for escaped, name, operator, rest in _REFERENCE.findall(text):
        if not escaped:
            yield name, operator or None, rest


def interpolated(text: str, environment: Mapping[str, str]) -> str:
    """The text with its variables put in. Raises VariableMissing."""

    def value(found: re.Match[str]) -> str:
        escaped, name, operator, rest = found.groups()
        if escaped:
            return "$"
        known = environment.get(name)
        usable = bool(known) or (known is not None and not (operator or "").startswith(":"))
        if usable:
            return known or ""
        if operator in (":-", "-"):
            return str(rest)
        if operator in (":?", "?"):
            raise VariableMissing(name)
        raise VariableMissing(f"{name}, which has no default")

    return _REFERENCE.sub(value, text)


def _replaced(node: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(node, str):
        return interpolated(node, environment)
    if isinstance(node, dict):
        return {key: _replaced(value, environment) for key, value in node.items()}
    if isinstance(node, list):
        return [_replaced(value, environment) for value in node]
    return node
