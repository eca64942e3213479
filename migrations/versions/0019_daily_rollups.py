"""Roll-ups of days and weeks, by tenant, by key and in detail, and of quarters of an hour over all
tenants.

They are made of the roll-ups of quarters, by gateways, once a day or a quarter is over. Triggers
mark what is out of date, so that a gateway of the release before marks it too.
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

DAY_OF = """
CREATE FUNCTION usage_day(at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date_bin('1 day', at, timestamptz '2000-01-01 00:00:00+00')
"""
# From Monday on.
WEEK_OF = """
CREATE FUNCTION usage_week(at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date_bin('7 days', at, timestamptz '2000-01-03 00:00:00+00')
"""
COUNTS = """
    requests bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    cached_prompt_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    sequences bigint NOT NULL,
    cost_pico numeric NOT NULL,
    list_cost_pico numeric NOT NULL,
    unpriced_requests bigint NOT NULL,
"""
# Sums of the same, each in a table of its own: to read the narrowest is what makes it quick.
COARSE = f"""
CREATE TABLE usage_rollup_coarse (
    level text NOT NULL,
    start timestamptz NOT NULL,
    tenant_id text NOT NULL,
    api_key_id text,
    model text,
    class text,
    provider text,
    currency text,
    price_id bigint,
    billable boolean NOT NULL,
    final boolean NOT NULL,
    {COUNTS}
    CONSTRAINT usage_rollup_coarse_start_check CHECK (
        start = CASE WHEN level LIKE 'week_%' THEN usage_week(start) ELSE usage_day(start) END
    ),
    CONSTRAINT usage_rollup_coarse_level_check CHECK (
        (level LIKE '%_tenant') = (api_key_id IS NULL)
        AND (level = 'day_detail') = (model IS NOT NULL)
        AND (level = 'day_detail') = (class IS NOT NULL)
        AND (level = 'day_detail') = (provider IS NOT NULL)
        AND (level = 'day_detail' OR price_id IS NULL)
    ),
    CONSTRAINT usage_rollup_coarse_requests_check CHECK (requests > 0)
) PARTITION BY LIST (level)
"""
LEVELS = ("day_detail", "day_key", "day_tenant", "week_key", "week_tenant")
COARSE_KEY = """
CREATE UNIQUE INDEX usage_rollup_coarse_key ON usage_rollup_coarse (
    tenant_id, start, api_key_id, model, class, provider, currency, price_id, billable, final, level
) NULLS NOT DISTINCT
"""
COARSE_INDEX = "CREATE INDEX usage_rollup_coarse_start_idx ON usage_rollup_coarse (start)"
DIRTY = """
CREATE TABLE usage_rollup_{span}_dirty (
    start timestamptz NOT NULL,
    tenant_id text NOT NULL,
    CONSTRAINT usage_rollup_{span}_dirty_pkey PRIMARY KEY (start, tenant_id)
)
"""

TOTAL = f"""
CREATE TABLE usage_rollup_total (
    bucket timestamptz NOT NULL,
    model text NOT NULL,
    class text NOT NULL,
    provider text NOT NULL,
    currency text,
    price_id bigint,
    billable boolean NOT NULL,
    final boolean NOT NULL,
    {COUNTS}
    CONSTRAINT usage_rollup_total_bucket_check CHECK (bucket = usage_bucket(bucket)),
    CONSTRAINT usage_rollup_total_requests_check CHECK (requests > 0)
)
"""
TOTAL_KEY = """
CREATE UNIQUE INDEX usage_rollup_total_key ON usage_rollup_total (
    bucket, model, class, provider, currency, price_id, billable, final
) NULLS NOT DISTINCT
"""
TOTAL_DIRTY = """
CREATE TABLE usage_rollup_total_dirty (
    bucket timestamptz NOT NULL,
    CONSTRAINT usage_rollup_total_dirty_pkey PRIMARY KEY (bucket)
)
"""

MARK = """
CREATE FUNCTION usage_rollup_mark_coarser() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO usage_rollup_day_dirty (start, tenant_id)
    SELECT DISTINCT usage_day(bucket), tenant_id FROM changed ON CONFLICT DO NOTHING;
    INSERT INTO usage_rollup_total_dirty (bucket)
    SELECT DISTINCT bucket FROM changed ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
"""
# By hand only: nothing that Weir does changes a roll-up where it lies.
MARK_MOVED = """
CREATE FUNCTION usage_rollup_mark_coarser_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO usage_rollup_day_dirty (start, tenant_id)
    SELECT usage_day(bucket), tenant_id FROM changed
    UNION SELECT usage_day(bucket), tenant_id FROM before ON CONFLICT DO NOTHING;
    INSERT INTO usage_rollup_total_dirty (bucket)
    SELECT bucket FROM changed UNION SELECT bucket FROM before ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
"""
WHEN = (
    ("insert", "NEW TABLE AS changed", "usage_rollup_mark_coarser"),
    ("update", "OLD TABLE AS before NEW TABLE AS changed", "usage_rollup_mark_coarser_moved"),
    ("delete", "OLD TABLE AS changed", "usage_rollup_mark_coarser"),
)
# The triggers' lock is held until the transaction ends: nothing is made between it and these.
MARK_ALL = (
    """
INSERT INTO usage_rollup_day_dirty (start, tenant_id)
SELECT DISTINCT usage_day(bucket), tenant_id FROM usage_rollup
""",
    "INSERT INTO usage_rollup_total_dirty (bucket) SELECT DISTINCT bucket FROM usage_rollup",
)


def upgrade() -> None:
    """Add them, and mark whatever there are roll-ups of: gateways make them. Roll-ups wait while it
    reads all of these, requests do not."""
    op.execute(LOCK_TIMEOUT)
    for statement in (DAY_OF, WEEK_OF, COARSE, COARSE_KEY, COARSE_INDEX):
        op.execute(statement)
    for level in LEVELS:
        op.execute(
            f"CREATE TABLE usage_rollup_{level} PARTITION OF usage_rollup_coarse"
            f" FOR VALUES IN ('{level}')"
        )
    for span in ("day", "week"):
        op.execute(DIRTY.format(span=span))
    for statement in (TOTAL, TOTAL_KEY, TOTAL_DIRTY, MARK, MARK_MOVED):
        op.execute(statement)
    for event, rows, function in WHEN:
        op.execute(
            f"CREATE TRIGGER usage_rollup_mark_coarser_{event} AFTER {event.upper()}"
            f" ON usage_rollup REFERENCING {rows} FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
        )
    for statement in MARK_ALL:
        op.execute(statement)


def downgrade() -> None:
    """Take them away; what they summed up is there still."""
    op.execute(LOCK_TIMEOUT)
    for event, _, _ in WHEN:
        op.execute(f"DROP TRIGGER usage_rollup_mark_coarser_{event} ON usage_rollup")
    op.execute("DROP FUNCTION usage_rollup_mark_coarser()")
    op.execute("DROP FUNCTION usage_rollup_mark_coarser_moved()")
    op.execute(
        "DROP TABLE usage_rollup_total_dirty, usage_rollup_total, usage_rollup_week_dirty,"
        " usage_rollup_day_dirty, usage_rollup_coarse"
    )
    for span in ("week", "day"):
        op.execute(f"DROP FUNCTION usage_{span}(timestamptz)")
