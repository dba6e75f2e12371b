// The runs this window started or hears of, and the log they write.

import * as vscode from 'vscode';
import { EventLog, endStatus, endsRun, type RunEvent } from './eventText';

/** A run that has not ended yet. */
export interface ActiveRun {
  readonly runId: string;
  /** The program's file name, or the run's id when another client started it. */
  readonly label: string;
}

/** Keeps the runs that are under way and writes every event into the channel “OpenProse Runs”. */
export class Runs implements vscode.Disposable {
  private readonly active = new Map<string, ActiveRun>();
  private readonly ended = new Set<string>();
  private readonly logs = new Map<string, EventLog>();
  private readonly events = new vscode.EventEmitter<{ runId: string; event: RunEvent }>();
  readonly channel = vscode.window.createOutputChannel('OpenProse Runs');

  /** Every event of every run, in the order the server sent them. */
  readonly onEvent = this.events.event;

  list(): readonly ActiveRun[] {
    return [...this.active.values()];
  }

  /** A run was accepted. Its events may have come before this answer, its end included. */
  started(runId: string, label: string): void {
    if (!this.ended.has(runId)) {
      this.active.set(runId, { runId, label });
      this.updateContext();
    }
    if (reveal() === 'onRun') {
      this.channel.show(true);
    }
  }

  record(runId: string, event: RunEvent): void {
    if (event.type === 'run_started') {
      // A run that waited for an answer goes on under its own id.
      this.ended.delete(runId);
    }
    if (!this.active.has(runId) && !this.ended.has(runId)) {
      this.active.set(runId, { runId, label: runId });
      this.updateContext();
    }
    const log = this.logs.get(runId) ?? new EventLog();
    this.logs.set(runId, log);
    const line = log.line(event);
    if (line !== undefined) {
      this.channel.appendLine(`${clock(event['ts'])} ${shortId(runId)} ${line}`);
    }
    if (endsRun(event)) {
      this.finish(runId, endStatus(event));
    }
    this.events.fire({ runId, event });
  }

  /** The server is gone, and with it every run it held. They can be resumed from their run folders. */
  serverStopped(): void {
    for (const run of this.active.values()) {
      this.channel.appendLine(`${clock(undefined)} ${shortId(run.runId)} ! the language server stopped; \`prose resume ${run.runId}\` continues this run`);
    }
    this.active.clear();
    this.logs.clear();
    this.updateContext();
  }

  dispose(): void {
    this.events.dispose();
    this.channel.dispose();
  }

  private finish(runId: string, status: string): void {
    const label = this.active.get(runId)?.label ?? runId;
    this.active.delete(runId);
    this.logs.delete(runId);
    this.ended.add(runId);
    this.updateContext();
    if (status === 'failed') {
      if (reveal() !== 'never') {
        this.channel.show(true);
      }
      void vscode.window.showErrorMessage(`${label} failed.`, 'Show Run Log').then((choice) => {
        if (choice) {
          this.channel.show(true);
        }
      });
    } else {
      vscode.window.setStatusBarMessage(`$(check) ${label}: ${status}`, 8000);
    }
  }

  private updateContext(): void {
    void vscode.commands.executeCommand('setContext', 'prose.runActive', this.active.size > 0);
  }
}

function reveal(): string {
  return vscode.workspace.getConfiguration('prose').get('revealRunLog', 'onRun');
}

/** The end of a run id is its random part; the beginning is the date, the same for all runs of a day. */
function shortId(runId: string): string {
  return runId.slice(-6);
}

function clock(ts: unknown): string {
  const time = typeof ts === 'string' || typeof ts === 'number' ? new Date(ts) : new Date();
  return (Number.isNaN(time.getTime()) ? new Date() : time).toTimeString().slice(0, 8);
}
