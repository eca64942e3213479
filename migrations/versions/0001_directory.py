"""The directory: tenants, keys, models, workers, users, and the append-only audit log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

DIRECTORY_TABLES = ("tenant", "api_key", "model", "worker")
TABLES_WITH_LIMITS = ("tenant", "api_key")

TRIGGER_FUNCTIONS = {
    # A statement trigger locks before any row is touched, so that two writers cannot deadlock
    # between the lock and a row; the row trigger then numbers what the statement writes.
    "directory_lock": """
BEGIN
    PERFORM pg_advisory_xact_lock(x'574549520001'::bigint);
    RETURN NULL;
END""",
    # Epoch microseconds keep the numbers growing also where an older backup was restored: gateways
    # and Redis may still hold the number of a change that the backup has lost.
    "directory_number_change": """
DECLARE
    drawn bigint := nextval('directory_change');
    epoch_us bigint := floor(extract(epoch FROM clock_timestamp()) * 1000000);
BEGIN
    NEW.changed := greatest(drawn, epoch_us);
    IF NEW.changed > drawn THEN
        PERFORM setval('directory_change', NEW.changed);
    END IF;
    RETURN NEW;
END""",
    # Epoch milliseconds for the same reason, as Redis compares the versions of limits.
    "directory_version_limits": """
DECLARE
    epoch_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.limits_version := epoch_ms;
    ELSIF NEW.limits IS DISTINCT FROM OLD.limits THEN
        NEW.limits_version := greatest(OLD.limits_version + 1, epoch_ms);
    ELSE
        NEW.limits_version := OLD.limits_version;
    END IF;
    RETURN NEW;
END""",
    # A gateway that follows changes would never learn of a row that is gone.
    "directory_refuse_delete": """
BEGIN
    RAISE EXCEPTION 'rows of % are marked, never deleted', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END""",
    "audit_log_append_only": """
BEGIN
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'restrict_violation';
END""",
}


def upgrade() -> None:
    """Create the directory's tables and what guards them."""
    op.execute(sa.schema.CreateSequence(sa.Sequence("directory_change")))
    _create_tenants()
    _create_fleet()
    _create_users()
    _create_audit_log()
    for name, body in TRIGGER_FUNCTIONS.items():
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $${body} $$")
    _create_triggers()


def downgrade() -> None:
    """Drop all of it."""
    for table in ("audit_log", "user_token", "app_user", "worker", "model", "api_key", "tenant"):
        op.drop_table(table)
    for name in TRIGGER_FUNCTIONS:
        op.execute(f"DROP FUNCTION {name}()")
    op.execute(sa.schema.DropSequence(sa.Sequence("directory_change")))


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _instant(name: str, *, default_now: bool = False) -> sa.Column[object]:
    return sa.Column(
        name,
        sa.DateTime(timezone=True),
        nullable=not default_now,
        server_default=sa.func.now() if default_now else None,
    )


