// The language client: how it starts, what it tells the server about itself, which of its requests it serves.

import * as vscode from 'vscode';
import {
  LSPErrorCodes,
  LanguageClient,
  ResponseError,
  RevealOutputChannelOn,
  State,
  type ClientCapabilities,
  type FeatureState,
  type StaticFeature,
} from 'vscode-languageclient/node';
import { askApproval, askInput } from './questions';
import { ExecuteCommandRequest, approveImports, input, runEvent, type RunArgument, type RunStarted } from './protocol';
import type { Runs } from './runs';

/** Tells the server that this client shows run events and answers a run's questions. */
class RunCapabilities implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    const experimental = (capabilities.experimental ?? {}) as Record<string, unknown>;
    experimental['prose'] = { runEvent: true, input: true, approveImports: true };
    capabilities.experimental = experimental;
  }
  initialize(): void {}
  getState(): FeatureState {
    return { kind: 'static' };
  }
  clear(): void {}
}

/** A client for the server at `serverPath`, not yet started. */
export function createClient(
  serverPath: string,
  runs: Runs,
  fileEvents: vscode.FileSystemWatcher[],
): LanguageClient {
  const client: LanguageClient = new LanguageClient(
    'prose',
    'OpenProse',
    { command: serverPath, args: ['--stdio'] },
    {
      documentSelector: [
        { scheme: 'file', language: 'prose' },
        { scheme: 'untitled', language: 'prose' },
      ],
      // A function: a restart after the person trusted the workspace must say so.
      initializationOptions,
      synchronize: { configurationSection: 'prose', fileEvents },
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: {
        // Lenses and code actions arrive here, under the server's own command names.
        executeCommand: (command, args, next) =>
          command === 'prose.run' ? startRun(client, runs, args[0] as RunArgument) : next(command, args),
      },
    },
  );
  client.registerFeature(new RunCapabilities());
  client.onNotification(runEvent, ({ runId, event }) => runs.record(runId, event));
  client.onRequest(input, askInput);
  client.onRequest(approveImports, askApproval);
  client.onDidChangeState(({ newState }) => {
    if (newState === State.Stopped) {
      runs.serverStopped();
    }
  });
  return client;
}

/**
 * Starts a run and shows its log. The version sent is that of the text now in the editor: a lens may have been
 * drawn for an older one, and the client sends pending edits before any request. A refusal (untrusted workspace,
 * errors in the program) is the server's sentence, shown as it is.
 */
export async function startRun(
  client: LanguageClient,
  runs: Runs,
  argument: RunArgument,
  tries = 3,
): Promise<RunStarted | undefined> {
  const uri = client.protocol2CodeConverter.asUri(argument.uri);
  const document = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri.toString());
  const backend = argument.backend ?? vscode.workspace.getConfiguration('prose').get('backend', '');
  const sent: RunArgument = {
    ...argument,
    ...(document ? { version: document.version } : {}),
    ...(backend ? { backend } : {}),
  };
  try {
    const started = (await client.sendRequest(ExecuteCommandRequest.type, {
      command: 'prose.run',
      arguments: [sent],
    })) as RunStarted | null;
    if (started?.runId) {
      runs.started(started.runId, vscode.workspace.asRelativePath(uri));
      return started;
    }
    return undefined;
  } catch (error) {
    if (error instanceof ResponseError && error.code === LSPErrorCodes.ContentModified && tries > 1) {
      // The text changed while the server looked at it.
      return startRun(client, runs, argument, tries - 1);
    }
    const choices = backend === 'simulate' ? [] : ['Run Simulated'];
    void vscode.window
      .showErrorMessage(error instanceof Error ? error.message : String(error), ...choices)
      .then((choice) => (choice ? startRun(client, runs, { uri: argument.uri, backend: 'simulate' }) : undefined));
    return undefined;
  }
}

function initializationOptions(): Record<string, unknown> {
  const settings = vscode.workspace.getConfiguration('prose');
  const backend = settings.get('backend', '');
  const maxParallel = settings.get<number | null>('maxParallel', null);
  return {
    trusted: vscode.workspace.isTrusted,
    lint: settings.get('lint', {}),
    ...(backend ? { backend } : {}),
    ...(maxParallel ? { maxParallel } : {}),
  };
}
