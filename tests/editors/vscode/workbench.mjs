// A person at VS Code's window, with the packaged extension installed: sees the error, clicks the lens, sees the run.
// Needs PROSE_VSIX beside what lib.mjs needs. The server is the one inside the package.

import * as path from 'node:path';
import { Report, here, installExtension, need, openWorkbench, outFolder, scratch, startServer } from './lib.mjs';

const report = new Report('VS Code, the window, with the packaged extension');
const place = scratch(path.join(here, '../workspace'));
let server;
let opened;
try {
  await installExtension(place.folder, need('PROSE_VSIX'));
  server = await startServer({ home: place.folder, settings: { 'security.workspace.trust.enabled': false } });
  opened = await openWorkbench({ port: server.port, folder: place.workspace });
  const { page } = opened;

  /** Stops at the first thing a person would not see: the later ones need it. */
  const see = async (name, body) => {
    if (!(await report.check(name, body))) {
      throw new Error(`see ${path.join(outFolder(), 'workbench.png')}`);
    }
  };
  const openFile = async (name) => {
    await page.locator('.explorer-folders-view .monaco-list-row', { hasText: name }).dblclick();
    await page.waitForSelector(`.tab.active:has-text("${name}")`);
    await page.waitForSelector('.editor-instance .view-line');
  };

  await see('the workbench opens', () => page.waitForSelector('.monaco-workbench').then(() => undefined));

  await see('a misspelt agent is underlined', async () => {
    await openFile('broken.prose');
    await page.waitForSelector('.squiggly-error');
  });

  await see('the problems panel says what is wrong', async () => {
    await page.keyboard.press('Control+Shift+M');
    const row = page.locator('.markers-panel .monaco-list-row', { hasText: 'reviewr' });
    await row.first().waitFor();
    return (await row.first().textContent())?.trim();
  });

  await see('words of the language are coloured', async () => {
    // The editor draws spaces as no-break spaces.
    const classOf = (word) => page.locator('.editor-instance .view-line span span', { hasText: word }).first().getAttribute('class');
    const [keyword, text] = [await classOf(/^agent$/), await classOf(/You.write/)];
    if (!keyword || !text || keyword === text) {
      throw new Error(`agent has ${keyword}, a string has ${text}`);
    }
  });

  await see('Run and Run simulated stand above the program', async () => {
    await openFile('hello.prose');
    await page.locator('.codelens-decoration a', { hasText: /simulated/i }).first().waitFor();
    return (await page.locator('.codelens-decoration').first().textContent())?.trim();
  });

  await see('clicking the lens runs the program; the log says that it finished', async () => {
    await page.locator('.codelens-decoration a', { hasText: /simulated/i }).first().click();
    const lines = page.locator('.output-view .view-line, .panel .view-line');
    await lines.filter({ hasText: /run.finished.*completed/ }).first().waitFor();
    await lines.filter({ hasText: /session.started/ }).first().waitFor();
    return (await lines.filter({ hasText: /run.finished/ }).first().textContent())?.trim();
  });

  await see('the status bar says so too', () =>
    page.locator('.statusbar-item', { hasText: /hello\.prose: completed/ }).first().waitFor(),
  );
} catch (error) {
  await opened?.page.screenshot({ path: path.join(outFolder(), 'workbench.png') }).catch(() => undefined);
  await report.check('the window', () => Promise.reject(error));
  if (server) {
    console.log(server.log().slice(-2000));
  }
} finally {
  await opened?.browser.close();
  await server?.stop();
  place.remove();
}
process.exit(report.close());
