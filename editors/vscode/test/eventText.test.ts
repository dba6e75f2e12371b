import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLog, endStatus, endsRun, type RunEvent } from '../src/eventText';

const place = { stmt: 'main/0', src: { file: 0, start: 0, end: 9 }, path: 'e0' };

test('a start says what begins; its end, which only has the same place, says it again', () => {
  const log = new EventLog();
  const start: RunEvent = {
    type: 'session_started', v: 1, seq: 3, ts: '2026-01-01T00:00:00.000Z', ...place, effect: 'e1', agent: 'writer',
    label: 'Write\na draft', model: 'sonnet', attempt: 1, maxAttempts: 1, binding: { name: 'draft' }, resume: false,
  };
  assert.equal(log.line(start), '▸ session started writer · Write a draft model=sonnet');
  const end: RunEvent = {
    type: 'session_finished', seq: 4, effect: 'e1', end: 'ok', summary: 'A draft.',
    usage: { input_tokens: 10, output_tokens: 5, cost_usd: 0.25 },
  };
  assert.equal(log.line(end), '■ session finished writer · Write a draft A draft. 15 tokens $0.2500');
});

test('parts and frames are told with what they belong to', () => {
  const log = new EventLog();
  log.line({ type: 'construct_started', ...place, construct: 'c', kind: 'parallel_for', total: 2 });
  assert.equal(
    log.line({ type: 'part_started', construct: 'c', index: 1, label: 'left' }),
    '▸ part started parallel for #1 left',
  );
  assert.equal(
    log.line({ type: 'part_finished', construct: 'c', index: 1, end: 'left' }),
    '■ part finished parallel for #1 left left',
  );
  log.line({ type: 'frame_started', ...place, frame: 7, kind: 'block', name: 'review', depth: 1, arguments: {} });
  assert.equal(log.line({ type: 'frame_finished', frame: 7, end: 'ok' }), '■ frame finished block review');
});

test('values of the program read as values', () => {
  const bound = (value: unknown) =>
    new EventLog().line({ type: 'bound', ...place, binding: { name: 'x' }, kind: 'let', value });
  assert.equal(bound({ text: ['two\n', { sha256: 's', len: 9, summary: 'lines' }] }), '· bound x = "two lines"');
  assert.equal(bound({ list: [{ number: 1 }, { bool: true }, 'null'] }), '· bound x = [1, true, null]');
  assert.equal(bound({ record: { a: { text: ['b'] } } }), '· bound x = {a: "b"}');
  assert.equal(bound({ error: { kind: 'timeout', message: 'too slow', attempts: 1 } }), '· bound x = too slow');
});

test('an unknown type is shown with all its fields', () => {
  assert.equal(new EventLog().line({ type: 'moon_phase', phase: 'full', n: 1 }), '· moon phase phase=full');
});

test('long text is cut', () => {
  const line = new EventLog().line({ type: 'notice', level: 'info', message: 'x'.repeat(5000) });
  assert(line !== undefined && line.length < 200);
});

test('a failure is marked and says why', () => {
  const line = new EventLog().line({ type: 'run_finished', status: 'failed', outputs: {}, error: { message: 'no luck' } });
  assert.equal(line, '! run finished failed error=no luck');
});

test('a verdict is told with its reason', () => {
  const verdict = { decision: 'yes', confidence: 0.9, reason: 'It\nreads well.', usage: { input_tokens: 1, output_tokens: 1 } };
  assert.equal(
    new EventLog().line({ type: 'judge_finished', effect: 'e', end: 'ok', verdict }),
    '■ judge finished yes: It reads well.',
  );
});

test('the end shows the outputs', () => {
  const outputs = { verdict: { text: ['fine'] }, score: { number: 2 } };
  const line = new EventLog().line({ type: 'run_finished', status: 'completed', outputs });
  assert.equal(line, '■ run finished completed verdict="fine" score=2');
});

test('bookkeeping has no line', () => {
  assert.equal(new EventLog().line({ type: 'statement_started', ...place }), undefined);
});

test('the end of a run is known, with its status', () => {
  assert(endsRun({ type: 'run_finished' }));
  assert(!endsRun({ type: 'session_finished' }));
  assert.equal(endStatus({ type: 'run_finished', status: 'completed' }), 'completed');
});
