"""Accounts: roles of tenants, sessions, lockout and scopes of tokens.

The release before goes on with this schema: it creates users with its own four roles, and gives
tokens that are held to no scopes. It cannot read a user with a role of a tenant, whom it answers
with an error, and does not know scopes: both are first made once every gateway is of this release.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

USERS = """
ALTER TABLE app_user
    ADD COLUMN tenant_id text CONSTRAINT app_user_tenant_id_fkey REFERENCES tenant (id),
    ADD COLUMN failed_logins integer NOT NULL DEFAULT 0,
    ADD COLUMN locked_until timestamptz,
    ADD COLUMN last_login_at timestamptz,
    ADD COLUMN password_changed_at timestamptz,
    DROP CONSTRAINT app_user_role_check,
    ADD CONSTRAINT app_user_role_check CHECK (
        role IN ('admin', 'finance', 'operator', 'viewer', 'tenant_admin', 'tenant_member')),
    ADD CONSTRAINT app_user_tenant_check CHECK (
        (tenant_id IS NOT NULL) = (role IN ('tenant_admin', 'tenant_member'))),
    ADD CONSTRAINT app_user_failed_logins_check CHECK (failed_logins >= 0)
"""
TOKENS = """
ALTER TABLE user_token
    ADD COLUMN scopes text[],
    ADD COLUMN last_used_at timestamptz,
    ADD CONSTRAINT user_token_scopes_check CHECK (cardinality(scopes) > 0)
"""
SESSIONS = """
CREATE TABLE user_session (
    digest bytea NOT NULL,
    id text NOT NULL,
    user_id text NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    address text,
    CONSTRAINT user_session_pkey PRIMARY KEY (digest),
    CONSTRAINT user_session_id_key UNIQUE (id),
    CONSTRAINT user_session_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user (id),
    CONSTRAINT user_session_digest_check CHECK (octet_length(digest) = 32),
    CONSTRAINT user_session_instants_check CHECK (
        created_at <= seen_at AND created_at < expires_at)
)
"""
SESSIONS_OF_A_USER = "CREATE INDEX user_session_user_id_idx ON user_session (user_id)"

FORGET_TENANT_ROLES = """
UPDATE app_user SET role = 'viewer', tenant_id = NULL, disabled_at = coalesce(disabled_at, now())
WHERE tenant_id IS NOT NULL
"""
REVOKE_SCOPED = """
UPDATE user_token SET revoked_at = now() WHERE scopes IS NOT NULL AND revoked_at IS NULL
"""
USERS_AS_BEFORE = """
ALTER TABLE app_user
    DROP CONSTRAINT app_user_failed_logins_check,
    DROP CONSTRAINT app_user_tenant_check,
    DROP CONSTRAINT app_user_role_check,
    ADD CONSTRAINT app_user_role_check CHECK (
        role IN ('admin', 'finance', 'operator', 'viewer')),
    DROP COLUMN password_changed_at,
    DROP COLUMN last_login_at,
    DROP COLUMN locked_until,
    DROP COLUMN failed_logins,
    DROP COLUMN tenant_id
"""
TOKENS_AS_BEFORE = """
ALTER TABLE user_token
    DROP CONSTRAINT user_token_scopes_check,
    DROP COLUMN last_used_at,
    DROP COLUMN scopes
"""


def upgrade() -> None:
    """Add what accounts are made of."""
    op.execute(LOCK_TIMEOUT)
    for statement in (USERS, TOKENS, SESSIONS, SESSIONS_OF_A_USER):
        op.execute(statement)


def downgrade() -> None:
    """Take it away. What the release before would take for more than it is gives nothing any more:
    users with a role of a tenant are disabled, tokens with scopes revoked."""
    op.execute(LOCK_TIMEOUT)
    op.execute("DROP TABLE user_session")
    for statement in (FORGET_TENANT_ROLES, REVOKE_SCOPED, TOKENS_AS_BEFORE, USERS_AS_BEFORE):
        op.execute(statement)
