/**
 * Values for generated requests. The services under test really run what they accept, so names of programs, scripts, paths
 * and addresses come from these lists and from nowhere else. Nothing in the lists does anything outside the directories of
 * the test or the loopback interface.
 */
import fc from 'fast-check'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Markers that the run replaces by ids that a service has given: `@graph0` is the newest graph. */
export const MARKER = /@(graph|task|handle|cursor)([0-3])/g

const KNOWN = ['graph', 'task', 'handle'].flatMap((kind) => [0, 1, 2, 3].map((n) => `@${kind}${n}`))

/** Values where another was expected. No text among them is the name of a program, a command or an outside address. */
export const odd: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 0, -1, 1, 1.5, 1e300, -1e-9, 2 ** 53, 2 ** 31, 2 ** 63, -(2 ** 63), -0),
  fc.constantFrom<Json>(
    '',
    ' ',
    '\0',
    '.',
    '..',
    '/no/such',
    '../..',
    'no-such-thing',
    '@graph0',
    '@task0',
    '@handle0',
  ),
  fc.constantFrom<Json>('\ud800', '😀', '\u202e', '\x1b[2J', 'a\r\nb', 'İ', 'e\u0301', '__proto__', 'constructor'),
  fc.constantFrom<Json>('x'.repeat(300), 'ä'.repeat(5_000), '-1', 'NaN', '1e999', 'null', '{}', '$from', '@cursor0'),
  fc.constantFrom<Json>([], [[]], [null], [''], ['\0'], {}, { '': '' }, { '=': 'x' }, { a: null }, { a: {} }),
  fc.constantFrom<Json>({ constructor: 'x' }, { toString: 'x', length: '1' }, { toJSON: 1 }),
  fc.constantFrom<Json>({ $from: 't0' }, { $from: 't9' }, { $param: 'p' }, { $literal: { $from: 1 } }, { $item: '' }),
  fc.constantFrom<Json>({ $from: 't0', path: '/result/a~2', as: 'x' }, { $index: true }, { $param: '__proto__' }),
)

/** Any small JSON value. */
export const anyJson: fc.Arbitrary<Json> = fc.oneof(
  { weight: 2, arbitrary: odd },
  { weight: 1, arbitrary: fc.array(odd, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), odd, { maxKeys: 3 }) },
)

const IDS = ['t0', 't1', 't2', 't3', 'a.b', 'A-1_b', ...KNOWN]

/** Texts without a meaning of their own. */
export const text: fc.Arbitrary<string> = fc.constantFrom('a', 'b', 'hello', 'ä😀', 'two words', ...IDS)

/** Texts of fields with such a name. */
const TEXTS_BY_NAME: Readonly<Record<string, readonly string[]>> = {
  id: IDS,
  task_id: IDS,
  graph_id: KNOWN,
  action_id: ['act-1', 'act-2', '@task0'],
  depends_on: ['t0', 't1', 't2'],
  type: ['noop', 'sleep', 'shell', 'file', 'os', 'approval', 'runtime', 'mcp', 'bash'],
  kind: ['os.noop', 'os.sleep', 'os.shell', 'os.file', 'runtime.script', 'mcp.call', 'task_graph.submit', 'bash'],
  tool_name: ['noop', 'sleep', 'shell', 'file', 'builtin/echo', 'no/such', 'nope'],
  program: ['/bin/true', '/bin/false', 'true', '/bin/echo', '/no/such', './nothing'],
  script: ['exit 0', 'exit 3', 'echo hello', 'echo oops >&2; exit 1', 'sleep 0.01', 'printf "a\\0b"', 'echo x > out'],
  interpreter: ['/bin/sh', '/bin/false', '/no/such'],
  command: ['echo', 'cat', 'ls', 'date', 'no-such-command', 'echo hello'],
  args: ['a', 'hello', '', 'no-such-file', '--'],
  path: ['a.txt', 'sub/b.txt', '../outside', '/no/such', '.', '', '/result', '/result/stdout', '/0'],
  file: ['out', 'stdout.log', '../request.json', '/no/such', '.', 'a/../b'],
  outputs: ['out', '**', '*.txt', '../x', '/no/such'],
  rootfs: ['/', '/no/such', 'relative'],
  workspace_subdir: ['a', 'a/b', '..', '/no/such'],
  url: ['http://127.0.0.1:1/', 'http://[::1]:1/x', 'ftp://127.0.0.1/', 'http://localhost:1', 'http://', 'x'],
  tenant: ['t', 'limited', 'x'.repeat(200)],
  owner: ['ada', 'bob'],
  cursor: ['@cursor0', '0', '99999', 'AAAA', ''],
  label: ['team=web', 'team', '=', 'a=b=c'],
  labels: ['web', 'ci'],
  since: ['1h', '2026-01-01T00:00:00Z', '5m', 'yesterday', '2026-01-01T00:00:00.000Z'],
  until: ['1h', '2026-01-01T00:00:00Z', 'ended', 'any', 'all'],
  after: ['0', '1', '99999999', '@cursor0', '-1'],
  name: ['nightly', 'app.js', 'x'.repeat(200)],
  equals: ['yes', 'hello'],
  'X-Service-Owner': ['ada', 'bob', ''],
  Range: ['bytes=0-', 'bytes=0-1', 'bytes=5-2', 'bytes=-1', 'bytes=0-1,3-4', 'x'],
  Accept: ['text/event-stream', 'application/json', 'text/plain', '*/*', ''],
  'Last-Event-ID': ['0', '1', '99999999', 'x', ''],
  'Idempotency-Key': [...Array.from({ length: 200 }, (_, n) => `key-${n}`), 'x'.repeat(255), 'x'.repeat(256)],
}

