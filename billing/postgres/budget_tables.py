"""The table of alerts about budgets, as queries name it. Migrations 0015 and 0018 make it."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

from billing.postgres.reconcile_tables import metadata

__all__ = ["budget_alert", "metadata"]

_INSTANT = DateTime(timezone=True)


def _check(name: str, condition: str) -> CheckConstraint:
    return CheckConstraint(condition, name=name)


budget_alert = Table(
    "budget_alert",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant_id", Text, nullable=False),
    Column("api_key_id", Text),
    Column("model", Text),
    Column("month", Text, nullable=False),
    Column("period_start", _INSTANT, nullable=False),
    Column("period_end", _INSTANT, nullable=False),
    Column("currency", Text, nullable=False),
    Column("threshold_percent", Integer, nullable=False),
    Column("limit_pico", Numeric, nullable=False),
    Column("spent_pico", Numeric, nullable=False),
    Column("unpriced_requests", BigInteger, nullable=False),
    Column("noticed_at", _INSTANT, nullable=False, server_default=func.now()),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("next_attempt_at", _INSTANT, nullable=False, server_default=func.now()),
    Column("delivered_at", _INSTANT),
    UniqueConstraint(
        "tenant_id",
        "api_key_id",
        "model",
        "month",
        "currency",
        "threshold_percent",
        "limit_pico",
        name="budget_alert_once_key",
        postgresql_nulls_not_distinct=True,
    ),
    _check("period", "period_start < period_end"),
    _check("threshold", "threshold_percent IN (80, 100)"),
    _check(
        "amounts",
        "limit_pico >= 0 AND spent_pico > 0 AND spent_pico * 100 >= limit_pico * threshold_percent",
    ),
    _check("attempts", "attempts >= 0 AND unpriced_requests >= 0"),
    Index("budget_alert_tenant_id_idx", "tenant_id", "id"),
    Index(
        "budget_alert_to_send_idx",
        "next_attempt_at",
        postgresql_where=text("delivered_at IS NULL"),
    ),
)
"""`api_key_id` and `model` say whose budget it is: both NULL, the tenant's. Amounts are pico-units,
as they were when it was noticed; `unpriced_requests` are in neither. A month is told of by its
name: of another time zone it is the same, whatever its bounds."""
