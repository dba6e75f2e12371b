// Runs inside VS Code's extension host, where the whole `vscode` API is at hand. Started by ../host.mjs.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const vscode = require('vscode');

const EXTENSION = 'openprose-toolchain.openprose';
/** Longer than anything needs on a slow machine; only a hang meets it. */
const PATIENCE = 60_000;

/** Waits until `probe` gives something truthy and returns it. */
async function until(what, probe) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await probe();
    if (found) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(`gave up waiting for ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

const folder = () => vscode.workspace.workspaceFolders[0].uri;
const command = (name, ...rest) => vscode.commands.executeCommand(name, ...rest);

async function open(name) {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder(), name));
  return vscode.window.showTextDocument(document);
}

/** The place of `needle` in the document, `into` characters further on. */
function find(document, needle, into = 0) {
  const at = document.getText().indexOf(needle);
  assert(at >= 0, `${needle} is not in the document`);
  return document.positionAt(at + into);
}

/** Text of the run log, as the person sees it. */
function runLog() {
  return vscode.workspace.textDocuments
    .filter((each) => each.uri.scheme === 'output' && /OpenProse Runs/.test(each.uri.path))
    .map((each) => each.getText())
    .join('');
}

/** Collects events from now on; `finished()` waits for the next run to end and returns its events. */
function watchRuns(extension) {
  const events = [];
  const subscription = extension.exports.onRunEvent((each) => events.push(each));
  return {
    events,
    async finished() {
      const last = await until('the end of the run', () => events.find(({ event }) => event.type === 'run_finished'));
      subscription.dispose();
      return events.filter(({ runId }) => runId === last.runId).map(({ event }) => event);
    },
    stop: () => subscription.dispose(),
  };
}

async function lenses(document) {
  const found = await until('code lenses', async () => {
    const all = await command('vscode.executeCodeLensProvider', document.uri, 20);
    return all.filter((lens) => lens.command).length >= 2 && all;
  });
  return found.map((lens) => lens.command);
}

const lensNamed = (all, pattern) => {
  const found = all.find((each) => pattern.test(each.title));
  assert(found, `no lens ${pattern} among ${all.map((each) => each.title)}`);
  return found;
};

const isSimulated = (each) => /simulated/i.test(each.title);

const suites = {
  async trusted(check, extension) {
    const broken = await open('broken.prose');
    const { document } = broken;

    await check('the file is an OpenProse file', () => assert.equal(document.languageId, 'prose'));

    await check('an undefined agent is an error where it stands', async () => {
      const found = await until('diagnostics', () => {
        const all = vscode.languages.getDiagnostics(document.uri);
        return all.some((each) => each.severity === vscode.DiagnosticSeverity.Error) && all;
      });
      const error = found.find((each) => each.severity === vscode.DiagnosticSeverity.Error);
      assert.equal(document.getText(error.range), 'reviewr');
      return error.message;
    });

    await check('mending it takes the error away', async () => {
      const errors = () =>
        vscode.languages.getDiagnostics(document.uri).filter((each) => each.severity === vscode.DiagnosticSeverity.Error);
      assert.equal(errors().length, 1);
      const start = find(document, 'reviewr');
      await broken.edit((edit) => edit.replace(new vscode.Range(start, start.translate(0, 7)), 'reviewer'));
      await until('no error', () => errors().length === 0);
    });

    await check('hover on an agent tells about it', async () => {
      const hovers = await command('vscode.executeHoverProvider', document.uri, find(document, 'session: reviewer', 10));
      const text = hovers.flatMap((each) => each.contents).map((each) => each.value ?? each).join('\n');
      assert.match(text, /reviewer/);
      assert.match(text, /opus/);
    });

    await check('definition of an agent', async () => {
      const all = await command('vscode.executeDefinitionProvider', document.uri, find(document, 'session: reviewer', 10));
      const line = (all[0].range ?? all[0].targetRange).start.line;
      assert.match(document.lineAt(line).text, /^agent reviewer:/);
    });

    await check('completion offers the agents after session:', async () => {
      const list = await command('vscode.executeCompletionItemProvider', document.uri, find(document, 'session: reviewer', 9));
      const labels = list.items.map((each) => each.label.label ?? each.label);
      assert(labels.includes('reviewer') && labels.includes('writer'), labels.join(' '));
    });

    await check('the outline names the agents', async () => {
      const symbols = await command('vscode.executeDocumentSymbolProvider', document.uri);
      const names = symbols.map((each) => each.name);
      assert(names.some((each) => /reviewer/.test(each)) && names.some((each) => /writer/.test(each)), names.join(' '));
    });

    const hello = (await open('hello.prose')).document;

    await check('lenses Run and Run simulated', async () => {
      const all = await lenses(hello);
      assert(all.some(isSimulated) && all.some((each) => !isSimulated(each) && /run/i.test(each.title)));
      return all.map((each) => each.title).join(', ');
    });

    await check('the lens runs the program to its end, seen event by event', async () => {
      const runs = watchRuns(extension);
      const lens = lensNamed(await lenses(hello), /simulated/i);
      const started = await command(lens.command, ...lens.arguments);
      assert(started?.runId, `the lens answered ${JSON.stringify(started)}`);
      const events = await runs.finished();
      assert.equal(events.at(-1).status, 'completed');
      const count = (type) => events.filter((each) => each.type === type).length;
      assert(count('session_started') >= 2, 'sessions');
      assert.equal(count('session_started'), count('session_finished'));
      return `${events.length} events`;
    });

    await check('the run log shows it, a line an event', async () => {
      const text = await until('the run log', () => /run finished.*completed/.test(runLog()) && runLog());
      assert.match(text, /session started/);
      return text.trim().split('\n').at(-1);
    });

    await check('Run is a code action too', async () => {
      const range = new vscode.Range(0, 0, 0, 0);
      const actions = await command('vscode.executeCodeActionProvider', hello.uri, range);
      const action = actions.find(isSimulated);
      assert(action, actions.map((each) => each.title).join(', '));
      const runs = watchRuns(extension);
      const call = action.command.command ? action.command : action;
      await command(call.command, ...call.arguments);
      assert.equal((await runs.finished()).at(-1).status, 'completed');
    });

    await check('the command palette runs the open file, unsaved text included', async () => {
      const editor = await open('hello.prose');
      const runs = watchRuns(extension);
      await editor.edit((edit) => edit.insert(new vscode.Position(hello.lineCount, 0), '\nsession "One more"\n'));
      await command('prose.runSimulated');
      const labels = (await runs.finished()).filter((each) => each.type === 'session_started').map((each) => each.label);
      assert(labels.some((each) => /One more/.test(each)), labels.join(', '));
      await command('workbench.action.files.revert');
    });

    await check("the server's text is the editor's", async () => {
      await open('hello.prose');
      await command('prose.showServerText');
      const shown = await until('the document', () =>
        vscode.workspace.textDocuments.find((each) => each.uri.scheme === 'prose-server-text' && each.getText() !== ''),
      );
      assert(shown.getText().startsWith(hello.getText()));
    });

    await check('the server can be restarted', async () => {
      await command('prose.restartServer');
      await open('broken.prose');
      await command('workbench.action.files.revert');
      await until('diagnostics again', () => vscode.languages.getDiagnostics(document.uri).length > 0);
    });
  },

  async restricted(check, extension) {
    const hello = (await open('hello.prose')).document;

    await check('the workspace is not trusted', () => assert.equal(vscode.workspace.isTrusted, false));

    await check('Run is refused and starts nothing', async () => {
      const runs = watchRuns(extension);
      const all = await lenses(hello);
      const run = all.find((each) => !isSimulated(each));
      if (run) {
        assert.equal(await command(run.command, ...run.arguments), undefined);
      }
      assert.equal(runs.events.length, 0);
      runs.stop();
    });

    await check('Run simulated runs', async () => {
      const runs = watchRuns(extension);
      await command('prose.runSimulated');
      assert.equal((await runs.finished()).at(-1).status, 'completed');
    });
  },

  async questions(check, extension) {
    await open('hello.prose');
    const asked = async (backend) => {
      const runs = watchRuns(extension);
      await command('prose.run', { uri: vscode.window.activeTextEditor.document.uri.toString(), backend });
      return {
        async answer() {
          const events = await runs.finished();
          return events.find((each) => each.type === 'answered');
        },
      };
    };
    // The test can't press keys, but it can call the commands that keys are bound to. They do nothing while no box
    // is open, so they are repeated until the run ends.
    const acceptUntil = async (run, ...commands) => {
      let answered;
      const waiting = run.answer().then((event) => (answered = event));
      await until('an answer', async () => {
        for (const each of answered ? [] : commands) {
          await command(each);
        }
        return answered;
      });
      return waiting;
    };

    await check('a choice is answered from a list', async () => {
      const event = await acceptUntil(await asked('choice'), 'workbench.action.acceptSelectedQuickOpenItem');
      assert.equal(event.value, 'red');
    });

    await check('an input is answered from a box', async () => {
      const event = await acceptUntil(await asked('input'), 'workbench.action.acceptSelectedQuickOpenItem');
      assert.equal(event.value, '');
    });

    await check('a dismissed box answers nothing', async () => {
      const event = await acceptUntil(await asked('input'), 'workbench.action.closeQuickOpen');
      assert.equal(event.value, null);
    });

    await check('the server is told what the client can show, and the trust', async () => {
      const event = await acceptUntil(await asked('hello'));
      assert.deepEqual(event.experimental, { runEvent: true, input: true, approveImports: true });
      assert.equal(event.options.trusted, true);
    });

    await check('a run can be cancelled', async () => {
      const runs = watchRuns(extension);
      await command('prose.run', { uri: vscode.window.activeTextEditor.document.uri.toString(), backend: 'endless' });
      await until('the start', () => runs.events.length > 0);
      await command('prose.cancelRun');
      assert.equal((await runs.finished()).at(-1).status, 'cancelled');
    });
  },
};

exports.run = async () => {
  const suite = process.env.PROSE_SUITE;
  const lines = [`VS Code ${vscode.version}, extension host, ${suite} workspace`];
  let passed = 0;
  let failed = 0;
  const check = async (name, body) => {
    const begun = Date.now();
    try {
      const shown = await body();
      passed++;
      lines.push(`ok   ${name}${shown === undefined ? '' : ` -- ${String(shown).slice(0, 160)}`} (${Date.now() - begun} ms)`);
    } catch (error) {
      failed++;
      lines.push(`FAIL ${name} -- ${error.stack}`);
    }
  };
  try {
    const extension = vscode.extensions.getExtension(EXTENSION);
    assert(extension, 'the extension is not there');
    await extension.activate();
    await suites[suite](check, extension);
  } catch (error) {
    failed++;
    lines.push(`FAIL ${suite} -- ${error.stack}`);
  }
  lines.push(`${passed} passed, ${failed} failed`, '');
  // Under another name first: the driver reads the file as soon as it is there.
  fs.writeFileSync(`${process.env.PROSE_RESULT}.part`, lines.join('\n'));
  fs.renameSync(`${process.env.PROSE_RESULT}.part`, process.env.PROSE_RESULT);
};
