"""No label has a value that a client could invent, and none names a tenant, a key or a request."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import engine_events as events
import pytest
from memory_gateway import MemoryGateway
from metric_labels import CLOSED, OF_THE_BUILD, REGISTERED, error_codes, strangers
from msgspec.structs import replace
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase
from usage_examples import a_record

from gateway import telemetry
from gateway.telemetry.ended import observe_ended
from gateway.telemetry.going import GOING, SET_ANEW

CODE = Path(__file__).resolve().parents[4] / "gateway"
SAYS_WHO = re.compile(r"tenant|key_id|api_key|request_id|header|message|client")


def all_metrics() -> list[MetricWrapperBase]:
    """Every metric that the gateway defines."""
    for module in pkgutil.iter_modules(telemetry.__path__):
        importlib.import_module(f"gateway.telemetry.{module.name}")
    found = list(REGISTRY._collector_to_names)
    return [each for each in found if isinstance(each, MetricWrapperBase)]


def test_every_label_is_known_here() -> None:
    """A new one is a decision: what values it may have is written down in `metric_labels`."""
    used = {label for metric in all_metrics() for label in metric._labelnames}
    assert used == {*CLOSED, *REGISTERED, *OF_THE_BUILD}


def test_what_has_a_label_that_goes_is_cleared_or_forgotten() -> None:
    """Workers, providers and models are registered and removed; their series with them, also those
    of a metric that is added tomorrow."""
    for label in REGISTERED:
        having = {each._name for each in all_metrics() if label in each._labelnames}
        forgotten = {each._name for each in GOING[label]}
        anew = {each._name for each in SET_ANEW if label in each._labelnames}
        assert having == forgotten | anew


def test_no_code_of_an_error_is_made_up_as_it_goes() -> None:
    """All are spelled out, so that `weir_errors_total` has so many series."""
    codes = error_codes()
    assert {"rate_limit_exceeded", "invalid_api_key", "no_capacity", "internal_error"} <= codes
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)
    assert len(codes) < 80


def test_no_label_is_given_who_asked() -> None:
    """Whatever is handed to `labels` anywhere."""
    given = [
        ast.unparse(argument)
        for path in CODE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "labels"
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
    ]
    assert len(given) > 60
    assert [each for each in given if SAYS_WHO.search(each)] == []


@pytest.mark.parametrize("name", ["a-model-of-nobody", "m\n", "x" * 300])
async def test_a_client_cannot_make_a_series(name: str) -> None:
    """By a model that is not there, by its class, its user, its headers, or what it asks for."""
    gateway = MemoryGateway(events.answer(["a"]), events.answer(["a"]))
    headers = {b"x-weir-class": name.encode(), b"x-request-id": name.encode()}
    await gateway.post()
    before = {
        (sample.name, *sample.labels.items())
        for family in REGISTRY.collect()
        for sample in family.samples
    }
    await gateway.serve(gateway.a_client(user=name, metadata={"a": name}), headers=headers)
    await gateway.serve(gateway.a_client(model=name), headers=headers)
    await gateway.serve(gateway.a_client(service_tier=name))
    registered = {"model": {"m"}, "worker": {"w0"}, "provider": {"self"}}
    after = [
        family
        for family in REGISTRY.collect()
        if {(sample.name, *sample.labels.items()) for sample in family.samples} - before
    ]
    assert strangers(after, registered) == set()


def test_ten_thousand_tenants_that_end_a_request_each_leave_no_series_of_their_own() -> None:
    """Whatever their ids, keys and finish reasons."""

    def ends(number: int) -> None:
        record = a_record(tenant_id=f"t-{number}", api_key_id=f"k-{number}", cost_pico=number)
        observe_ended(replace(record, finish_reason=f"f-{number}", currency="USD"))

    ends(1)
    before = sum(len(family.samples) for family in REGISTRY.collect())
    for number in range(2, 10_001):
        ends(number)
    assert sum(len(family.samples) for family in REGISTRY.collect()) == before
