#!/usr/bin/env node
// A language server that understands no language: it asks an editor the questions of a run, and reports the answers
// as run events. `prose.run` with the backend
//   choice, input   asks `prose/input`, with and without options
//   approve         asks `prose/approveImports`
//   hello           reports what the client said about itself
//   endless         runs until it is cancelled
// so that the clients' side of the protocol is tested apart from any program that would provoke it.

let buffer = Buffer.alloc(0);
let nextRun = 1;
let nextRequest = 1;
let client = {};
const waiting = new Map();
const running = new Map();

const send = (message) => {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
};
const notify = (method, params) => send({ method, params });
const request = (method, params) =>
  new Promise((resolve) => {
    const id = `s${nextRequest++}`;
    waiting.set(id, resolve);
    send({ id, method, params });
  });

async function run(runId, backend) {
  let seq = 0;
  const event = (type, fields) => notify('prose/runEvent', { runId, seq, event: { v: 1, runId, seq: seq++, type, ...fields } });
  const end = (status) => {
    running.delete(runId);
    event('run_finished', { status, outputs: {} });
    notify('$/progress', { token: runId, value: { kind: 'end' } });
  };
  await request('window/workDoneProgress/create', { token: runId });
  notify('$/progress', { token: runId, value: { kind: 'begin', title: 'questions', cancellable: true } });
  running.set(runId, end);
  event('run_started', { program: 'questions', backend });
  const question = { runId, requestId: 'q1', name: 'colour', prompt: 'Which one?' };
  switch (backend) {
    case 'choice':
      event('answered', await request('prose/input', { ...question, options: ['red', 'green'] }));
      return end('completed');
    case 'input':
      event('answered', await request('prose/input', question));
      return end('completed');
    case 'approve':
      event('answered', await request('prose/approveImports', { runId, targets: ['https://example.org/a.prose'], phrase: 'yes please' }));
      return end('completed');
    case 'hello':
      event('answered', { options: client.initializationOptions, experimental: client.capabilities.experimental?.prose });
      return end('completed');
    default:
      return undefined;
  }
}

function receive({ id, method, params, result }) {
  if (method === undefined) {
    waiting.get(id)?.(result);
    waiting.delete(id);
    return;
  }
  const answer = (value) => send({ id, result: value });
  switch (method) {
    case 'initialize':
      client = params;
      answer({
        capabilities: {
          textDocumentSync: 1,
          executeCommandProvider: { commands: ['prose.run', 'prose.cancel', 'prose.resume', 'prose.answer', 'prose.runs'] },
        },
      });
      break;
    case 'workspace/executeCommand': {
      const [argument] = params.arguments ?? [];
      if (params.command === 'prose.run') {
        const runId = `questions-${nextRun++}`;
        answer({ runId });
        void run(runId, argument.backend);
      } else {
        answer(null);
        running.get(argument?.runId)?.('cancelled');
      }
      break;
    }
    case 'window/workDoneProgress/cancel':
      running.get(params.token)?.('cancelled');
      break;
    case 'shutdown':
      answer(null);
      break;
    case 'exit':
      process.exit(0);
      break;
    default:
      if (id !== undefined) {
        send({ id, error: { code: -32601, message: `${method} is not served` } });
      }
  }
}

process.stdin.on('end', () => process.exit(1));
process.stdin.on('data', (chunk) => {
  buffer = Buffer.concat([buffer, chunk]);
  for (;;) {
    const head = buffer.indexOf('\r\n\r\n');
    if (head < 0) {
      return;
    }
    const length = Number(/content-length: *(\d+)/i.exec(buffer.subarray(0, head).toString())?.[1]);
    if (buffer.length < head + 4 + length) {
      return;
    }
    const body = buffer.subarray(head + 4, head + 4 + length).toString();
    buffer = buffer.subarray(head + 4 + length);
    receive(JSON.parse(body));
  }
});
