"""Every label of every metric, and the values that it may have: a closed set, or what is
registered."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path

from prometheus_client.metrics_core import Metric

from billing.domain.money import CURRENCY_EXPONENTS
from billing.domain.usage_record import Outcome, UsageFlag
from gateway.domain.decisions import Kind
from gateway.serving.condition import WORDS
from gateway.serving.months import Rebuilt
from gateway.telemetry.error_answers import OTHER, SURFACES

ROOT = Path(__file__).resolve().parents[1]


def error_codes() -> set[str]:
    """Every `code` of an error that the code spells out."""
    found = {"internal_error"}
    for path in (ROOT / "gateway").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "code":
                found |= _texts(node.value)
            if isinstance(node, ast.Assign) and re.search(
                r"\bcode\b", ast.unparse(node.targets[0])
            ):
                found |= _texts(node.value)
    return found


def _texts(node: ast.AST) -> set[str]:
    values = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {value for value in values if isinstance(value, str)}


REGISTERED = ("model", "worker", "provider")
"""Labels whose values are what an administrator has registered."""
CLOSED: Mapping[str, Collection[str]] = {
    "check": {f"REC-{number}" for number in range(1, 8)},
    "code": error_codes() | {status.name.lower() for status in HTTPStatus if status >= 400},
    "currency": CURRENCY_EXPONENTS.keys(),
    "direction": {"cut", "grown", "kept", "alone", "beside", "restarted"},
    "draining": {"true", "false"},
    "flag": set(UsageFlag),
    "kind": {*Kind, "prompt", "cached_prompt", "output", "all", "batch", "tokens"},
    "measure": {"ttft", "tpot"},
    "mode": {"store", "held_share", "none"},
    "outcome": {*Outcome, "stored", "unread", "late"},
    "part": WORDS,
    "reason": {
        "queue_full", "no_place", "predicted", "wait_over", "store_away", "shutting_down",
        "no_worker", "client_left", "cancelled", "limit",
        "ratio", "failed", "fell_back", "retried", "slow",
    },
    "request_class": {"interactive", "batch", "any"},
    "result": {
        *Kind, *Rebuilt, "granted", "paused", "money_unknown", "unavailable", "taken", "failed",
        "given_back", "kept", "within", "over", "exported", "dropped",
    },
    "signal": {"traces", "metrics"},
    "simulated": {"true", "false"},
    "surface": {*SURFACES, OTHER},
    "threshold": {"80", "100"},
    "told_by": {"reply", "message", "renewal", "none"},
    "what": {"ticket", "place"},
}  # fmt: skip
OF_THE_BUILD = ("version", "python")
"""Of `weir_build_info`: one series."""


def strangers(
    families: Iterable[Metric], registered: Mapping[str, Collection[str]]
) -> set[tuple[str, str, str]]:
    """Metric, label and value of each that may not be there. `le` is a histogram's own."""
    return {
        (family.name, label, value)
        for family in families
        if family.name.startswith(("weir_", "metering_"))
        for sample in family.samples
        for label, value in sample.labels.items()
        if label not in ("le", *OF_THE_BUILD)
        and value not in (registered[label] if label in REGISTERED else CLOSED[label])
    }
