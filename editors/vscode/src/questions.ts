// Questions that a run asks the person at the editor.

import * as vscode from 'vscode';
import type { ApproveParams, InputParams } from './protocol';

const OTHER = 'Other…';

/**
 * Asks for one input of a program. Choices come as a list, with a way to answer something else, since they are
 * read out of the program's prose. Dismissed → `null`: the run goes on waiting.
 */
export async function askInput(
  params: InputParams,
  token: vscode.CancellationToken,
): Promise<{ value: string | null }> {
  const title = `Input for the program: ${params.name}`;
  if (params.options && params.options.length > 0) {
    const picked = await vscode.window.showQuickPick(
      [...params.options, OTHER],
      { title, placeHolder: params.prompt, ignoreFocusOut: true },
      token,
    );
    if (picked !== OTHER) {
      return { value: picked ?? null };
    }
  }
  const typed = await vscode.window.showInputBox({ title, prompt: params.prompt, ignoreFocusOut: true }, token);
  return { value: typed ?? null };
}

/**
 * Shows exactly which remote programs a run would fetch and takes the phrase that allows it, typed by hand.
 * Everything but the phrase is sent as an empty reply, which the server takes as a refusal.
 */
export async function askApproval(
  params: ApproveParams,
  token: vscode.CancellationToken,
): Promise<{ reply: string }> {
  const review = 'Review and Type the Phrase…';
  const chosen = await vscode.window.showWarningMessage(
    'This program wants to fetch remote programs.',
    { modal: true, detail: params.targets.join('\n') },
    review,
  );
  if (chosen !== review || token.isCancellationRequested) {
    return { reply: '' };
  }
  const reply = await vscode.window.showInputBox(
    {
      title: `Fetch ${params.targets.length} remote program${params.targets.length === 1 ? '' : 's'} for this run`,
      prompt: `Type “${params.phrase}” to allow it. ${params.targets.join(', ')}`,
      ignoreFocusOut: true,
      validateInput: (text) => (text === params.phrase ? undefined : `Must be exactly: ${params.phrase}`),
    },
    token,
  );
  return { reply: reply === params.phrase ? reply : '' };
}
