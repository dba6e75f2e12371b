// Runs test.el in the real Emacs, in a scratch home and workspace.
//   PROSE_EMACS  the editor     PROSE_LSP  the language server

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const need = (name) => {
  if (!process.env[name]) {
    throw new Error(`${name} is not set; run this through \`cargo xtask editors\``);
  }
  return process.env[name];
};

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'prose-emacs-test-'));
const workspace = path.join(home, 'workspace');
fs.cpSync(path.join(here, '../workspace'), workspace, { recursive: true });
const result = spawnSync(need('PROSE_EMACS'), ['-Q', '--batch', '-l', path.join(here, 'test.el')], {
  cwd: workspace,
  stdio: ['ignore', 'inherit', 'inherit'],
  timeout: 300_000,
  env: {
    ...process.env,
    HOME: home,
    PROSE_MODE: path.resolve(here, '../../../editors/emacs'),
    PROSE_SERVER: need('PROSE_LSP'),
    PROSE_QUESTIONS: path.join(here, '../scripted-server.mjs'),
  },
});
fs.rmSync(home, { recursive: true, force: true });
if (result.error || result.status === null) {
  console.log(`FAIL ${result.error ?? result.signal}\n0 passed, 1 failed`);
}
process.exit(result.status === 0 ? 0 : 1);
