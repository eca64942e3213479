"""The audit log as a chain of hashes, with the tenant of each entry and the change it is part of.

A trigger draws the id, looks up the tenant and makes the hash under a lock of its own, so that the
entries of every writer are in the chain in the order of their ids, those of the release before too.
The lock is the last one that a writer takes: it writes its entries just before it commits.

What was there is chained here: two to three minutes for a million entries on two busy cores, in
which nothing that is written down can be changed. Requests are served all the while.
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

COLUMNS = """
ALTER TABLE audit_log
    ADD COLUMN tenant_id text,
    ADD COLUMN change_id text,
    ADD COLUMN form smallint NOT NULL DEFAULT 1,
    ADD COLUMN hash bytea
"""
# `gateway/domain/audit_chain.py` is the same rule a second time, docs/audit.md tells it.
HASH = """
CREATE FUNCTION audit_log_hash(previous bytea, entry audit_log) RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
DECLARE
    field text;
    form text := 'weir-audit-' || entry.form || E'\\n' || encode(previous, 'hex') || E'\\n';
BEGIN
    FOREACH field IN ARRAY ARRAY[
        entry.id::text,
        to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        entry.actor, entry.action, entry.subject_kind, entry.subject_id,
        coalesce(entry.tenant_id, ''), coalesce(entry.change_id, ''),
        coalesce(entry.before::text, ''), coalesce(entry.after::text, '')]
    LOOP
        form := form || octet_length(convert_to(field, 'UTF8')) || ':' || field || E'\\n';
    END LOOP;
    RETURN sha256(convert_to(form, 'UTF8'));
END $$
"""
TENANT = """
CREATE FUNCTION audit_log_tenant(entry audit_log) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    found text := coalesce(entry.after ->> 'tenant_id', entry.before ->> 'tenant_id');
BEGIN
    IF entry.subject_kind = 'tenant' THEN
        RETURN entry.subject_id;
    ELSIF found IS NULL AND entry.subject_kind = 'key' THEN
        SELECT tenant_id INTO found FROM api_key WHERE id = entry.subject_id;
    ELSIF found IS NULL AND entry.subject_kind = 'invoice'
        AND entry.subject_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    THEN
        SELECT tenant_id INTO found FROM invoice WHERE id = entry.subject_id::uuid;
    ELSIF found IS NULL AND entry.subject_kind = 'user' THEN
        SELECT to_jsonb(u) ->> 'tenant_id' INTO found FROM app_user u WHERE id = entry.subject_id;
    END IF;
    RETURN found;
END $$
"""
# One entry after another: whoever holds the lock has seen the last one, and none can come between.
# What a writer says of id, time, tenant, form and hash itself does not count.
LINK = """
CREATE FUNCTION audit_log_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last record;
BEGIN
    PERFORM pg_advisory_xact_lock(x'574549520003'::bigint);
    SELECT id, hash INTO last FROM audit_log ORDER BY id DESC LIMIT 1;
    NEW.id := coalesce(last.id, 0) + 1;
    NEW.at := clock_timestamp();
    NEW.tenant_id := audit_log_tenant(NEW);
    NEW.form := 1;
    NEW.hash := audit_log_hash(coalesce(last.hash, decode(repeat('00', 32), 'hex')), NEW);
    RETURN NEW;
END $$
"""
CHAIN_WHAT_IS_THERE = """
DO $$
DECLARE
    entry audit_log;
    previous bytea := decode(repeat('00', 32), 'hex');
BEGIN
    FOR entry IN SELECT * FROM audit_log ORDER BY id LOOP
        entry.tenant_id := audit_log_tenant(entry);
        previous := audit_log_hash(previous, entry);
        UPDATE audit_log SET tenant_id = entry.tenant_id, hash = previous WHERE id = entry.id;
    END LOOP;
END $$
"""
TRIGGER = """
CREATE TRIGGER audit_log_link BEFORE INSERT ON audit_log
FOR EACH ROW EXECUTE FUNCTION audit_log_link()
"""
INDEXES = {
    "audit_log_actor_id_idx": "(actor, id)",
    "audit_log_action_id_idx": "(action text_pattern_ops, id)",
    "audit_log_subject_id_id_idx": "(subject_id, id)",
    "audit_log_tenant_id_id_idx": "(tenant_id, id)",
    "audit_log_change_id_idx": "(change_id)",
    "audit_log_at_id_idx": "(at, id)",
}


def upgrade() -> None:
    """Chain what is there, and from then on what comes."""
    op.execute(LOCK_TIMEOUT)
    op.execute("LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE")
    for statement in (COLUMNS, HASH, TENANT, LINK):
        op.execute(statement)
    op.execute("ALTER TABLE audit_log DISABLE TRIGGER audit_log_append_only")
    op.execute(CHAIN_WHAT_IS_THERE)
    op.execute("ALTER TABLE audit_log ENABLE TRIGGER audit_log_append_only")
    op.execute("ALTER TABLE audit_log ALTER COLUMN hash SET NOT NULL")
    op.execute(TRIGGER)
    for name, columns in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON audit_log {columns}")


def downgrade() -> None:
    """Take the chain away; the entries stay, and new ids follow the last."""
    op.execute(LOCK_TIMEOUT)
    op.execute("DROP TRIGGER audit_log_link ON audit_log")
    for function in ("link()", "tenant(audit_log)", "hash(bytea, audit_log)"):
        op.execute(f"DROP FUNCTION audit_log_{function}")
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
    op.execute(
        "ALTER TABLE audit_log DROP COLUMN tenant_id, DROP COLUMN change_id, DROP COLUMN form, "
        "DROP COLUMN hash"
    )
    op.execute(
        "SELECT setval('audit_log_id_seq', greatest(max(id), "
        "(SELECT last_value FROM audit_log_id_seq))) FROM audit_log HAVING max(id) IS NOT NULL"
    )
