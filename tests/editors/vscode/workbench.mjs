// A person at VS Code's window, with the packaged extension installed: sees the error, clicks the lens, sees the run.
// Needs PROSE_VSIX beside what lib.mjs needs. The server is the one inside the package.

import * as path from 'node:path';
import { Report, here, installExtension, need, openWorkbench, outFolder, scratch, startServer } from './lib.mjs';

const report = new Report('VS Code, the window, with the packaged extension');
const scripted = path.join(here, '../scripted-server.mjs');

/** Opens a fresh window for `body`; a check that fails ends it, since the later ones need what it looked for. */
async function inWindow(name, settings, body) {
  const place = scratch(path.join(here, '../workspace'));
  const picture = path.join(outFolder(), `${name}.png`);
  let server;
  let opened;
  const see = async (what, look) => {
    if (!(await report.check(what, look))) {
      throw new Error(`see ${picture}`);
    }
  };
  try {
    await installExtension(place.folder, need('PROSE_VSIX'));
    server = await startServer({
      home: place.folder,
      settings: { 'security.workspace.trust.enabled': false, ...settings },
    });
    opened = await openWorkbench({ port: server.port, folder: place.workspace });
    await body(opened.page, see);
  } catch (error) {
    await opened?.page.screenshot({ path: picture }).catch(() => undefined);
    await report.check(name, () => Promise.reject(error));
    console.log(server?.log().slice(-2000) ?? '');
  } finally {
    await opened?.browser.close();
    await server?.stop();
    place.remove();
  }
}

async function openFile(page, name) {
  await page.locator('.explorer-folders-view .monaco-list-row', { hasText: name }).dblclick();
  await page.waitForSelector(`.tab.active:has-text("${name}")`);
  await page.waitForSelector('.editor-instance .view-line');
}

/** Waits for a line of the run log. The editor draws spaces as no-break spaces, which the patterns' dots match. */
async function logLine(page, pattern) {
  const line = page.locator('.panel .view-line').filter({ hasText: pattern }).first();
  await line.waitFor();
  return (await line.textContent())?.trim();
}

await inWindow('workbench', {}, async (page, see) => {
  await see('the workbench opens', () => page.waitForSelector('.monaco-workbench').then(() => undefined));

  await see('a misspelt agent is underlined', async () => {
    await openFile(page, 'broken.prose');
    await page.waitForSelector('.squiggly-error');
  });

  await see('the problems panel says what is wrong', async () => {
    await page.keyboard.press('Control+Shift+M');
    const row = page.locator('.markers-panel .monaco-list-row', { hasText: 'reviewr' }).first();
    await row.waitFor();
    return (await row.textContent())?.trim();
  });

  await see('words of the language are coloured', async () => {
    const classOf = (word) => page.locator('.editor-instance .view-line span span', { hasText: word }).first().getAttribute('class');
    const [keyword, text] = [await classOf(/^agent$/), await classOf(/You.write/)];
    if (!keyword || !text || keyword === text) {
      throw new Error(`agent has ${keyword}, a string has ${text}`);
    }
  });

  await see('Run and Run simulated stand above the program', async () => {
    await openFile(page, 'hello.prose');
    await page.locator('.codelens-decoration a', { hasText: /simulated/i }).first().waitFor();
    return (await page.locator('.codelens-decoration').first().textContent())?.trim();
  });

  await see('clicking the lens runs the program; the log says that it finished', async () => {
    await page.locator('.codelens-decoration a', { hasText: /simulated/i }).first().click();
    await logLine(page, /session.started/);
    return logLine(page, /run.finished.*completed/);
  });

  await see('the status bar says so too', () =>
    page.locator('.statusbar-item', { hasText: /hello\.prose: completed/ }).first().waitFor(),
  );
});

// No program of this repository fetches others, so the question comes from a server that only asks.
await inWindow('approval', { 'prose.server.path': scripted, 'prose.backend': 'approve' }, async (page, see) => {
  const run = async () => {
    // Run itself, with or without its keys: until the window knows that it is trusted, Run Simulated stands in its place.
    await page.locator('.editor-actions a[aria-label="Run"], .editor-actions a[aria-label^="Run ("]').first().click();
    await page.locator('.monaco-dialog-box', { hasText: 'https://example.org/a.prose' }).waitFor();
  };

  await see('a run that wants remote programs shows exactly which', async () => {
    await openFile(page, 'hello.prose');
    await run();
  });

  await see('Cancel approves nothing', async () => {
    await page.locator('.monaco-dialog-box .monaco-button', { hasText: 'Cancel' }).click();
    const line = await logLine(page, /answered/);
    if (/yes/.test(line)) {
      throw new Error(line);
    }
    await logLine(page, /run.finished.*completed/);
  });

  await see('only the phrase is taken', async () => {
    await run();
    await page.locator('.monaco-dialog-box .monaco-button', { hasText: 'Review' }).click();
    const box = page.locator('.quick-input-box input');
    await box.fill('yes');
    await page.locator('.quick-input-message', { hasText: 'Must be exactly: yes please' }).waitFor();
    await page.keyboard.press('Enter');
    await box.fill('yes please');
    await page.locator('.quick-input-message', { hasText: 'Press' }).waitFor();
    await page.keyboard.press('Enter');
    return logLine(page, /answered.*yes.please/);
  });
});
process.exit(report.close());
