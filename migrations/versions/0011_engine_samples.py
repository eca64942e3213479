"""What the engines themselves have counted: the witness that usage records are checked against.

A sample is an engine's own counters as one gateway read them; `engine_turn` says whose turn it is
to read which worker, so that one gateway at a time does and samples come in the order of reading.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

ENGINE_TURN = """
CREATE TABLE engine_turn (
    worker_id text NOT NULL,
    turn bigint NOT NULL,
    gateway_id text NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT engine_turn_pkey PRIMARY KEY (worker_id)
)
"""

# A counter is null where the engine does not tell it: absent is not zero.
ENGINE_SAMPLE = """
CREATE TABLE engine_sample (
    worker_id text NOT NULL,
    turn bigint NOT NULL,
    life integer NOT NULL,
    gateway_id text NOT NULL,
    asked_at timestamptz NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    mark text,
    running integer,
    prompt_tokens bigint,
    output_tokens bigint,
    cached_tokens bigint,
    requests bigint,
    aborted bigint,
    health bigint,
    CONSTRAINT engine_sample_pkey PRIMARY KEY (worker_id, turn),
    CONSTRAINT engine_sample_life_check CHECK (life >= 1),
    CONSTRAINT engine_sample_counts_check CHECK (
        running >= 0 AND prompt_tokens >= 0 AND output_tokens >= 0 AND cached_tokens >= 0
        AND requests >= 0 AND aborted >= 0 AND health >= 0)
)
"""


def upgrade() -> None:
    """Create both. Nothing that exists is touched."""
    op.execute(ENGINE_TURN)
    op.execute(ENGINE_SAMPLE)
    op.execute("CREATE INDEX engine_sample_taken_at_idx ON engine_sample (taken_at)")


def downgrade() -> None:
    """Drop both, with what they say."""
    op.execute("DROP TABLE engine_sample, engine_turn")
