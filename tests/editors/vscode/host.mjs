// Runs host/index.js inside VS Code's real extension host, with the extension of this repository under development.
// usage: node host.mjs [SUITE…]   a suite is a name in SUITES; default: all

import * as fs from 'node:fs';
import * as path from 'node:path';
import { PATIENCE, here, need, openWorkbench, outFolder, root, scratch, startServer } from './lib.mjs';

const scripted = path.join(here, '../scripted-server.mjs');

/** What a suite needs: the language server, and whether the person trusts the workspace. */
const SUITES = {
  trusted: { server: () => need('PROSE_LSP'), trust: true },
  restricted: { server: () => need('PROSE_LSP'), trust: false },
  // Questions that a simulated run never asks come from a server that only asks them.
  questions: { server: () => scripted, trust: true },
};

async function runSuite(name) {
  const suite = SUITES[name];
  const place = scratch(path.join(here, '../workspace'));
  const resultFile = path.join(place.folder, 'result.txt');
  const server = await startServer({
    home: place.folder,
    settings: {
      'prose.server.path': suite.server(),
      'security.workspace.trust.enabled': !suite.trust,
    },
    env: { PROSE_SUITE: name, PROSE_RESULT: resultFile },
  });
  let browser;
  try {
    const remote = (file) => `vscode-remote://127.0.0.1:${server.port}${file}`;
    const opened = await openWorkbench({
      port: server.port,
      folder: place.workspace,
      payload: [
        ['extensionDevelopmentPath', remote(path.join(root, 'editors/vscode'))],
        ['extensionTestsPath', remote(path.join(here, 'host/index.js'))],
        ['skipWelcome', 'true'],
      ],
    });
    browser = opened.browser;
    const end = Date.now() + 2 * PATIENCE;
    while (!fs.existsSync(resultFile)) {
      if (Date.now() > end) {
        await opened.page.screenshot({ path: path.join(outFolder(), `host-${name}.png`) });
        throw new Error(`the tests did not end; see ${outFolder()}\n${server.log()}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const result = fs.readFileSync(resultFile, 'utf8');
    process.stdout.write(result);
    const passed = / 0 failed$/m.test(result) && !/^0 passed/m.test(result);
    if (!passed) {
      await opened.page.screenshot({ path: path.join(outFolder(), `host-${name}.png`) });
    }
    return passed;
  } finally {
    await browser?.close();
    await server.stop();
    place.remove();
  }
}

const chosen = process.argv.slice(2);
let failed = false;
for (const name of chosen.length > 0 ? chosen : Object.keys(SUITES)) {
  try {
    failed = !(await runSuite(name)) || failed;
  } catch (error) {
    failed = true;
    console.log(`FAIL ${name} -- ${error.stack ?? error}\n0 passed, 1 failed`);
  }
}
process.exit(failed ? 1 : 0);
