// Runs test.lua in the real Neovim, a process and a scratch home for each suite.
//   PROSE_NVIM  the editor     PROSE_LSP  the language server
// usage: node run.mjs [SUITE…]

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

const SUITES = {
  trusted: { server: () => need('PROSE_LSP'), trusted: '1' },
  untrusted: { server: () => need('PROSE_LSP'), trusted: '0' },
  // Questions that a simulated run never asks come from a server that only asks them.
  questions: { server: () => path.join(here, '../scripted-server.mjs'), trusted: '1' },
};

let failed = false;
const chosen = process.argv.slice(2);
for (const name of chosen.length > 0 ? chosen : Object.keys(SUITES)) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'prose-nvim-test-'));
  const workspace = path.join(home, 'workspace');
  fs.cpSync(path.join(here, '../workspace'), workspace, { recursive: true });
  const arguments_ = ['--headless', '-i', 'NONE', '-n', '-u', path.join(here, 'init.lua'), '-c', `luafile ${path.join(here, 'test.lua')}`];
  const result = spawnSync(need('PROSE_NVIM'), arguments_, {
    cwd: workspace,
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: 300_000,
    env: {
      ...process.env,
      HOME: home,
      XDG_CONFIG_HOME: path.join(home, 'config'),
      XDG_DATA_HOME: path.join(home, 'data'),
      XDG_STATE_HOME: path.join(home, 'state'),
      XDG_CACHE_HOME: path.join(home, 'cache'),
      PROSE_PLUGIN: path.resolve(here, '../../../editors/neovim'),
      PROSE_SERVER: SUITES[name].server(),
      PROSE_TRUSTED: SUITES[name].trusted,
      PROSE_SUITE: name,
    },
  });
  if (result.status !== 0) {
    failed = true;
    if (result.error || result.status === null) {
      console.log(`FAIL ${name} -- ${result.error ?? result.signal}\n0 passed, 1 failed`);
    }
  }
  fs.rmSync(home, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
