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
    when: 'An attempt failed and others are left. After the tenth failure of a task only each hundredth is logged.',
    fields: {
      error,
      attempts_left: 'Number of attempts that are left.',
      folded: 'Number of failures since the last line that have none.',
    },
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
  'an event stream broke': {
    level: 'error',
    when: 'The database refused to tell past events, or there is a defect. The stream ends; its client comes again.',
    fields: DEFECT,
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
  'the journal cannot be relied on before the next snapshot': {
    level: 'error',
    when: 'A sync of the journal failed, so the kernel may have dropped data. The service writes all changes since the last snapshot anew.',
    fields: CAUSE,
  },
  'cannot write a snapshot; it will be tried again': {
    level: 'error',
    when: 'The journal still has everything. It grows until a snapshot is written.',
    fields: CAUSE,
  },
  'cannot write the last snapshot': {
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
  'other users have rights to the file with the password of the database: chmod 600 it': {
    level: 'warn',
    when: 'At the start, if an address in --database-file has a password.',
    fields: { database_file: 'Its path.' },
  },
  'the database is away': {
    level: 'error',
    when: 'The database does not answer, or keeps nothing: `cause` is what it says. Each kind of cause is logged once. Requests get 503, and no attempt starts, until it keeps something again.',
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
  'a replica of an earlier version is active': {
    level: 'info',
    when: 'An upgrade: this replica waits until the other one has ended, which has all graphs.',
    fields: { replica: 'Number of the other replica.', url: 'Its address.' },
  },
  'the killed replica of this data directory was declared dead': {
    level: 'info',
    when: 'A start with the data directory of a replica that had a lease: its process has ended, so nobody waits for its lease.',
    fields: { replica: 'Number of the earlier replica.' },
  },
  'the tables of the database are made or migrated': {
    level: 'info',
    when: 'A start on a database without tables, or with those of an earlier version. Large tables take some time.',
    fields: { version: 'The version of the tables; 0 for none.', wanted: 'The version that this program needs.' },
  },
  'this replica is not registered yet': {
    level: 'warn',
    when: 'Somebody has locked the row of a killed replica, or the database is away. The start tries again until --database-timeout.',
    fields: CAUSE,
  },
  'this replica is registered': {
    level: 'info',
    when: 'The replica has its lease, and the graphs of replicas that were gone.',
    fields: { replica: 'Its number.' },
  },
  'other replicas cannot reach this one: set --advertise to an address that leads to it': {
    level: 'warn',
    when: 'The address that the replica has registered was asked, and the replica did not get the request. The check is repeated.',
    fields: { ...CAUSE, url: 'The registered address.' },
  },
  'other replicas can reach this one now': {
    level: 'info',
    when: 'The registered address leads to the replica after all, perhaps through a proxy that routes to it since just now.',
    fields: { url: 'The registered address.' },
  },
  'a replica was declared dead': {
    level: 'warn',
    when: 'It did not renew its lease. The others adopt its graphs. If it still runs, it ends with exit code 75.',
    fields: { replica: 'Its number.' },
  },
  'graphs adopted': {
    level: 'info',
    when: 'The replica runs graphs of one that is gone from now on.',
    fields: { replica: 'Number of the one that is gone; 0 for those of an earlier version.', graphs: 'How many.' },
  },
  'a graph is unreadable and was set aside': {
    level: 'error',
    when: 'Its rows are damaged, or this version does not know them. Nothing of it runs, its ids stay taken, and GET /graphs?state=unreadable lists it. Each replica tries again when it starts; DELETE /graphs/{id} removes it.',
    fields: { ...CAUSE, graph_id: 'Its id.', graph_ordinal: 'Its number in the database.' },
  },
  'a row of the database is unreadable and is left out': {
    level: 'error',
    when: 'A callback is not delivered, an abandoned attempt is not ended, or a runtime service has no labels, because its row is damaged. Repair the row, or delete it.',
    fields: { table: 'Its table: callback, orphan or runtime.', row: 'Its key.' },
  },
  'graphs of other replicas are not adopted': {
    level: 'error',
    when: 'The database refuses to tell of them for good, or there is a defect. The replica tries again, and logs the next cause.',
    fields: DEFECT,
  },
  'cannot look for graphs to adopt': {
    level: 'debug',
    when: 'The database does not answer. The replica tries again.',
    fields: CAUSE,
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
  'a runtime service has another address': {
    level: 'warn',
    when: 'It registered itself from there, or a caller moved it. If the line comes again and again, two have one name.',
    fields: { runtime, url: 'Its address.', earlier_url: 'Its address before.' },
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
  'a runtime service was added under a name of --runtime-url, which counts here': {
    level: 'warn',
    when: 'The address of --runtime-url is another one than that of the runtime service that was added. Give one of them another name.',
    fields: { runtime, url: 'The address of --runtime-url.', added_url: 'The address that was added.' },
  },
  'attempts that are to be ended were taken over': {
    level: 'info',
    when: 'Another replica is gone. This one ends what it was to end in the runtime services.',
    fields: { attempts: 'Number of attempts.' },
  },
  'a file of the data directory was moved into the database': {
    level: 'info',
    when: 'At the start with --database. Runtime services that callers changed (runtimes.json), or attempts that are still to be ended there (orphans.json), are rows now.',
    fields: { path: 'Where the file is now. Nothing reads it any more.' },
  },
  'changes of the runtime services are not read': {
    level: 'error',
    when: 'The database refuses to tell of them for good, or there is a defect. The replica tries again, and logs the next cause.',
    fields: DEFECT,
  },
  'cannot look for changes of the runtime services': {
    level: 'debug',
    when: 'The database did not answer. The next look comes at the latest after half a second.',
    fields: CAUSE,
  },
  'files were brought to another runtime service': {
    level: 'info',
    when: 'Inputs of a task are staged where the task runs.',
    fields: {
      from: 'The runtime service that has the task whose files they are.',
      runtime,
      sha256: 'Hash of the bundle.',
      bytes: 'Its size.',
      duration_ms: 'How long it took.',
    },
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
  'ended an abandoned attempt in the runtime service': {
    level: 'info',
    when: 'A kill that had waited for the runtime service was carried out.',
    fields: { handle_id },
  },
  'the runtime service refuses to end an abandoned attempt': {
    level: 'error',
    when: 'A kill was refused. It is repeated; the line comes again only with another cause.',
    fields: { ...CAUSE, handle_id },
  },
  'cannot note which tasks are to be ended in the runtime service': {
    level: 'error',
    when: 'orphans.json cannot be written. After a crash these tasks run to their own end.',
    fields: CAUSE,
  },
} as const satisfies LogEvents
