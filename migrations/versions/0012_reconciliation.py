"""Roll-ups of usage by quarters of an hour, what of them is out of date, and what reconciliation
found.

Whoever writes a usage record marks its quarter in the same transaction: a trigger does, so that
gateways of before do it too, and whoever changes a row by hand. Marks are only ever added, so that
no two writers wait for each other; whoever makes the roll-ups anew takes them away.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

BUCKET = """
CREATE FUNCTION usage_bucket(at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date_bin('15 minutes', at, timestamptz '2000-01-01 00:00:00+00')
"""

ROLLUP = """
CREATE TABLE usage_rollup (
    bucket timestamptz NOT NULL,
    tenant_id text NOT NULL,
    api_key_id text NOT NULL,
    model text NOT NULL,
    class text NOT NULL,
    provider text NOT NULL,
    currency text,
    price_id bigint,
    billable boolean NOT NULL,
    final boolean NOT NULL,
    requests bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    cached_prompt_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    sequences bigint NOT NULL,
    cost_pico numeric NOT NULL,
    list_cost_pico numeric NOT NULL,
    unpriced_requests bigint NOT NULL,
    CONSTRAINT usage_rollup_bucket_check CHECK (bucket = usage_bucket(bucket)),
    CONSTRAINT usage_rollup_requests_check CHECK (requests > 0)
)
"""
ROLLUP_KEY = """
CREATE UNIQUE INDEX usage_rollup_key ON usage_rollup (
    bucket, tenant_id, api_key_id, model, class, provider, currency, price_id, billable, final
) NULLS NOT DISTINCT
"""

DIRTY = """
CREATE TABLE usage_rollup_dirty (
    id bigint GENERATED ALWAYS AS IDENTITY,
    bucket timestamptz NOT NULL,
    tenant_id text NOT NULL,
    CONSTRAINT usage_rollup_dirty_pkey PRIMARY KEY (id)
)
"""
# A quarter that is written to for long has many marks, which are taken at once.
DIRTY_INDEX = """
CREATE INDEX usage_rollup_dirty_quarter_idx ON usage_rollup_dirty (bucket, tenant_id)
"""

RUN = """
CREATE TABLE reconcile_run (
    id bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    from_at timestamptz NOT NULL,
    to_at timestamptz NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT now(),
    findings integer NOT NULL,
    verdicts jsonb NOT NULL,
    CONSTRAINT reconcile_run_pkey PRIMARY KEY (id),
    CONSTRAINT reconcile_run_kind_check CHECK (kind IN ('quarter', 'day')),
    CONSTRAINT reconcile_run_period_check CHECK (from_at < to_at)
)
"""
RUN_INDEX = "CREATE INDEX reconcile_run_started_at_idx ON reconcile_run (started_at)"

FINDING = """
CREATE TABLE reconcile_finding (
    run_id bigint NOT NULL,
    number integer NOT NULL,
    check_id text NOT NULL,
    subject text NOT NULL,
    request_id uuid,
    size bigint NOT NULL,
    unit text NOT NULL,
    what text NOT NULL,
    CONSTRAINT reconcile_finding_pkey PRIMARY KEY (run_id, number),
    CONSTRAINT reconcile_finding_run_id_fkey
        FOREIGN KEY (run_id) REFERENCES reconcile_run (id) ON DELETE CASCADE
)
"""

# Rows that came by another way than a journal are few, and asked for by their gateway.
WITHOUT_PLACE = """
CREATE INDEX usage_record_without_place_idx ON usage_record (gateway_id) WHERE boot IS NULL
"""

MARK = """
CREATE FUNCTION usage_rollup_mark() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO usage_rollup_dirty (bucket, tenant_id)
    SELECT DISTINCT usage_bucket(admitted_at), tenant_id FROM changed;
    RETURN NULL;
END $$
"""
# A row that is changed by hand may leave its tenant for another: both are marked.
MARK_MOVED = """
CREATE FUNCTION usage_rollup_mark_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO usage_rollup_dirty (bucket, tenant_id)
    SELECT usage_bucket(admitted_at), tenant_id FROM changed
    UNION SELECT usage_bucket(admitted_at), tenant_id FROM before;
    RETURN NULL;
END $$
"""
WHEN = (
    ("insert", "NEW TABLE AS changed", "usage_rollup_mark"),
    ("update", "OLD TABLE AS before NEW TABLE AS changed", "usage_rollup_mark_moved"),
    ("delete", "OLD TABLE AS changed", "usage_rollup_mark"),
)

# The trigger's lock is held until the transaction ends: nothing is written between it and this.
MARK_ALL = """
INSERT INTO usage_rollup_dirty (bucket, tenant_id)
SELECT DISTINCT usage_bucket(admitted_at), tenant_id FROM usage_record
"""


def upgrade() -> None:
    """Add them, and mark the quarters of all records that there are: gateways make their roll-ups.
    Shipments wait while it reads them, from an index."""
    op.execute(LOCK_TIMEOUT)
    tables = (BUCKET, ROLLUP, ROLLUP_KEY, DIRTY, DIRTY_INDEX, RUN, RUN_INDEX, FINDING)
    for statement in (*tables, WITHOUT_PLACE, MARK, MARK_MOVED):
        op.execute(statement)
    for event, rows, function in WHEN:
        op.execute(
            f"CREATE TRIGGER usage_rollup_mark_{event} AFTER {event.upper()} ON usage_record"
            f" REFERENCING {rows} FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
        )
    op.execute(MARK_ALL)


def downgrade() -> None:
    """Drop them. Roll-ups can be made again from the records, findings cannot."""
    op.execute(LOCK_TIMEOUT)
    for event, _, _ in WHEN:
        op.execute(f"DROP TRIGGER usage_rollup_mark_{event} ON usage_record")
    op.execute("DROP FUNCTION usage_rollup_mark()")
    op.execute("DROP FUNCTION usage_rollup_mark_moved()")
    op.execute("DROP INDEX usage_record_without_place_idx")
    op.execute("DROP TABLE reconcile_finding, reconcile_run, usage_rollup_dirty, usage_rollup")
    op.execute("DROP FUNCTION usage_bucket(timestamptz)")
