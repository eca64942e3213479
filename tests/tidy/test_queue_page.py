"""`docs/queue.md` names what the code shows of the queue."""

import re
from pathlib import Path

from prometheus_client.metrics import MetricWrapperBase

from gateway.http import openapi_live, openapi_v1
from gateway.telemetry import pools, queue

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "queue.md").read_text()
ROW = re.compile(r"^\| ((?:`weir_\w+`(?:, )?)+) \| ([^|]+) \|", re.MULTILINE)


def test_its_metrics_are_those_of_the_code() -> None:
    """All of them, and no other, each with its labels."""
    of_code = {
        metric._name: metric._labelnames
        for module in (pools, queue)
        for metric in vars(module).values()
        if isinstance(metric, MetricWrapperBase)
    }
    of_page: dict[str, tuple[str, ...]] = {}
    labels: tuple[str, ...] = ()
    for names, shown in ROW.findall(PAGE):
        labels = labels if shown == "the same" else tuple(re.findall(r"`(\w+)`", shown))
        for name in re.findall(r"`(\w+)`", names):
            of_page[name.removesuffix("_total")] = labels
    assert of_page == of_code


def test_its_fields_are_those_of_the_answers() -> None:
    """What it says of `/v1/limits` and `/admin/v1/live`."""
    structs = (
        openapi_v1.OwnQueue, openapi_v1.ModelQueue, openapi_v1.ClassQueue, openapi_v1.NextInQueue,
        openapi_live.LivePool, openapi_live.LiveClass, openapi_live.LivePlaces,
    )  # fmt: skip
    for struct in structs:
        for field in struct.__struct_fields__:
            assert re.search(rf"`(?:[\w….]+\.)?{field}`", PAGE), (struct, field)
