"""OpenAI's usage and costs endpoints of a running system, read with OpenAI's own SDK."""

import time
from decimal import Decimal
from typing import Any

import openai
from weir_dev import WeirDev

from billing.domain.money import PICO_PER_UNIT

WITHIN_S = 5.0


def client_of(system: WeirDev, secret: str, *, gateway: int = 0) -> openai.OpenAI:
    """The SDK as it is, pointed at a gateway."""
    return openai.OpenAI(
        api_key=system.key(), admin_api_key=secret, base_url=system.gateway(gateway) + "/v1"
    )


def results_of(page: Any) -> list[Any]:
    """Of all buckets of a page."""
    assert not page.has_more
    return [result for bucket in page.data for result in bucket.results]


def used(client: openai.OpenAI, start_s: int, requests: int) -> Any:
    """What was used since, in one result, once so many requests have been shipped."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        page = client.admin.organization.usage.completions(
            start_time=start_s, group_by=["project_id", "model"]
        )
        results = results_of(page)
        if sum(each.num_model_requests for each in results) == requests:
            (result,) = results
            return result
        assert time.monotonic() < deadline, page


async def test_what_a_tenant_used_is_what_it_is_told(simulated: WeirDev) -> None:
    """INV-12: by its key it sees what /v1/usage says and nothing of others; finance sees the same
    of it, and what it cost to the last digit, on any gateway."""
    start_s = int(time.time()) - 60
    client = client_of(simulated, simulated.key())
    for _ in range(2):
        client.chat.completions.create(
            model=simulated.model,
            max_tokens=4,
            messages=[{"role": "user", "content": "How wide is this river?"}],
        )
    result = used(client, start_s, 2)
    assert (result.project_id, result.model) == (simulated.tenant, simulated.model)
    url = simulated.gateway() + "/v1/usage?group_by=model"
    (own,) = simulated.request("GET", url, token=simulated.key()).json["data"]
    assert own["prompt_tokens"] > own["output_tokens"] > 0
    for name, count in (
        ("prompt_tokens", result.input_tokens),
        ("cached_prompt_tokens", result.input_cached_tokens),
        ("output_tokens", result.output_tokens),
        ("requests", result.num_model_requests),
    ):
        assert own[name] == count
    other = simulated.with_new_tenant()
    assert not results_of(
        client_of(other, other.key()).admin.organization.usage.completions(start_time=start_s)
    )
    token = simulated.ready["users"]["finance"]["token"]
    finance = client_of(simulated, token, gateway=1).admin.organization.usage
    (whole,) = results_of(finance.costs(start_time=start_s, project_ids=[simulated.tenant]))
    lines = results_of(
        finance.costs(start_time=start_s, project_ids=[simulated.tenant], group_by=["line_item"])
    )
    rows = await simulated.sql(
        "SELECT cost_pico FROM usage_records WHERE tenant_id = $1", simulated.tenant
    )
    wanted = sum(row["cost_pico"] for row in rows)
    assert wanted > 0
    for found in ([whole], lines):
        picos = [round(Decimal(str(each.amount.value)) * PICO_PER_UNIT) for each in found]
        assert sum(picos) == wanted
        assert {each.amount.currency for each in found} == {"usd"}
