// What this client and the server say to each other beyond the standard protocol.

import { ExecuteCommandRequest, NotificationType, RequestType } from 'vscode-languageclient/node';
import type { RunEvent } from './eventText';

export { ExecuteCommandRequest };

/** Argument of the server command `prose.run`. */
export interface RunArgument {
  /** The program, as the server knows the document. */
  uri: string;
  /** The version of the text the person sees; the server refuses to run another. */
  version?: number;
  /** A backend's name; without it the configuration decides. */
  backend?: string;
}

/** Answer of `prose.run`: the run goes on in the background. */
export interface RunStarted {
  runId: string;
}

/** Something happened in a run. `seq` rises within a run. */
export const runEvent = new NotificationType<{ runId: string; seq: number; event: RunEvent }>('prose/runEvent');

/** A run waits for a person's answer; `null` leaves it waiting. */
export interface InputParams {
  runId: string;
  requestId: string;
  name: string;
  prompt: string;
  options?: string[] | null;
}

export const input = new RequestType<InputParams, { value: string | null }, void>('prose/input');

/** A run wants to fetch remote programs; only the exact phrase lets it. */
export interface ApproveParams {
  runId: string;
  targets: string[];
  phrase: string;
}

export const approveImports = new RequestType<ApproveParams, { reply: string }, void>('prose/approveImports');

/** The server's own copy of a document, with its syntax tree. */
export const viewText = new RequestType<{ uri: string }, { text: string; tree?: string }, void>('prose/viewText');
