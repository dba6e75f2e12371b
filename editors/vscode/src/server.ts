// Where the language server is.

import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';

const EXE = process.platform === 'win32' ? 'prose-lsp.exe' : 'prose-lsp';

/** A server to start, or the reason why there is none. */
export type Found = { readonly path: string } | { readonly problem: string };

/**
 * The setting (machine scope, so no workspace can name a program to start), else the server inside the
 * extension, else the first one on `PATH`.
 */
export function findServer(context: vscode.ExtensionContext): Found {
  const setting = vscode.workspace.getConfiguration('prose').get('server.path', '').trim();
  if (setting) {
    return isFile(setting)
      ? { path: setting }
      : { problem: `The setting prose.server.path names ${setting}, and there is no such file.` };
  }
  const bundled = context.asAbsolutePath(path.join('server', EXE));
  if (isFile(bundled)) {
    return { path: bundled };
  }
  const onPath = (process.env['PATH'] ?? '')
    .split(path.delimiter)
    // An empty or relative entry means the current folder, which may be the workspace.
    .filter((folder) => path.isAbsolute(folder))
    .map((folder) => path.join(folder, EXE))
    .find(isFile);
  return onPath
    ? { path: onPath }
    : { problem: `The language server ${EXE} is neither in the extension nor on PATH. Install it, or set prose.server.path.` };
}

function isFile(file: string): boolean {
  try {
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
