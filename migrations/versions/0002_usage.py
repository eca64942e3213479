"""Usage: records and attempts by month, journal watermarks, dead letters, the contract's views."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

PARTITION_MONTHS_AHEAD = 3

# to_timestamp() is immutable where `timestamptz + interval` is not. A double holds these
# milliseconds exactly enough: its error at today's dates is an eighth of a microsecond.
TIME_FUNCTIONS = (
    """
CREATE FUNCTION unix_ms_time(unix_ms bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp(unix_ms / 1000.0::double precision)
""",
    """
CREATE FUNCTION uuid_v7_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN substr(id::text, 15, 1) = '7' THEN
    unix_ms_time(('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint)
END
""",
)

USAGE_RECORD = """
CREATE TABLE usage_record (
    request_id uuid NOT NULL,
    admitted_at timestamptz NOT NULL,
    tenant_id text NOT NULL,
    api_key_id text NOT NULL,
    model text NOT NULL,
    class text NOT NULL,
    first_token_at timestamptz,
    ended_at timestamptz NOT NULL,
    prompt_tokens integer NOT NULL,
    cached_prompt_tokens integer NOT NULL,
    output_tokens integer NOT NULL,
    reasoning_tokens integer NOT NULL,
    sequences integer NOT NULL,
    queue_ms integer NOT NULL,
    ttft_ms integer,
    tpot_us integer,
    itl_max_us integer,
    outcome text NOT NULL,
    final boolean NOT NULL,
    finish_reason text,
    usage_source text NOT NULL,
    usage_flags text[] NOT NULL,
    provider text NOT NULL,
    worker_id text,
    attempts integer NOT NULL,
    billable boolean NOT NULL,
    billing_policy integer NOT NULL,
    price_id bigint,
    cost_pico bigint,
    list_cost_pico bigint,
    currency text,
    gateway_id text NOT NULL,
    boot bigint,
    seq bigint,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT usage_record_pkey PRIMARY KEY (request_id, admitted_at),
    CONSTRAINT usage_record_id_time_check
        CHECK (admitted_at IS NOT DISTINCT FROM uuid_v7_time(request_id)),
    CONSTRAINT usage_record_class_check CHECK (class IN ('interactive', 'batch')),
    CONSTRAINT usage_record_outcome_check CHECK (outcome IN (
        'completed', 'client_cancelled', 'worker_failed', 'timed_out', 'refused', 'gateway_lost')),
    CONSTRAINT usage_record_usage_source_check CHECK (usage_source IN (
        'engine_final', 'engine_progress', 'counted', 'estimated')),
    CONSTRAINT usage_record_provider_check
        CHECK (provider = 'self' OR provider LIKE 'hosted:_%'),
    CONSTRAINT usage_record_counts_check CHECK (
        prompt_tokens >= 0 AND cached_prompt_tokens >= 0 AND output_tokens >= 0
        AND reasoning_tokens >= 0 AND sequences >= 1 AND attempts >= 0),
    CONSTRAINT usage_record_durations_check CHECK (
        queue_ms >= 0 AND ttft_ms >= 0 AND tpot_us >= 0 AND itl_max_us >= 0),
    CONSTRAINT usage_record_cached_check CHECK (
        cached_prompt_tokens <= prompt_tokens OR 'cached_over_prompt' = ANY (usage_flags)),
    CONSTRAINT usage_record_cost_check CHECK (
        (cost_pico IS NULL AND list_cost_pico IS NULL) OR currency IS NOT NULL),
    CONSTRAINT usage_record_journal_check CHECK ((boot IS NULL) = (seq IS NULL))
) PARTITION BY RANGE (admitted_at)
"""

USAGE_ATTEMPT = """
CREATE TABLE usage_attempt (
    request_id uuid NOT NULL,
    admitted_at timestamptz NOT NULL,
    choice integer NOT NULL,
    attempt integer NOT NULL,
    worker_id text NOT NULL,
    provider text NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    outcome text NOT NULL,
    prompt_tokens integer NOT NULL,
    output_tokens integer NOT NULL,
    provider_request_id text,
    provider_cost_pico bigint,
    CONSTRAINT usage_attempt_pkey PRIMARY KEY (request_id, admitted_at, choice, attempt),
    CONSTRAINT usage_attempt_id_time_check
        CHECK (admitted_at IS NOT DISTINCT FROM uuid_v7_time(request_id)),
    CONSTRAINT usage_attempt_outcome_check CHECK (outcome IN (
        'completed', 'client_cancelled', 'worker_failed', 'timed_out', 'refused', 'gateway_lost')),
    CONSTRAINT usage_attempt_provider_check
        CHECK (provider = 'self' OR provider LIKE 'hosted:_%'),
    CONSTRAINT usage_attempt_counts_check CHECK (
        choice >= 0 AND attempt >= 1 AND prompt_tokens >= 0 AND output_tokens >= 0)
) PARTITION BY RANGE (admitted_at)
"""

JOURNAL = (
    """
CREATE TABLE journal_watermark (
    gateway_id text NOT NULL,
    boot bigint NOT NULL,
    seq bigint NOT NULL,
    admitted_count bigint NOT NULL,
    ended_count bigint NOT NULL,
    missing_count bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT journal_watermark_pkey PRIMARY KEY (gateway_id, boot),
    CONSTRAINT journal_watermark_sum_check
        CHECK (seq = admitted_count + ended_count + missing_count)
)
""",
    """
CREATE FUNCTION journal_watermark_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq THEN
        RAISE EXCEPTION 'the watermark of a journal never goes back'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$
""",
    """
CREATE TRIGGER journal_watermark_only_grows BEFORE UPDATE ON journal_watermark
FOR EACH ROW EXECUTE FUNCTION journal_watermark_only_grows()
""",
    """
CREATE TABLE usage_dead_letter (
    id bigint GENERATED ALWAYS AS IDENTITY,
    gateway_id text NOT NULL,
    source text NOT NULL,
    request_id uuid,
    reason text NOT NULL,
    payload bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz,
    CONSTRAINT usage_dead_letter_pkey PRIMARY KEY (id),
    CONSTRAINT usage_dead_letter_gateway_id_source_key UNIQUE (gateway_id, source)
)
""",
    """
CREATE INDEX usage_dead_letter_open_idx ON usage_dead_letter (created_at) WHERE resolved_at IS NULL
""",
)

# The default partition is a net: what fell into it moves to its own month once that is made. Both
# parents are locked first, in the order in which a shipment writes them: a row that was on its way
# into the net would otherwise fail once its month is attached. Where a long report holds them, this
# gives up rather than make the shipments wait, and is tried again later.
ENSURE_PARTITIONS = """
CREATE FUNCTION ensure_usage_partitions(months_ahead integer) RETURNS integer
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    parent text;
    partition text;
    net text;
    first_day timestamp;
    month_start timestamptz;
    month_end timestamptz;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(x'574549520002'::bigint);
    FOREACH parent IN ARRAY ARRAY['usage_record', 'usage_attempt'] LOOP
        net := parent || '_default';
        FOR month IN -1..months_ahead LOOP
            first_day := date_trunc('month', now() AT TIME ZONE 'UTC')
                + make_interval(months => month);
            partition := parent || to_char(first_day, '"_y"YYYY"m"MM');
            CONTINUE WHEN to_regclass(partition) IS NOT NULL;
            month_start := first_day AT TIME ZONE 'UTC';
            month_end := (first_day + interval '1 month') AT TIME ZONE 'UTC';
            LOCK TABLE usage_record, usage_attempt IN SHARE ROW EXCLUSIVE MODE;
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', partition, parent);
            EXECUTE format(
                'WITH moved AS ('
                'DELETE FROM %I WHERE admitted_at >= %L AND admitted_at < %L RETURNING *)'
                ' INSERT INTO %I SELECT * FROM moved',
                net, month_start, month_end, partition);
            EXECUTE format(
                'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parent, partition, month_start, month_end);
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END $$
"""

VIEWS = (
    """
CREATE VIEW usage_records AS
SELECT request_id, tenant_id, api_key_id, model, class, admitted_at, first_token_at, ended_at,
    prompt_tokens, cached_prompt_tokens, output_tokens, reasoning_tokens, sequences, queue_ms,
    ttft_ms, tpot_us, itl_max_us, outcome, final, finish_reason, usage_source, provider, worker_id,
    attempts, billable, billing_policy, price_id, cost_pico, list_cost_pico, currency
FROM usage_record
""",
    """
CREATE VIEW usage_attempts AS
SELECT request_id, attempt, worker_id, provider, started_at, ended_at, outcome, prompt_tokens,
    output_tokens, provider_request_id, provider_cost_pico
FROM usage_attempt
""",
)

INDEXES = (
    """
CREATE INDEX usage_record_tenant_id_admitted_at_idx
ON usage_record (tenant_id, admitted_at, request_id)
""",
    "CREATE INDEX usage_record_admitted_at_idx ON usage_record (admitted_at, request_id)",
)


def upgrade() -> None:
    """Create all of it, with partitions from last month on."""
    for statement in (*TIME_FUNCTIONS, USAGE_RECORD, USAGE_ATTEMPT, *INDEXES, *JOURNAL):
        op.execute(statement)
    for parent in ("usage_record", "usage_attempt"):
        op.execute(f"CREATE TABLE {parent}_default PARTITION OF {parent} DEFAULT")
    op.execute(ENSURE_PARTITIONS)
    op.execute(f"SELECT ensure_usage_partitions({PARTITION_MONTHS_AHEAD})")
    for statement in VIEWS:
        op.execute(statement)


def downgrade() -> None:
    """Drop all of it, partitions with their parents."""
    op.execute("DROP VIEW usage_attempts, usage_records")
    op.execute("DROP TABLE usage_dead_letter, journal_watermark, usage_attempt, usage_record")
    op.execute("DROP FUNCTION journal_watermark_only_grows()")
    op.execute("DROP FUNCTION ensure_usage_partitions(integer)")
    op.execute("DROP FUNCTION uuid_v7_time(uuid)")
    op.execute("DROP FUNCTION unix_ms_time(bigint)")
