"""What SGLang 0.5.23 answered, as captured from the wire: the shapes that a worker must have."""

CHAT = (
    b'{"id":"a4d466de7e034f6092927f986ea15ee0","object":"chat.completion","created":1795963900,'
    b'"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"igits\',number'
    b' <=edUL qu","reasoning_content":null},"logprobs":null,"finish_reason":"length",'
    b'"matched_stop":null}],"usage":{"prompt_tokens":37,"total_tokens":45,"completion_tokens":8,'
    b'"prompt_tokens_details":{"cached_tokens":0},"reasoning_tokens":0,'
    b'"completion_tokens_details":null},"metadata":{"weight_version":"default","weight_versions":'
    b'[{"version":"default","start":0,"end":8}]}}'
)
CHAT_LOGPROBS = (
    b'{"content":[{"token":"igits","bytes":[105,103,105,116,115],"logprob":-3.25,"top_logprobs":'
    b'[{"token":"igits","bytes":[105,103,105,116,115],"logprob":-3.25},'
    b'{"token":" hand","bytes":[32,104,97,110,100],"logprob":-3.5}]}]}'
)
ROLE_CHUNK = (
    b'{"id":"bce2d860726340a5a82d5c1b86f71b11","object":"chat.completion.chunk",'
    b'"created":1795963900,"model":"tiny","choices":[{"index":0,"delta":{"reasoning_content":null,'
    b'"role":"assistant","content":""},"logprobs":null,"finish_reason":null,"matched_stop":null}]}'
)
CONTENT_CHUNK_CONTINUOUS = (
    b'{"id":"bce2d860726340a5a82d5c1b86f71b11","object":"chat.completion.chunk",'
    b'"created":1795963900,"model":"tiny","choices":[{"index":0,"delta":{"reasoning_content":null,'
    b'"content":"igits"},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":'
    b'{"prompt_tokens":37,"total_tokens":38,"completion_tokens":1,"prompt_tokens_details":'
    b'{"cached_tokens":36},"reasoning_tokens":0,"completion_tokens_details":null}}'
)
CONTENT_CHUNK = (
    b'{"id":"9d8c589d19cf4cd8bac342443b4723e2","object":"chat.completion.chunk",'
    b'"created":1795963900,"model":"tiny","choices":[{"index":0,"delta":{"reasoning_content":null,'
    b'"content":"igits"},"logprobs":null,"finish_reason":null,"matched_stop":null}]}'
)
FINISH_CHUNK = (
    b'{"id":"9d8c589d19cf4cd8bac342443b4723e2","object":"chat.completion.chunk",'
    b'"created":1795963900,"model":"tiny","choices":[{"index":0,"delta":{"reasoning_content":null}'
    b',"logprobs":null,"finish_reason":"length","matched_stop":null}]}'
)
USAGE_CHUNK = (
    b'{"id":"9d8c589d19cf4cd8bac342443b4723e2","object":"chat.completion.chunk",'
    b'"created":1795963900,"model":"tiny","choices":[],"usage":{"prompt_tokens":37,'
    b'"total_tokens":45,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":36},'
    b'"reasoning_tokens":0,"completion_tokens_details":null}}'
)
USAGE_CHUNK_WITHOUT_CACHE_REPORT = (
    b'{"id":"54f94e75547f4699a0e8c1443d3bf393","object":"chat.completion.chunk",'
    b'"created":1795964055,"model":"tiny","choices":[],"usage":{"prompt_tokens":6,"total_tokens":8'
    b',"completion_tokens":2,"prompt_tokens_details":null,"reasoning_tokens":0,'
    b'"completion_tokens_details":null}}'
)
TEXT_CHUNK_CONTINUOUS = (
    b'{"id":"096ac593ceb6452b98346cc198f027e6","object":"text_completion","created":1795963900,'
    b'"model":"tiny","choices":[{"index":0,"text":"InvalidOperation","logprobs":null,'
    b'"finish_reason":null,"matched_stop":null}],"usage":{"prompt_tokens":5,"total_tokens":6,'
    b'"completion_tokens":1,"prompt_tokens_details":null,"reasoning_tokens":0,'
    b'"completion_tokens_details":null}}'
)
TEXT_USAGE_CHUNK = (
    b'{"id":"096ac593ceb6452b98346cc198f027e6","object":"text_completion","created":1795963900,'
    b'"model":"tiny","choices":[],"usage":{"prompt_tokens":5,"total_tokens":11,'
    b'"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":0},"reasoning_tokens":0}}'
)
QUEUED_ABORT_USAGE = {
    "prompt_tokens": 0,
    "total_tokens": 0,
    "completion_tokens": 0,
    "prompt_tokens_details": {"cached_tokens": 0},
    "reasoning_tokens": 0,
    "completion_tokens_details": None,
}
QUEUE_FULL = (
    '{"object":"error","message":"The request queue is full.","type":"503","param":null,"code":503}'
)
QUEUE_FULL_EVENT = {
    "error": {
        "object": "error",
        "message": "The request queue is full.",
        "type": "SERVICE_UNAVAILABLE",
        "param": None,
        "code": 503,
    }
}
NO_MESSAGES = (
    '{"object":"error","message":"Messages cannot be empty.","type":"BadRequestError",'
    '"param":null,"code":400}'
)
BAD_TEMPERATURE = (
    '{"object":"error","message":"temperature must be a non-negative finite number, got -1.0.",'
    '"type":"BadRequestError","param":null,"code":400}'
)
MAX_TOKENS_OVER_CONTEXT = (
    '{"object":"error","message":"max_completion_tokens is too large: 5000.This model supports at '
    'most 2048 completion tokens.","type":"BadRequestError","param":null,"code":400}'
)
PROMPT_AND_MAX_OVER_CONTEXT = (
    '{"object":"error","message":"Requested token count exceeds the model\'s maximum context '
    "length of 2048 tokens. You requested a total of 2051 tokens: 4 tokens from the input messages "
    "and 2047 tokens for the completion. Please reduce the number of tokens in the input messages "
    'or the completion to fit within the limit.","type":"BadRequestError","param":null,"code":400}'
)
PROMPT_OVER_CONTEXT = (
    '{"object":"error","message":"The input (12004 tokens) is longer than the model\'s context '
    'length (2048 tokens).","type":"BadRequestError","param":null,"code":400}'
)
RANK_LOAD_FIELDS = {
    "timestamp",
    "dp_rank",
    "num_running_reqs",
    "num_waiting_reqs",
    "num_waiting_uncached_tokens",
    "num_used_tokens",
    "num_total_tokens",
    "num_active_tokens",
    "max_total_num_tokens",
    "max_running_requests",
    "token_usage",
    "gen_throughput",
    "cache_hit_rate",
    "queues",
}
MODEL_LIST = (
    '{"object":"list","data":[{"id":"tiny","object":"model","created":1795963903,'
    '"owned_by":"sglang","root":"tiny","parent":null,"max_model_len":2048}]}'
)


def shape(value: object) -> object:
    """Names in their order and kinds of values, without the values."""
    if isinstance(value, dict):
        return [(name, shape(inner)) for name, inner in value.items()]
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__
