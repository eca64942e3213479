"""The directory's tables: tenants, keys, models, workers, hosted providers, users, the audit log.

What the tables promise beyond their columns lives in the migrations as triggers: `changed` grows
in the order of commits, `limits_version` grows with each change of its limits, directory rows are
never deleted, and the audit log is append-only, its ids and hashes drawn by the database.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    FetchedValue,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from billing.postgres.price_tables import plan_member, price

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
        "ix": "%(table_name)s_%(column_0_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

directory_change = Sequence("directory_change", metadata=metadata)
"""Numbers every change of a directory row. Drawn only under the directory's lock."""

DIRECTORY_LOCK = 0x57454952_0001
"""pg_advisory_xact_lock key that every writer of the directory holds until it has committed."""


def _created_at() -> Column[object]:
    return Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now())


def _changed() -> Column[int]:
    return Column("changed", BigInteger, nullable=False, index=True)


tenant = Table(
    "tenant",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("suspended_at", DateTime(timezone=True)),
    Column("resumed_change", BigInteger, nullable=False, server_default=text("0")),
    Column("currency", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("billing_profile", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("billing_terms", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("limits", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("limits_version", BigInteger, nullable=False),
    _changed(),
    _created_at(),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant_id", Text, ForeignKey("tenant.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("class", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("secret_hint", Text, nullable=False),
    Column("models", ARRAY(Text)),
    Column("ip_allow", ARRAY(Text)),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    Column("rotated_to", Text, ForeignKey("api_key.id")),
    Column("limits", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("limits_version", BigInteger, nullable=False),
    _changed(),
    _created_at(),
    UniqueConstraint("digest"),
    Index("api_key_tenant_id_id_idx", "tenant_id", "id"),
    CheckConstraint("class IN ('interactive', 'batch')", name="class"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
)

model = Table(
    "model",
    metadata,
    Column("id", Text, primary_key=True),
    Column("context_tokens", Integer, nullable=False),
    Column("max_output_tokens", Integer, nullable=False),
    Column("default_output_tokens", Integer, nullable=False),
    Column("removed_at", DateTime(timezone=True)),
    _changed(),
    _created_at(),
)

worker = Table(
    "worker",
    metadata,
    Column("id", Text, primary_key=True),
    Column("model", Text, ForeignKey("model.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("engine", Text, nullable=False),
    Column("api_key", Text),
    Column("draining", Boolean, nullable=False, server_default=text("false")),
    Column("class", Text),
    Column("removed_at", DateTime(timezone=True)),
    _changed(),
    _created_at(),
    CheckConstraint("class IN ('interactive', 'batch')", name="class"),
)

hosted_provider = Table(
    "hosted_provider",
    metadata,
    Column("name", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("api_key", Text),
    Column("models", JSONB, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("connect_timeout_ms", Integer, nullable=False),
    Column("first_event_timeout_ms", Integer, nullable=False),
    Column("stall_timeout_ms", Integer, nullable=False),
    Column("output_limit_field", Text, nullable=False),
    Column("extensions", ARRAY(Text), nullable=False),
    Column("removed_at", DateTime(timezone=True)),
    _changed(),
    _created_at(),
    CheckConstraint("removed_at IS NULL OR api_key IS NULL", name="removed"),
)

app_user = Table(
    "app_user",
    metadata,
    Column("id", Text, primary_key=True),
    Column("email", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("disabled_at", DateTime(timezone=True)),
    _created_at(),
    Column("tenant_id", Text, ForeignKey("tenant.id")),
    Column("failed_logins", Integer, nullable=False, server_default=text("0")),
    Column("locked_until", DateTime(timezone=True)),
    Column("last_login_at", DateTime(timezone=True)),
    Column("password_changed_at", DateTime(timezone=True)),
    CheckConstraint(
        "role IN ('admin', 'finance', 'operator', 'viewer', 'tenant_admin', 'tenant_member')",
        name="role",
    ),
    CheckConstraint(
        "(tenant_id IS NOT NULL) = (role IN ('tenant_admin', 'tenant_member'))", name="tenant"
    ),
    CheckConstraint("failed_logins >= 0", name="failed_logins"),
)
Index("app_user_email_key", func.lower(app_user.c.email), unique=True)

user_token = Table(
    "user_token",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("user_id", Text, ForeignKey("app_user.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    _created_at(),
    Column("scopes", ARRAY(Text)),
    Column("last_used_at", DateTime(timezone=True)),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    CheckConstraint("cardinality(scopes) > 0", name="scopes"),
)

user_session = Table(
    "user_session",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("user_id", Text, ForeignKey("app_user.id"), nullable=False, index=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    Column("address", Text),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    CheckConstraint("created_at <= seen_at AND created_at < expires_at", name="instants"),
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject_kind", Text, nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("before", JSONB),
    Column("after", JSONB),
    Column("tenant_id", Text),
    Column("change_id", Text),
    Column("form", SmallInteger, nullable=False, server_default=text("1")),
    Column("hash", LargeBinary, nullable=False, server_default=FetchedValue()),
    Index("audit_log_subject_kind_subject_id_id_idx", "subject_kind", "subject_id", "id"),
    Index("audit_log_actor_id_idx", "actor", "id"),
    Index("audit_log_action_id_idx", "action", "id", postgresql_ops={"action": "text_pattern_ops"}),
    Index("audit_log_subject_id_id_idx", "subject_id", "id"),
    Index("audit_log_tenant_id_id_idx", "tenant_id", "id"),
    Index("audit_log_change_id_idx", "change_id"),
    Index("audit_log_at_id_idx", "at", "id"),
)

DIRECTORY_TABLES = (tenant, api_key, model, worker, hosted_provider, price, plan_member)
"""What gateways hold in memory and follow by `changed`."""
