// Starts VS Code's own server on a loopback port and its workbench in a headless Chromium, with a home of their own.
// Places come from the environment that `cargo xtask editors` sets:
//   PROSE_VSCODE    folder with out/server-main.js       PROSE_NODE      the node that runs it (default: this one)
//   PROSE_CHROMIUM  the browser                           PROSE_OUT       where logs and pictures of failures go
//   PROSE_LSP       the language server

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.resolve(here, '../../..');

/** Longer than anything needs on a slow machine; only a hang meets it. */
export const PATIENCE = 120_000;

/**
 * What undoes a start, to be done however this process ends; the newest first. Synchronous, since nothing else is possible
 * in an exit. The browser is not here: its driver has such a list of its own.
 */
const undo = new Set();
process.on('exit', () => [...undo].reverse().forEach((each) => each()));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => process.exit(1));
}
// Whoever started this may be killed without a word.
const parent = process.ppid;
setInterval(() => process.ppid === parent || process.exit(1), 1000).unref();

/** Ends a process and its group, if there still is one. */
function killGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') {
      throw error;
    }
  }
}

export function need(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set; run this through \`cargo xtask editors\``);
  }
  return value;
}

const SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.enableExperiments': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'window.commandCenter': false,
  'telemetry.telemetryLevel': 'off',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'update.mode': 'none',
  'files.autoSave': 'off',
  'chat.disableAIFeatures': true,
  'remote.autoForwardPorts': false,
  'security.workspace.trust.startupPrompt': 'never',
  'security.workspace.trust.banner': 'never',
};

/** A scratch folder with a copy of `files` (a folder) in it; every call gets a new one. */
export function scratch(files) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'prose-editor-test-'));
  const workspace = path.join(folder, 'workspace');
  if (files) {
    fs.cpSync(files, workspace, { recursive: true });
  }
  const remove = () => {
    undo.delete(remove);
    // A process that just ended may still have been writing.
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  undo.add(remove);
  return { folder, workspace, remove };
}

/**
 * Starts the server. `settings` are the user's, on top of quiet ones; `env` is added to its environment, which the
 * extension host inherits. `stop()` ends it and everything it started.
 */
export async function startServer({ home, settings = {}, env = {} }) {
  const vscode = need('PROSE_VSCODE');
  const data = path.join(home, 'server-data');
  for (const scope of ['User', 'Machine']) {
    fs.mkdirSync(path.join(data, 'data', scope), { recursive: true });
    fs.writeFileSync(path.join(data, 'data', scope, 'settings.json'), JSON.stringify({ ...SETTINGS, ...settings }));
  }
  const environment = { ...process.env, ...env, HOME: home };
  delete environment.PORT;
  const arguments_ = [
    path.join(vscode, 'out/server-main.js'),
    '--host=127.0.0.1', '--port=0', '--without-connection-token', '--accept-server-license-terms',
    '--telemetry-level=off', `--server-data-dir=${data}`, `--extensions-dir=${path.join(home, 'extensions')}`,
  ];
  const node = process.env.PROSE_NODE || process.execPath;
  const child = spawn(node, arguments_, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  // The group: the extension host and the language server are its members.
  const kill = () => killGroup(child, 'SIGKILL');
  undo.add(kill);
  const ended = new Promise((resolve) => child.once('close', resolve));
  const stop = async () => {
    killGroup(child, 'SIGTERM');
    const timer = setTimeout(kill, 5000);
    await ended;
    clearTimeout(timer);
    // Members that the first of the group did not take along.
    kill();
    undo.delete(kill);
  };
  let log = '';
  const port = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`VS Code's server did not start:\n${log}`)), PATIENCE);
    const read = (chunk) => {
      log += chunk;
      const match = /listening on (\d+)/.exec(log);
      if (match) {
        clearTimeout(timer);
        resolve(Number(match[1]));
      }
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`VS Code's server ended with ${code}:\n${log}`)));
  });
  try {
    return { port: await port, stop, log: () => log };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Installs a packaged extension where `startServer({home})` will find it. */
export async function installExtension(home, vsix) {
  const node = process.env.PROSE_NODE || process.execPath;
  await run(node, [
    path.join(need('PROSE_VSCODE'), 'out/server-main.js'), '--accept-server-license-terms',
    `--server-data-dir=${path.join(home, 'server-data')}`, `--extensions-dir=${path.join(home, 'extensions')}`,
    `--install-extension=${vsix}`,
  ], { ...process.env, HOME: home });
}

function run(command, arguments_, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, arguments_, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: PATIENCE });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.once('error', reject);
    child.once('exit', (code, signal) => (code === 0 ? resolve(output) : reject(new Error(`${command} ended with ${code ?? signal}:\n${output}`))));
  });
}

/** Opens the workbench. What the page logs goes to `console.log` in the folder of failures. */
export async function openWorkbench({ port, folder, payload, viewport = { width: 1280, height: 800 } }) {
  const out = outFolder();
  const browser = await chromium.launch({
    executablePath: need('PROSE_CHROMIUM'),
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync',
      // The workbench asks for galleries and update feeds; nothing but this machine may answer.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost',
    ],
  });
  const page = await (await browser.newContext({ viewport })).newPage();
  page.setDefaultTimeout(PATIENCE);
  const logFile = path.join(out, 'console.log');
  page.on('console', (message) => fs.appendFileSync(logFile, `${message.type()} ${message.text()}\n`));
  page.on('pageerror', (error) => fs.appendFileSync(logFile, `page error ${error.message}\n`));
  const url = new URL(`http://127.0.0.1:${port}/`);
  url.searchParams.set('folder', folder);
  if (payload) {
    url.searchParams.set('payload', JSON.stringify(payload));
  }
  await page.goto(url.href);
  return { browser, page };
}

export function outFolder() {
  const out = process.env.PROSE_OUT || path.join(os.tmpdir(), 'prose-editor-out');
  fs.mkdirSync(out, { recursive: true });
  return out;
}

/** Counts checks, prints a line for each and the closing line; `close()` is the exit code. */
export class Report {
  #passed = 0;
  #failed = 0;

  constructor(title) {
    console.log(title);
  }

  async check(name, body) {
    const begun = Date.now();
    try {
      const shown = await body();
      this.#passed++;
      console.log(`ok   ${name}${shown === undefined ? '' : ` -- ${String(shown).slice(0, 160)}`} (${Date.now() - begun} ms)`);
      return true;
    } catch (error) {
      this.#failed++;
      console.log(`FAIL ${name} -- ${error.stack ?? error}`);
      return false;
    }
  }

  close() {
    console.log(`${this.#passed} passed, ${this.#failed} failed`);
    return this.#failed === 0 && this.#passed > 0 ? 0 : 1;
  }
}