def _limits() -> tuple[sa.Column[object], sa.Column[int]]:
    return (
        sa.Column("limits", JSONB(), nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.Column("limits_version", sa.BigInteger(), nullable=False),
    )


def _changed() -> sa.Column[int]:
    return sa.Column("changed", sa.BigInteger(), nullable=False)


def _create_tenants() -> None:
    op.create_table(
        "tenant",
        _text("id"),
        _text("name"),
        _instant("suspended_at"),
        _text("currency"),
        _text("time_zone"),
        sa.Column(
            "billing_profile", JSONB(), nullable=False, server_default=sa.text("'{}'::jsonb")
        ),
        *_limits(),
        _changed(),
        _instant("created_at", default_now=True),
        sa.PrimaryKeyConstraint("id", name="tenant_pkey"),
    )
    op.create_table(
        "api_key",
        _text("id"),
        _text("tenant_id"),
        _text("name"),
        _text("class"),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        _text("secret_hint"),
        sa.Column("models", ARRAY(sa.Text()), nullable=True),
        sa.Column("ip_allow", ARRAY(sa.Text()), nullable=True),
        _instant("expires_at"),
        _instant("revoked_at"),
        _text("rotated_to", nullable=True),
        *_limits(),
        _changed(),
        _instant("created_at", default_now=True),
        sa.PrimaryKeyConstraint("id", name="api_key_pkey"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="api_key_tenant_id_fkey"),
        sa.ForeignKeyConstraint(["rotated_to"], ["api_key.id"], name="api_key_rotated_to_fkey"),
        sa.UniqueConstraint("digest", name="api_key_digest_key"),
        sa.CheckConstraint("class IN ('interactive', 'batch')", name="api_key_class_check"),
        sa.CheckConstraint("octet_length(digest) = 32", name="api_key_digest_check"),
    )
    op.create_index("api_key_tenant_id_id_idx", "api_key", ["tenant_id", "id"])


def _create_fleet() -> None:
    op.create_table(
        "model",
        _text("id"),
        sa.Column("context_tokens", sa.Integer(), nullable=False),
        sa.Column("max_output_tokens", sa.Integer(), nullable=False),
        sa.Column("default_output_tokens", sa.Integer(), nullable=False),
        _instant("removed_at"),
        _changed(),
        _instant("created_at", default_now=True),
        sa.PrimaryKeyConstraint("id", name="model_pkey"),
    )
    op.create_table(
        "worker",
        _text("id"),
        _text("model"),
        _text("url"),
        _text("kind"),
        _text("engine"),
        _text("api_key", nullable=True),
        sa.Column("draining", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        _instant("removed_at"),
        _changed(),
        _instant("created_at", default_now=True),
        sa.PrimaryKeyConstraint("id", name="worker_pkey"),
        sa.ForeignKeyConstraint(["model"], ["model.id"], name="worker_model_fkey"),
    )


def _create_users() -> None:
    op.create_table(
        "app_user",
        _text("id"),
        _text("email"),
        _text("role"),
        _text("password_hash"),
        _instant("disabled_at"),
        _instant("created_at", default_now=True),
        sa.PrimaryKeyConstraint("id", name="app_user_pkey"),
        sa.CheckConstraint(
            "role IN ('admin', 'finance', 'operator', 'viewer')", name="app_user_role_check"
        ),
    )
    op.create_index("app_user_email_key", "app_user", [sa.text("lower(email)")], unique=True)
    op.create_table(
        "user_token",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        _text("user_id"),
        _text("name"),
        _instant("expires_at"),
        _instant("revoked_at"),
        _instant("created_at", default_now=True),
        sa.PrimaryKeyConstraint("digest", name="user_token_pkey"),
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"], name="user_token_user_id_fkey"),
        sa.CheckConstraint("octet_length(digest) = 32", name="user_token_digest_check"),
    )
    op.create_index("user_token_user_id_idx", "user_token", ["user_id"])


def _create_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        _instant("at", default_now=True),
        _text("actor"),
        _text("action"),
        _text("subject_kind"),
        _text("subject_id"),
        sa.Column("before", JSONB(), nullable=True),
        sa.Column("after", JSONB(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="audit_log_pkey"),
    )
    op.create_index(
        "audit_log_subject_kind_subject_id_id_idx",
        "audit_log",
        ["subject_kind", "subject_id", "id"],
    )


def _create_triggers() -> None:
    for table in DIRECTORY_TABLES:
        op.create_index(f"{table}_changed_idx", table, ["changed"])
        for name, event, scope, function in (
            ("lock", "INSERT OR UPDATE", "STATEMENT", "directory_lock"),
            ("number_change", "INSERT OR UPDATE", "ROW", "directory_number_change"),
            ("refuse_delete", "DELETE OR TRUNCATE", "STATEMENT", "directory_refuse_delete"),
        ):
            op.execute(
                f"CREATE TRIGGER {table}_{name} BEFORE {event} ON {table} "
                f"FOR EACH {scope} EXECUTE FUNCTION {function}()"
            )
    for table in TABLES_WITH_LIMITS:
        op.execute(
            f"CREATE TRIGGER {table}_version_limits BEFORE INSERT OR UPDATE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION directory_version_limits()"
        )
    op.execute(
        "CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_log_append_only()"
    )
