// Takes the README's picture: a program in VS Code, the log of its simulated run, and a slip of the pen underlined.
// usage: node screenshot.mjs FILE.png    (needs what workbench.mjs needs)

import * as fs from 'node:fs';
import * as path from 'node:path';
import { here, installExtension, need, openWorkbench, scratch, startServer } from './lib.mjs';

const LARGEST = 300 * 1024;
const [file] = process.argv.slice(2);
const place = scratch(path.join(here, 'picture'));
let server;
let opened;
try {
  await installExtension(place.folder, need('PROSE_VSIX'));
  server = await startServer({
    home: place.folder,
    settings: {
      'security.workspace.trust.enabled': false,
      'workbench.colorTheme': 'Default Dark Modern',
      'workbench.activityBar.location': 'hidden',
      'workbench.layoutControl.enabled': false,
      'workbench.tips.enabled': false,
      'editor.minimap.enabled': false,
      'editor.fontSize': 13,
      'editor.lineHeight': 17,
      'editor.hover.above': false,
      'editor.renderLineHighlight': 'none',
      'editor.wordWrap': 'off',
      'breadcrumbs.enabled': false,
      'window.title': '${activeEditorShort}',
      'problems.decorations.enabled': false,
    },
  });
  opened = await openWorkbench({ port: server.port, folder: place.workspace });
  const { page } = opened;
  await page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'release-notes.prose' }).dblclick();
  await page.waitForSelector('.tab.active:has-text("release-notes.prose")');
  await page.keyboard.press('Control+B');
  await page.locator('.codelens-decoration a', { hasText: /simulated/i }).first().click();
  const log = page.locator('.panel .view-line');
  await log.filter({ hasText: /run.finished.*completed/ }).first().waitFor();
  // A misspelt agent, typed as a person would.
  await page.locator('.editor-instance .view-line', { hasText: /resume:.editor/ }).click();
  await page.keyboard.press('End');
  for (const key of ['Backspace', 'Backspace', 't', 'o', 'r', 'Escape']) {
    await page.keyboard.press(key);
  }
  await page.waitForSelector('.squiggly-error');
  await page.locator('.editor-instance .view-line span span', { hasText: /^edittor$/ }).last().hover();
  await page.locator('.monaco-hover .hover-row', { hasText: 'edittor' }).first().waitFor({ state: 'visible' });
  fs.mkdirSync(path.dirname(file), { recursive: true });
  await page.screenshot({ path: file });
  const { size } = fs.statSync(file);
  if (size > LARGEST) {
    throw new Error(`${file} has ${size} bytes; a README's picture may have ${LARGEST}`);
  }
  console.log(`${file}: ${size} bytes`);
} catch (error) {
  await opened?.page.screenshot({ path: path.join(process.env.PROSE_OUT ?? '.', 'screenshot.png') }).catch(() => undefined);
  console.log(error.stack ?? error);
  process.exitCode = 1;
} finally {
  await opened?.browser.close();
  await server?.stop();
  place.remove();
}