/** Texts for a field with this name, or for the elements of a list with it. */
export const textNamed = (name: string): fc.Arbitrary<string> => {
  const known = Object.hasOwn(TEXTS_BY_NAME, name) ? TEXTS_BY_NAME[name] : undefined
  return known === undefined ? text : fc.constantFrom(...known)
}

/** Fields whose numbers are times in milliseconds, or make a request last: small ones only. */
const SHORT = /(?:_ms|^timeout|^tail|^limit|^max_parallel|^retry)$/

export const numberNamed = (name: string, minimum: number, maximum: number): fc.Arbitrary<number> => {
  const values = SHORT.test(name) ? [0, 1, 2, 20, 50] : [0, 1, 2, 20, 1_000, 65_536, 1 << 28, minimum, maximum]
  const fitting = values.filter((value) => value >= minimum && value <= maximum)
  return fitting.length === 0 ? fc.constant(minimum) : fc.constantFrom(...fitting)
}

/** What a task does: `type`, `tool_name` and `params`. All end by themselves, but for approvals. */
export const work: fc.Arbitrary<Record<string, Json>> = fc.constantFrom<Record<string, Json>>(
  { type: 'noop' },
  { type: 'noop', params: { message: 'hello' } },
  { type: 'noop', params: { message: { $from: 't0', path: '/result', default: 'none', as: 'text' } } },
  { type: 'noop', params: { message: { $param: 'p' } } },
  { type: 'sleep', params: { duration_ms: 5 } },
  { type: 'os', tool_name: 'sleep', input: { duration_ms: 0 } },
  { type: 'shell', params: { command: 'echo', args: ['hello'] } },
  { type: 'shell', params: { command: 'echo', args: [{ $item: '', as: 'text' }] } },
  { type: 'shell', params: { command: 'cat', args: ['no-such-file'] }, retry: 1, backoff: { initial_ms: 1 } },
  { type: 'shell', params: { command: 'cat', stdin: 'a\nb\n', env: { A: 'b' } } },
  { type: 'file', params: { action: 'write', path: 'a.txt', content: 'hello' } },
  { type: 'file', params: { action: 'read', path: 'a.txt' } },
  { type: 'file', params: { action: 'list', path: '../..' } },
  { type: 'http', params: { url: 'http://127.0.0.1:1/' }, timeout: 1_000 },
  { type: 'tcp', params: { address: '127.0.0.1:1', timeout_ms: 50 } },
  { type: 'mcp', tool_name: 'builtin/echo', input: { message: 'hello' } },
  { type: 'mcp', tool_name: 'no/such', input: {} },
  { type: 'runtime.script', params: { script: 'echo hello; echo x > out' } },
  { type: 'runtime', tool_name: 'script', params: { script: 'exit 3' }, retry: 1 },
  { type: 'runtime.command', params: { program: '/bin/true', limits: { wall_time_ms: 5_000 } } },
  { type: 'cli-skills', params: { command: 'echo', args: ['a'] } },
  { type: 'approval', params: { message: 'Go?' }, timeout: 60_000 },
  { type: 'approval', params: { message: 'Go?' } },
)

/** Inputs of actions. */
export const action: fc.Arbitrary<Record<string, Json>> = fc.constantFrom<Record<string, Json>>(
  { kind: 'os.noop', input: {} },
  { kind: 'shell', input: { command: 'echo', args: ['hi'] } },
  { kind: 'os.file', input: { action: 'stat', path: '.' } },
  { kind: 'os.sleep', input: { duration_ms: 1 } },
  { kind: 'runtime.script', input: { script: 'exit 0' } },
  { kind: 'mcp.call', tool_name: 'builtin/echo', input: { text: 'hello' } },
  { kind: 'task_graph.submit', input: { tasks: [{ id: 'only', type: 'noop' }] } },
  { kind: 'no.such', input: { a: 1 } },
)
