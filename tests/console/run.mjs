// OpenAI's Node SDK, unmodified. Reads one call a line from stdin, writes what the SDK gave a line to
// stdout: the form of tests/sdk/seen.py. Calls run one after another, in one process.
import { createInterface } from "node:readline";
import OpenAI from "openai";

const TIMEOUT_MS = 60_000;

/** The SDK's promise for a call; `extra_body` and `extra_headers` go where its users put them. */
function ask(client, call) {
  const { extra_body: extraBody, extra_headers: headers, ...body } = call.fields;
  const options = { headers };
  const asked = { ...body, ...extraBody };
  switch (call.kind) {
    case "chat":
      return client.chat.completions.create(asked, options);
    case "completions":
      return client.completions.create(asked, options);
    case "models":
      return client.models.list(options);
    default:
      return client.models.retrieve(call.fields.model, options);
  }
}

/** The names of an error's class and of those it extends. */
function classes(error) {
  const names = [];
  for (let each = error.constructor; each?.name; each = Object.getPrototypeOf(each)) names.push(each.name);
  return names;
}

function told(error) {
  return {
    class: error.constructor.name,
    classes: classes(error),
    status: error.status ?? null,
    code: error.code ?? null,
    type: error.type ?? null,
    param: error.param ?? null,
    message: error.message,
    request_id: error.requestID ?? null,
  };
}

/** One call, from the SDK's first byte to its last. */
async function run(call) {
  const client = new OpenAI({
    baseURL: call.base_url,
    apiKey: call.api_key,
    maxRetries: call.max_retries,
    timeout: TIMEOUT_MS,
  });
  const began = performance.now();
  const seen = { answers: [], headers: {}, error: null };
  try {
    const { data, response } = await ask(client, call).withResponse();
    seen.headers = Object.fromEntries(response.headers.entries());
    if (call.fields.stream) {
      for await (const chunk of data) seen.answers.push(chunk);
    } else {
      seen.answers.push(call.kind === "models" ? { object: data.object, data: data.data } : data);
    }
  } catch (error) {
    if (!(error instanceof OpenAI.OpenAIError)) throw error;
    seen.error = told(error);
    if (error.status) seen.headers = Object.fromEntries(error.headers.entries());
  }
  seen.elapsed_s = (performance.now() - began) / 1000;
  return seen;
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}
