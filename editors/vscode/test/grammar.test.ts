// The grammar against fixtures. Under a line of code, `# ^^^ a, b` says that every character above the carets has
// the scopes a and b, and `# ^^^ !a` that it doesn't have a.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { test } from 'node:test';
import * as oniguruma from 'vscode-oniguruma';
import { INITIAL, Registry, parseRawGrammar } from 'vscode-textmate';

const FIXTURES = 'test/fixtures';

async function loadGrammar() {
  const wasm = fs.readFileSync(path.join(path.dirname(require.resolve('vscode-oniguruma')), 'onig.wasm'));
  await oniguruma.loadWASM(wasm);
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) => {
      assert.equal(scope, 'source.prose');
      const file = 'syntaxes/prose.tmLanguage.json';
      return parseRawGrammar(fs.readFileSync(file, 'utf8'), file);
    },
  });
  const grammar = await registry.loadGrammar('source.prose');
  assert(grammar);
  return grammar;
}

const grammar = loadGrammar();

for (const name of fs.readdirSync(FIXTURES).filter((each) => each.endsWith('.prose'))) {
  test(`grammar: ${name}`, async () => {
    const lines = fs.readFileSync(path.join(FIXTURES, name), 'utf8').split('\n');
    const isCheck = (line: string) => /^#\s*\^+/.test(line);
    let state = INITIAL;
    const wrong: string[] = [];
    let checked = 0;
    let above: { text: string; scopes: string[][] } | undefined;
    for (const [index, line] of lines.entries()) {
      if (!isCheck(line)) {
        const result = (await grammar).tokenizeLine(line, state);
        assert(!result.stoppedEarly, `line ${index + 1} took too long`);
        state = result.ruleStack;
        const scopes: string[][] = [];
        for (const token of result.tokens) {
          scopes.fill([], token.startIndex, token.endIndex);
          for (let at = token.startIndex; at < token.endIndex; at++) {
            scopes[at] = token.scopes;
          }
        }
        above = { text: line, scopes };
        continue;
      }
      const [, carets = '', wanted = ''] = /^#\s*(\^+)\s+(.*)$/.exec(line) ?? [];
      const from = line.indexOf('^');
      assert(above && wanted, `${name}:${index + 1}: a check needs a line above it and a scope`);
      for (const want of wanted.split(/\s*,\s*/)) {
        const scope: string = want.replace(/^!/, '');
        for (let at = from; at < from + carets.length; at++) {
          const has: boolean = (above.scopes[at] ?? []).some((each) => each === scope || each.startsWith(`${scope}.`));
          if (has === want.startsWith('!')) {
            const found = (above.scopes[at] ?? []).slice(1).join(' ');
            wrong.push(`${name}:${index + 1}: column ${at + 1} (${above.text[at]}): wanted ${want}, has ${found}`);
            break;
          }
        }
        checked++;
      }
    }
    assert.deepEqual(wrong, []);
    assert(checked > 0, `${name} checks nothing`);
  });
}
