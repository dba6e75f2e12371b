// One readable line for each event of a run. Knows nothing of VS Code, so that it is tested without it.

/** An event as `prose/runEvent` carries it: a type in snake_case and fields that depend on it. */
export interface RunEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Fields that place an event rather than tell something about it. */
const PLACING = new Set('type v runId ts seq afterSeq after_seq n stmt src path effect construct source digest files'.split(' '));

/** Events that say nothing a person following a run would miss: a session's text comes in pieces, and whole at its end. */
const SILENT = new Set('statement_started statement_finished session_text session_usage decode_started decode_finished'.split(' '));

/** Text longer than this is cut: the log is for reading along, the run folder holds everything. */
const LONGEST = 160;

/** Turns the events of one run into lines. It remembers what began, so that an end says what of. */
export class EventLog {
  private readonly begun = new Map<string, string>();

  /** The line for the run's next event, or nothing for an event that is only bookkeeping. */
  line(event: RunEvent): string | undefined {
    if (SILENT.has(event.type)) {
      return undefined;
    }
    const key = this.key(event);
    const subject = this.subject(event);
    if (key && subject && event.type.endsWith('_started')) {
      this.begun.set(key, subject);
    }
    const about = subject ?? (key === undefined ? undefined : this.begun.get(key));
    if (key && event.type.endsWith('_finished')) {
      this.begun.delete(key);
    }
    return [sign(event), event.type.replaceAll('_', ' '), about, details(event)].filter(Boolean).join(' ');
  }

  /** What a start and its end have in common. Frames are numbered; all else is known by its place in the run. */
  private key(event: RunEvent): string | undefined {
    const { effect, construct, frame, index, question } = event;
    // A session may ask several times, and its own start must not be forgotten for that.
    if (question !== undefined) {
      return `question ${show(question)}`;
    }
    if (frame !== undefined) {
      return `frame ${show(frame)}`;
    }
    const place = effect ?? construct;
    return place === undefined ? undefined : [show(place), index].join('#');
  }

  private subject(event: RunEvent): string | undefined {
    switch (event.type) {
      case 'run_started':
        return event['simulated'] ? `${text(event['program'])} (simulated)` : text(event['program']);
      case 'session_started': {
        const names = [text(event['agent']), text(event['label'])].filter((each) => each !== '');
        return names.join(' · ');
      }
      case 'frame_started':
        return `${text(event['kind'])} ${text(event['name'])}`;
      case 'construct_started':
        return [text(event['kind']).replaceAll('_', ' '), text(event['condition'])].filter(Boolean).join(' ');
      case 'part_started': {
        const construct = this.begun.get([show(event['construct']), undefined].join('#')) ?? '';
        return [construct, `#${show(event['index'])}`, text(event['label'])].filter(Boolean).join(' ');
      }
      case 'judge_started':
        return text(event['text']);
      case 'session_tool':
        return `${text(event['tool'])} ${text(event['detail'])}`;
      case 'permission_started':
        return `${text(event['permission'])}: ${text(event['tool'])} ${text(event['detail'])}`;
      case 'input_started':
        return text(event['name']);
      case 'bound':
        return `${isRecord(event['binding']) ? text(event['binding']['name']) : ''} = ${show(event['value'])}`;
      case 'warning':
        return `${text(event['code'])}: ${text(event['message'])}`;
      case 'notice':
        return text(event['message']);
      default:
        return undefined;
    }
  }
}

/** Whether this event is the last one of its run in this server. */
export function endsRun(event: RunEvent): boolean {
  return event.type === 'run_finished';
}

/** How a run ended: `completed`, `failed`, `cancelled` or `waiting`. */
export function endStatus(event: RunEvent): string {
  return typeof event['status'] === 'string' ? event['status'] : 'finished';
}

