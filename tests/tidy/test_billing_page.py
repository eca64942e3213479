"""What `docs/billing.md` and `docs/http-api.md` say of alerts and of OpenAI's endpoints is what the
code does."""

import re
from pathlib import Path

from prometheus_client import Counter

from billing.domain.budget_alert import THRESHOLDS_PERCENT
from billing.postgres.budget_alerts import SENT_FOR
from gateway.adapters.alert_webhook import TIMEOUT_S
from gateway.adapters.budget_watch import FIRST_WAIT, LATE, LEASE
from gateway.http.organization_query import COMPLETIONS, COSTS
from gateway.settings import Settings
from gateway.telemetry import budgets

ROOT = Path(__file__).resolve().parents[2]
BILLING = (ROOT / "docs" / "billing.md").read_text()
HTTP = (ROOT / "docs" / "http-api.md").read_text()
SETTING = re.compile(r"^\| `WEIR_(ALERT_\w+)` \| ([^|]+) \|", re.MULTILINE)
METRIC = re.compile(r"^\| `(weir_budget_\w+)\{(\w+)\}` \|", re.MULTILINE)
PARAMETER = re.compile(r"^\| (?:`(\w+)`|filters) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_settings_have_their_defaults() -> None:
    """Each that is of alerts, and no other; none is an empty text."""
    known = {
        name.upper(): field.default or "none"
        for name, field in Settings.__dataclass_fields__.items()
        if name.startswith("alert_")
    }
    assert dict(SETTING.findall(BILLING)) == known


def test_metrics_are_those_of_the_code() -> None:
    """With their labels."""
    counters = [each for each in vars(budgets).values() if isinstance(each, Counter)]
    assert dict(METRIC.findall(BILLING)) == {
        f"{each._name}_total": each._labelnames[0] for each in counters
    }


def test_numbers_are_those_of_the_code() -> None:
    """Thresholds and times."""
    assert f"threshold ({', '.join(map(str, THRESHOLDS_PERCENT))})" in BILLING
    assert f"For {LATE.seconds // 60} minutes after its end" in BILLING
    assert f"within {TIMEOUT_S:.0f} s" in BILLING
    assert f"after {FIRST_WAIT.seconds} s, {2 * FIRST_WAIT.seconds} s" in BILLING
    assert f"in hand, for {LEASE.seconds} s" in BILLING
    assert f"for {SENT_FOR.days * 24} hours" in BILLING


def test_parameters_are_those_of_the_endpoints() -> None:
    """Groups, filters, widths and how many buckets a page has."""
    page = HTTP.partition("## `/v1/organization/")[2].partition("\n## ")[0]
    rows = {name or "filters": cells for name, *cells in PARAMETER.findall(page)}
    for column, endpoint in enumerate((COMPLETIONS, COSTS)):
        batch = ("batch",) if endpoint.takes_batch else ()
        for name, known in (
            ("group_by", endpoint.groups),
            ("filters", (*endpoint.filters, *batch)),
        ):
            assert re.findall(r"`(\w+)`", rows[name][column]) == list(known)
        assert set(re.findall(r"`(\w+)`", rows["bucket_width"][column])) == set(endpoint.limits)
        for limit in endpoint.limits.values():
            assert {str(limit.usual), str(limit.most)} <= set(
                re.findall(r"\d+", rows["limit"][column])
            )
