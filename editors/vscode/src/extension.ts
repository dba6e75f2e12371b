// Entry point: starts the language client and registers the commands a person can call.

import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { createClient, startRun } from './client';
import type { RunEvent } from './eventText';
import { ExecuteCommandRequest, viewText } from './protocol';
import { Runs } from './runs';
import { findServer } from './server';

/** What other extensions and the tests get from this one. */
export interface Api {
  /** Fires for every event of every run of this window. */
  readonly onRunEvent: vscode.Event<{ runId: string; event: RunEvent }>;
}

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<Api> {
  const runs = new Runs();
  const texts = new ServerTexts();
  const files = ['**/*.prose', '**/prose.toml'].map((glob) => vscode.workspace.createFileSystemWatcher(glob));
  const restartServer = () => restart(context, runs, files);
  context.subscriptions.push(
    runs,
    ...files,
    vscode.workspace.registerTextDocumentContentProvider(ServerTexts.scheme, texts),
    vscode.commands.registerCommand('prose.runFile', () => runActiveEditor(runs, undefined)),
    vscode.commands.registerCommand('prose.runSimulated', () => runActiveEditor(runs, 'simulate')),
    vscode.commands.registerCommand('prose.cancelRun', () => cancelRun(runs)),
    vscode.commands.registerCommand('prose.showRuns', () => runs.channel.show(true)),
    vscode.commands.registerCommand('prose.restartServer', restartServer),
    vscode.commands.registerCommand('prose.showServerText', () => texts.show()),
    vscode.workspace.onDidGrantWorkspaceTrust(restartServer),
    vscode.workspace.onDidChangeConfiguration((change) => {
      // These are read when the server starts; the others it asks for or gets with each run.
      if (['server.path', 'maxParallel', 'lint'].some((name) => change.affectsConfiguration(`prose.${name}`))) {
        void restartServer();
      }
    }),
  );
  await start(context, runs, files);
  return { onRunEvent: runs.onEvent };
}

export async function deactivate(): Promise<void> {
  await client?.dispose();
}

async function start(
  context: vscode.ExtensionContext,
  runs: Runs,
  files: vscode.FileSystemWatcher[],
): Promise<void> {
  const found = findServer(context);
  if ('problem' in found) {
    const settings = 'Open Settings';
    void vscode.window.showErrorMessage(found.problem, settings).then((choice) => {
      if (choice) {
        void vscode.commands.executeCommand('workbench.action.openSettings', 'prose.server.path');
      }
    });
    return;
  }
  client = createClient(found.path, runs, files);
  // The client itself reports a server that can't be started.
  await client.start().catch(() => undefined);
}

/** A new client rather than `client.restart()`: the path of the server may be another one now. */
async function restart(
  context: vscode.ExtensionContext,
  runs: Runs,
  files: vscode.FileSystemWatcher[],
): Promise<void> {
  if (runs.list().length > 0) {
    const stop = 'Stop Them';
    const chosen = await vscode.window.showWarningMessage(
      'Programs are running; restarting the language server stops them. They can be resumed later.',
      { modal: true },
      stop,
    );
    if (chosen !== stop) {
      return;
    }
  }
  const old = client;
  client = undefined;
  await old?.dispose().catch(() => undefined);
  await start(context, runs, files);
}

async function runActiveEditor(runs: Runs, backend: string | undefined): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== 'prose') {
    void vscode.window.showInformationMessage('Open a .prose file to run it.');
    return;
  }
  const running = theClient();
  if (running) {
    const uri = running.code2ProtocolConverter.asUri(document.uri);
    await startRun(running, runs, { uri, ...(backend ? { backend } : {}) });
  }
}

async function cancelRun(runs: Runs): Promise<void> {
  const active = runs.list();
  const first = active[0];
  if (!first) {
    void vscode.window.showInformationMessage('No program is running.');
    return;
  }
  const chosen =
    active.length === 1
      ? first
      : (
          await vscode.window.showQuickPick(
            active.map((run) => ({ label: run.label, description: run.runId, run })),
            { title: 'Cancel which run?' },
          )
        )?.run;
  if (chosen) {
    await theClient()?.sendRequest(ExecuteCommandRequest.type, {
      command: 'prose.cancel',
      arguments: [{ runId: chosen.runId }],
    });
  }
}

function theClient(): LanguageClient | undefined {
  if (client?.isRunning()) {
    return client;
  }
  void vscode.window.showErrorMessage('The OpenProse language server is not running.');
  return undefined;
}

/** Read-only documents with what the server holds for a file: for bug reports. */
class ServerTexts implements vscode.TextDocumentContentProvider {
  static readonly scheme = 'prose-server-text';
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const answer = await theClient()?.sendRequest(viewText, { uri: uri.query });
    if (!answer) {
      return '';
    }
    return answer.tree ? `${answer.text}\n${'─'.repeat(40)}\n${answer.tree}` : answer.text;
  }

  async show(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    const running = document && theClient();
    if (!document || !running) {
      return;
    }
    const uri = vscode.Uri.from({
      scheme: ServerTexts.scheme,
      path: `${document.uri.path}.txt`,
      query: running.code2ProtocolConverter.asUri(document.uri),
    });
    // The same document may be open from before; its text is the server's of that time.
    this.changed.fire(uri);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
    });
  }
}
