/** Log messages of the control service. */
import { CAUSE, DEFECT, type LogEvents } from './event.ts'

const tasks = 'Number of its tasks.'
const server = 'Name of the MCP server.'
const runtime = 'Name of the runtime service in the pool.'
const handle_id = 'Id of the task in the runtime service.'
const error = 'The error.'

const CALLBACK = {
  event: 'What the graph is called back for.',
  delivery_id: 'X-Taskmill-Delivery, the same for each try.',
  url: 'Where it goes, without its query.',
  tries: 'Number of tries so far.',
} as const

export const controlLogEvents = {
  'graph accepted': { level: 'info', when: 'A graph is on disk.', fields: { tasks } },
  'graph ended': {
    level: 'info',
    when: 'The last task of a graph has ended.',
    fields: { tasks, duration_ms: 'Milliseconds since it was accepted.' },
  },
  'graph deleted': { level: 'info', when: 'A caller deleted a graph.', fields: { tasks } },
  'graph retired': { level: 'debug', when: 'Retention removes a graph.', fields: { tasks } },
  'callback delivered': { level: 'info', when: 'The receiver of a callback accepted it.', fields: CALLBACK },
  'callback failed': {
    level: 'warn',
    when: 'A try to deliver a callback failed. Others follow.',
    fields: { ...CALLBACK, ...CAUSE, retry_in_ms: 'Milliseconds until the next try.' },
  },
  'callback given up': {
    level: 'error',
    when: 'A callback was not accepted within a day, or too many wait. It is not tried again.',
    fields: { ...CALLBACK, ...CAUSE },
  },
  'cannot note the state of a callback': {
    level: 'error',
    when: 'The disk does not take callbacks.jsonl. The callback is delivered, after a restart once more.',
    fields: CAUSE,
  },
  'callbacks of an earlier run are lost': {
    level: 'error',
    when: 'A defect of the service. Graphs that ended before a kill are not called back for.',
    fields: DEFECT,
  },
  'traces cannot be delivered': {
    level: 'warn',
    when: 'The collector of --otlp-endpoint does not answer, or not now. Its spans wait, up to 10,000. Once per outage.',
    fields: { url: 'Where traces go, without its query.', ...CAUSE },
  },
  'traces are delivered again': {
    level: 'info',
    when: 'The collector takes traces again.',
    fields: { url: 'Where traces go, without its query.', dropped: 'Spans dropped since the start of the service.' },
  },
  'traces were refused': {
    level: 'warn',
    when: 'The collector refused a batch of spans, which is dropped. Check the address and OTEL_EXPORTER_OTLP_HEADERS.',
    fields: { url: 'Where traces go, without its query.', ...CAUSE, spans: 'Spans of the batch.' },
  },
  'attempt started': { level: 'debug', when: 'An attempt of a task starts.', fields: {} },
  'the list of a task cannot be written; it will be tried again': {
    level: 'warn',
    when: 'The journal does not take the list for which a task has children (for_each). No child starts before.',
    fields: CAUSE,
  },
  'attempt failed, will be retried': {
    level: 'info',
    when: 'An attempt failed and others are left.',
    fields: { error, attempts_left: 'Number of attempts that are left.' },
  },
  'task failed': {
    level: 'warn',
    when: 'The only attempt of a task failed.',
    fields: { error, code: 'What kind of failure.' },
  },
  'task failed after all retries': {
    level: 'warn',
    when: 'The last attempt of a task failed.',
    fields: { error, code: 'What kind of failure.' },
  },
  'executor broke': {
    level: 'error',
    when: 'An executor threw what it should not. This is a defect of the executor; its task fails with internal.',
    fields: {
      ...DEFECT,
      error,
      type: 'Type of the executor.',
      in: 'Method of the executor.',
      hook: 'Hook of the executor.',
    },
  },
  'executor did not stop when told to: its attempt is given up': {
    level: 'error',
    when: 'An executor ignored a cancel or a timeout. What it started may still run.',
    fields: {},
  },
  'the scheduler has stopped because of a defect: no task is started any more': {
    level: 'error',
    when: 'A defect of the service. It ends; its next start continues.',
    fields: DEFECT,
  },
  'an error was not caught': { level: 'error', when: 'A defect of the service. It ends.', fields: DEFECT },
  'the service ends because of a defect; start it again': {
    level: 'error',
    when: 'The last line before the service ends with exit code 1.',
    fields: { cause: 'The defect.', journal: 'Whether the journal is on disk.' },
  },
  'a tool broke': {
    level: 'error',
    when: 'A tool of POST /mcp threw what it should not. This is a defect of the service.',
    fields: { ...DEFECT, tool: 'Name of the tool.' },
  },
  'an MCP request was refused': { level: 'debug', when: 'POST /mcp got an invalid message.', fields: { error } },
  'cannot write the journal: nothing new is taken in or started until it can be': {
    level: 'error',
    when: 'A write or sync failed. Submissions get 503 until one succeeds: make room on the disk.',
    fields: CAUSE,
  },
  'the journal can be written again': { level: 'info', when: 'After the line before.', fields: {} },
  'the journal cannot be relied on until the state file is written anew': {
    level: 'error',
    when: 'A sync of the journal failed, so the kernel may have dropped data. The service writes all of its state.',
    fields: CAUSE,
  },
  'cannot write the state file; it will be tried again': {
    level: 'error',
    when: 'The journal still has everything. It grows until the state file is written.',
    fields: CAUSE,
  },
  'cannot write the state file': {
    level: 'error',
    when: 'At the end of the service. The journal still has everything.',
    fields: CAUSE,
  },
  'cannot write a large result to its file; it stays in memory': {
    level: 'error',
    when: 'A result of more than 64 KiB could not be written to results/.',
    fields: CAUSE,
  },
  'cannot write a large input to its file; later attempts resolve it again': {
    level: 'error',
    when: 'An input of more than 64 KiB with values of other tasks could not be written to results/.',
    fields: CAUSE,
  },
  'a large result is lost': {
    level: 'warn',
    when: 'The file of a result, or of a large input, is missing or damaged.',
    fields: { ...CAUSE, file: 'Name of the file.' },
  },
  'cannot remove a result': {
    level: 'error',
    when: 'The file of a result that nobody needs stays.',
    fields: { ...CAUSE, file: 'Name of the file.' },
  },
  'the database is away': {
    level: 'error',
    when: 'The database does not answer. Requests get 503, and no attempt starts, until it does.',
    fields: CAUSE,
  },
  'cannot keep the last changes in the database': {
    level: 'error',
    when: 'At the end of the service. The next replica runs again what ended after the last turn.',
    fields: CAUSE,
  },
  'the database is back': { level: 'info', when: 'The database answers again.', fields: {} },
  'the database is asked at another address': {
    level: 'debug',
    when: 'A server of the database is away or a standby.',
    fields: { ...CAUSE, server: 'The address that is asked from now on, without its password.' },
  },
  'another replica is active': {
    level: 'info',
    when: 'This replica waits as a standby until the lease of the other one ends.',
    fields: { replica: 'Number of the other replica.', url: 'Its address.' },
  },
  'this replica is active': {
    level: 'info',
    when: 'The replica has the lease. It runs all graphs.',
    fields: { replica: 'Its number.' },
  },
  'past events cannot be kept: streams can be resumed from now on only': {
    level: 'warn',
    when: 'The file of past events cannot be written or read. Streams that resume get a reset with the present state.',
    fields: CAUSE,
  },
  'past events are kept again': {
    level: 'info',
    when: 'The file of past events can be written again. It begins with this moment.',
    fields: {},
  },
  'cannot remove old events': {
    level: 'warn',
    when: 'A file of old events stays.',
    fields: CAUSE,
  },
  'cannot reserve numbers of events; it will be tried again': {
    level: 'warn',
    when: 'Events wait until the disk takes their numbers.',
    fields: CAUSE,
  },
  'the file of reserved event numbers is not valid and is ignored': {
    level: 'warn',
    when: 'At the start. The highest number on disk counts instead.',
    fields: { path: 'The file.' },
  },
  'ending what an earlier run of the service left running': {
    level: 'warn',
    when: 'At the start after a crash: commands of the earlier run are ended.',
    fields: { groups: 'Their process groups.' },
  },
  'SERVICE_SHELL_POLICY is neither open nor allowlist: it means allowlist': {
    level: 'warn',
    when: 'At the start.',
    fields: {},
  },
  'connected to an MCP server': {
    level: 'info',
    when: 'A server of --mcp-config is ready.',
    fields: {
      server,
      transport: 'stdio or http.',
      era: 'Age of the protocol that it speaks.',
      took_ms: 'Milliseconds until then.',
    },
  },
  'an MCP server is gone': {
    level: 'info',
    when: 'A connection ended. The next call connects again.',
    fields: { server },
  },
  'an MCP server or the way to it broke a rule': {
    level: 'debug',
    when: 'A message or an answer was invalid.',
    fields: { server, error },
  },
  'an MCP server wrote a line that is no message': {
    level: 'debug',
    when: 'A server printed other text to its standard output.',
    fields: { server, line: 'The beginning of the line.' },
  },
  'cannot put the MCP servers that run on record': {
    level: 'warn',
    when: 'After a crash the next start may not find these servers to end them.',
    fields: { ...CAUSE, path: 'The file.' },
  },
  'a runtime service was added': {
    level: 'info',
    when: 'A caller added it, or it registered itself.',
    fields: { runtime, url: 'Its address.', labels: 'Its labels.' },
  },
  'a runtime service gets no new tasks': { level: 'info', when: 'A caller drains it.', fields: { runtime } },
  'a runtime service gets tasks again': { level: 'info', when: 'A caller ended its drain.', fields: { runtime } },
  'a runtime service was removed': {
    level: 'warn',
    when: 'A caller removed it.',
    fields: { runtime, attempts: 'Number of attempts that failed with it.' },
  },
  'a runtime service of --runtime-url was removed: it gets no tasks': {
    level: 'warn',
    when: 'At the start. A caller removed it before; POST /runtimes adds it again.',
    fields: { runtime, url: 'Its address.' },
  },
  'the runtime service is away, waiting for it': {
    level: 'warn',
    when: 'A running task cannot be followed. It is followed again once the service is back.',
    fields: { ...CAUSE, handle_id, runtime },
  },
  'the runtime service is back': { level: 'info', when: 'After the line before.', fields: { handle_id, runtime } },
  'calls to the runtime service are not repeated': {
    level: 'error',
    when: 'A defect of the service: kills and removals wait for its next start.',
    fields: DEFECT,
  },
  'a call to the runtime service broke': {
    level: 'error',
    when: 'A defect of the service: one kill or removal is dropped.',
    fields: { ...DEFECT, handle_id },
  },
  'cannot note which tasks the runtime service is to remove': {
    level: 'error',
    when: 'runtime-drops.jsonl cannot be written. After a crash, its retention removes these tasks.',
    fields: CAUSE,
  },
  'tasks are left to the retention of the runtime service': {
    level: 'warn',
    when: 'Removals were dropped: too many, or too old.',
    fields: { ...CAUSE, count: 'Number of tasks.' },
  },
  'the runtime service does not remove tasks': {
    level: 'warn',
    when: 'A removal was refused. It is repeated.',
    fields: { ...CAUSE, handle_id },
  },
  'a runtime service is there already: none is started': {
    level: 'info',
    when: 'With --with-runtime: a service answered at --runtime-url.',
    fields: { url: 'Its address.' },
  },
  'started a runtime service': {
    level: 'info',
    when: 'With --with-runtime.',
    fields: {
      path: 'Its executable.',
      runtime_pid: 'Its process.',
      url: 'Its address.',
      token_file: 'Its token, where control made one.',
    },
  },
  'the runtime service has ended, it is started again': {
    level: 'error',
    when: 'With --with-runtime.',
    fields: { how: 'How it ended.', pause_ms: 'Milliseconds until then.' },
  },
  'cannot start the runtime service again': {
    level: 'error',
    when: 'With --with-runtime. It is repeated.',
    fields: CAUSE,
  },
  'ending the runtime service of an earlier run': {
    level: 'info',
    when: 'With --with-runtime, at the start after a crash.',
    fields: { runtime_pid: 'Its process.' },
  },
  'a task in the runtime service is given up, it may still run': {
    level: 'error',
    when: 'A kill was refused or repeated for too long.',
    fields: { ...CAUSE, handle_id },
  },
  'ended in the runtime service what nobody waits for': {
    level: 'info',
    when: 'A kill that had waited for the runtime service was carried out.',
    fields: { handle_id },
  },
  'the runtime service does not end what nobody waits for': {
    level: 'error',
    when: 'A kill was refused. It is repeated.',
    fields: { ...CAUSE, handle_id },
  },
  'cannot note which tasks are to be ended in the runtime service': {
    level: 'error',
    when: 'orphans.json cannot be written. After a crash these tasks run to their own end.',
    fields: CAUSE,
  },
} as const satisfies LogEvents
