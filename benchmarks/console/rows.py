"""What the benchmark's database is filled with, as SQL: tenants, keys, usage with its roll-ups,
attempts, invoices made of one, and the audit log.

A few tenants are most of the traffic: of ten thousand the first has a tenth of it, the first
hundred a third. A tenant has two keys, three models are used, days and weeks are even.
"""

TENANTS = """
INSERT INTO tenant (id, name, currency, time_zone, limits)
SELECT 't-' || lpad(n::text, 5, '0'), 'Tenant number ' || n, 'USD', 'UTC',
    jsonb_build_object('max_sequences', 1 + n % 50, 'tpm', 1000 * (1 + n % 500), 'rpm', 60)
FROM generate_series(0, CAST(:count AS integer) - 1) AS n
"""
KEYS = """
INSERT INTO api_key (id, tenant_id, name, class, digest, secret_hint)
SELECT 'k-' || lpad(n::text, 5, '0') || '-' || which, 't-' || lpad(n::text, 5, '0'),
    'key ' || which, CASE which WHEN 0 THEN 'interactive' ELSE 'batch' END,
    sha256(convert_to(n || '/' || which, 'UTF8')), lpad(to_hex(n % 65536), 4, '0')
FROM generate_series(0, CAST(:count AS integer) - 1) AS n, generate_series(0, 1) AS which
"""
MODELS = """
INSERT INTO model (id, context_tokens, max_output_tokens, default_output_tokens)
SELECT id, 32768, 4096, 1024 FROM unnest(ARRAY['large', 'small', 'other']) AS id
"""
WORKERS = """
INSERT INTO worker (id, model, url, kind, engine)
SELECT 'w-' || n, (ARRAY['large', 'small'])[1 + n % 2], 'http://127.0.0.1:' || 9 + n, 'sglang',
    'sglang' FROM generate_series(0, 15) AS n
"""
PARTITION = """
CREATE TABLE IF NOT EXISTS {parent}_y{year:04}m{month:02} PARTITION OF {parent}
FOR VALUES FROM ('{year:04}-{month:02}-01Z') TO ('{next_year:04}-{next_month:02}-01Z')
"""
# Ids whose time runs through the period evenly; whose request it is, is drawn from a hash of its
# number: the same each time, and no two tables of random numbers to keep.
RECORDS = """
INSERT INTO usage_record (request_id, admitted_at, tenant_id, api_key_id, model, class,
    first_token_at, ended_at, prompt_tokens, cached_prompt_tokens, output_tokens, reasoning_tokens,
    sequences, queue_ms, ttft_ms, tpot_us, itl_max_us, outcome, final, finish_reason, usage_source,
    usage_flags, provider, worker_id, attempts, billable, billing_policy, price_id, cost_pico,
    list_cost_pico, currency, gateway_id, boot, seq)
SELECT made.id, at, 't-' || lpad(tenant::text, 5, '0'),
    'k-' || lpad(tenant::text, 5, '0') || '-' || which, price.model,
    CASE which WHEN 0 THEN 'interactive' ELSE 'batch' END, at, at, prompt, cached, output,
    output / 4, 1, 2, 40, 9000, 15000, 'completed', true, 'stop', 'engine_final', '{}',
    price.provider, 'w-' || n % 16, 1, true, 1, price.id, cost, cost, 'USD', 'gw-' || n % 4, 1, n
FROM (
    SELECT n, unix_ms_time(ms) AS at, 100 + n * 7919 % 3000 AS prompt, n * 104729 % 100 AS cached,
        20 + n * 1299709 % 800 AS output, n * 31 % 10 / 7 AS which, n * 17 % 5 % 3 AS at_model,
        CAST(floor(CAST(:tenants AS integer)
            * power((hashint8extended(n, 0) & 1048575) / 1048576.0, 4)) AS integer) AS tenant,
        CAST(lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8'
            || lpad(to_hex(n), 15, '0') AS uuid) AS id
    FROM (
        SELECT n, CAST(:start AS bigint) + n * CAST(:span AS bigint) / CAST(:count AS bigint) AS ms
        FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS n
    ) AS numbered
) AS made
JOIN price_entry AS price
    ON price.model = (ARRAY['large', 'small', 'other'])[1 + CAST(made.at_model AS integer)]
CROSS JOIN LATERAL (SELECT
    (prompt - cached) * price.input_pico + cached * coalesce(cached_input_pico, price.input_pico)
    + output * price.output_pico + price.request_pico AS cost) AS rated
"""
ATTEMPTS = """
INSERT INTO usage_attempt (request_id, admitted_at, choice, attempt, worker_id, provider,
    started_at, ended_at, outcome, prompt_tokens, output_tokens)
SELECT request_id, admitted_at, 0, 1, worker_id, provider, admitted_at, ended_at, outcome,
    prompt_tokens, output_tokens
FROM usage_record WHERE admitted_at >= unix_ms_time(:since)
"""
# All at once, as the roll-ups that are made quarter by quarter are; `agrees` compares some.
ROLL_UPS = """
INSERT INTO usage_rollup
SELECT usage_bucket(admitted_at), tenant_id, api_key_id, model, class, provider, currency, price_id,
    billable, final, count(*), sum(prompt_tokens), sum(cached_prompt_tokens), sum(output_tokens),
    sum(reasoning_tokens), sum(sequences), coalesce(sum(cost_pico), 0),
    coalesce(sum(list_cost_pico), 0), count(*) FILTER (WHERE cost_pico IS NULL)
FROM usage_record
WHERE admitted_at >= unix_ms_time(:since) AND admitted_at < unix_ms_time(:until)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
"""
# The first tenant's invoice once more for each of the others, with some of its lines.
INVOICES = """
WITH made AS (
    INSERT INTO invoice
    SELECT copied.*
    FROM invoice AS first, tenant, jsonb_populate_record(first, jsonb_build_object(
        'id', uuidv7(), 'tenant_id', tenant.id,
        'number', split_part(first.number, '-', 1) || '-' || :month || '-' || tenant.id)) AS copied
    WHERE first.tenant_id = 't-00000' AND first.month = :month AND tenant.id <> 't-00000'
    RETURNING id
)
INSERT INTO invoice_line
SELECT copied.*
FROM made, invoice AS first, invoice_line AS line,
    jsonb_populate_record(line, jsonb_build_object('invoice_id', made.id)) AS copied
WHERE first.tenant_id = 't-00000' AND first.month = :month
    AND line.invoice_id = first.id AND line.position <= 3
"""
AUDIT = """
INSERT INTO audit_log (actor, action, subject_kind, subject_id, before, after)
SELECT 'user-' || n % 20 || '@weir.local', (ARRAY['tenant.limits', 'key.create', 'key.revoke',
        'tenant.suspend', 'worker.drain'])[1 + n % 5],
    (ARRAY['tenant', 'key', 'key', 'tenant', 'worker'])[1 + n % 5],
    CASE n % 5 WHEN 4 THEN 'w-' || n % 16 WHEN 0 THEN 't-' || lpad((n % :tenants)::text, 5, '0')
        WHEN 3 THEN 't-' || lpad((n % :tenants)::text, 5, '0')
        ELSE 'k-' || lpad((n % :tenants)::text, 5, '0') || '-0' END,
    jsonb_build_object('tpm', n, 'rpm', 60), jsonb_build_object('tpm', n + 1000, 'rpm', 60)
FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS n
"""