/** A sign that lets the eye find starts, ends and trouble. */
function sign(event: RunEvent): string {
  const how = event['end'] ?? event['status'];
  if (how === 'failed' || event.type === 'warning' || event['level'] === 'warning') {
    return '!';
  }
  if (event.type.endsWith('_started')) {
    return '▸';
  }
  return event.type.endsWith('_finished') ? '■' : '·';
}

/** Fields that each known type has already told by its subject. */
const TOLD: Readonly<Record<string, string>> = {
  run_started: 'program simulated dir resumed',
  session_started: 'agent label binding resume executionId maxAttempts',
  frame_started: 'frame kind name executionId',
  frame_finished: 'frame',
  construct_started: 'kind condition executionId',
  part_started: 'index label',
  part_finished: 'index',
  judge_started: 'text executionId',
  session_tool: 'tool detail',
  permission_started: 'question permission tool detail',
  permission_finished: 'question',
  input_started: 'name options executionId',
  bound: 'binding value kind executionId',
  warning: 'code message executionId',
  notice: 'level message',
};

/** All other fields, so that a type or field this client has never heard of is shown all the same. */
function details(event: RunEvent): string {
  const told = new Set((TOLD[event.type] ?? '').split(' '));
  return Object.entries(event)
    .filter(([key, value]) => !PLACING.has(key) && !told.has(key) && !isEmpty(value) && !(key === 'end' && value === 'ok'))
    .filter(([key, value]) => !(key === 'attempt' && value === 1))
    .map(([key, value]) => {
      if (key === 'usage' && isRecord(value)) {
        return usage(value);
      }
      if (key === 'verdict' && isRecord(value)) {
        return [plain(value['decision']), text(value['reason'])].filter(Boolean).join(': ');
      }
      if (key === 'outputs' && isRecord(value)) {
        return Object.entries(value).map(([name, each]) => `${name}=${show(each)}`).join(' ');
      }
      return key === 'end' || key === 'status' || key === 'summary' ? show(value) : `${key}=${show(value)}`;
    })
    .filter(Boolean)
    .join(' ');
}

function usage(value: Record<string, unknown>): string {
  const number = (key: string) => (typeof value[key] === 'number' ? value[key] : 0);
  const tokens = number('input_tokens') + number('output_tokens');
  const cost = number('cost_usd');
  return [tokens > 0 ? `${tokens} tokens` : '', cost > 0 ? `$${cost.toFixed(4)}` : ''].filter(Boolean).join(' ');
}

/** A value of the program or of the event, short and on one line. */
function show(value: unknown): string {
  return cut(plain(value));
}

function plain(value: unknown): string {
  if (typeof value === 'string') {
    return oneLine(value);
  }
  if (isRecord(value)) {
    const [tag] = Object.keys(value);
    const only = tag !== undefined && Object.keys(value).length === 1 ? value[tag] : undefined;
    if (tag === 'text' && Array.isArray(only)) {
      const parts = only.map((part) => String(isRecord(part) ? part['summary'] : part));
      return JSON.stringify(cut(oneLine(parts.join(''))));
    }
    if (tag === 'list' && Array.isArray(only)) {
      return `[${only.map(plain).join(', ')}]`;
    }
    if (tag === 'record' && isRecord(only)) {
      return `{${Object.entries(only).map(([key, each]) => `${key}: ${plain(each)}`).join(', ')}}`;
    }
    if ((tag === 'number' || tag === 'bool') && only !== undefined) {
      return String(only);
    }
    const error = tag === 'error' && isRecord(only) ? only : value;
    if (typeof error['message'] === 'string') {
      return oneLine(error['message']);
    }
  }
  return Array.isArray(value) ? `[${value.map(plain).join(', ')}]` : (JSON.stringify(value) ?? String(value));
}

function text(value: unknown): string {
  return typeof value === 'string' ? cut(oneLine(value)) : '';
}

function isEmpty(value: unknown): boolean {
  return (
    value === null ||
    value === undefined ||
    value === '' ||
    (Array.isArray(value) && value.length === 0) ||
    (isRecord(value) && Object.keys(value).length === 0)
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
