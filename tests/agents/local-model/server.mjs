// A real, very small language model behind OpenAI's chat completions, for trying the plumbing: what it says makes no sense.
//
//   node server.mjs MODEL.gguf        prints `listening on URL` when it is ready; ends with its standard input
//
// Packages are found below the folder that NODE_MODULES_OF names. One request at a time; tools are not understood.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modelPath] = process.argv.slice(2);
const require = createRequire(join(process.env.NODE_MODULES_OF ?? process.cwd(), "index.js"));
const { getLlama, LlamaChatSession } = await import(pathToFileURL(require.resolve("node-llama-cpp")));

const llama = await getLlama({ build: "never", gpu: false, progressLogs: false });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 4096, threads: 1 });

const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");

/** Has the model answer; `onText` gets each piece. Gives the text and the number of pieces. */
async function answer(request, signal, onText) {
  const sequence = context.getSequence();
  try {
    const isSystem = (message) => message.role === "system" || message.role === "developer";
    const system = request.messages.filter(isSystem).map((message) => textOf(message.content));
    const prompt = textOf(request.messages.filter((message) => message.role === "user").at(-1)?.content);
    const session = new LlamaChatSession({
      contextSequence: sequence,
      systemPrompt: system.join("\n") || undefined,
    });
    const schema = request.response_format?.json_schema?.schema;
    let pieces = 0;
    const text = await session.prompt(prompt, {
      // A model of this size would go on for ever.
      maxTokens: Math.min(request.max_completion_tokens ?? request.max_tokens ?? 64, 64),
      temperature: 0,
      grammar: schema ? await llama.createGrammarForJsonSchema(schema) : undefined,
      signal,
      stopOnAbortSignal: true,
      onTextChunk: (piece) => {
        pieces += 1;
        onText(piece);
      },
    });
    return { text, pieces };
  } finally {
    sequence.dispose();
  }
}

async function serve(request, response) {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const head = { id: "chatcmpl-local", created: 0, model: request.model };
  const choice = (more) => [{ index: 0, finish_reason: null, ...more }];
  const usage = (pieces) => ({ prompt_tokens: 1, completion_tokens: pieces, total_tokens: pieces + 1 });
  if (!request.stream) {
    const { text, pieces } = await answer(request, gone.signal, () => {});
    const message = { role: "assistant", content: text };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      JSON.stringify({
        ...head,
        object: "chat.completion",
        choices: choice({ message, finish_reason: "stop" }),
        usage: usage(pieces),
      }),
    );
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (more) =>
    response.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...more })}\n\n`);
  const { pieces } = await answer(request, gone.signal, (content) =>
    send({ choices: choice({ delta: { content } }) }),
  );
  send({ choices: choice({ delta: {}, finish_reason: "stop" }) });
  send({ choices: [], usage: usage(pieces) });
  response.end("data: [DONE]\n\n");
}

let last = Promise.resolve();
const server = createServer((incoming, response) => {
  const parts = [];
  incoming.on("data", (part) => parts.push(part));
  incoming.on("end", () => {
    if (incoming.method === "GET") {
      response.end(JSON.stringify({ object: "list", data: [{ id: "local", object: "model" }] }));
      return;
    }
    last = last
      .then(() => serve(JSON.parse(Buffer.concat(parts).toString()), response))
      .catch((error) => {
        if (!response.headersSent) {
          response.writeHead(500, { "content-type": "application/json" });
        }
        response.end(JSON.stringify({ error: { message: String(error), type: "server_error" } }));
      });
  });
});
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
