/** Log messages of the control service. */
import { CAUSE, type LogEvents } from './event.ts'

const tasks = 'Number of its tasks.'
const server = 'Name of the MCP server.'
const schedule = 'Name of the schedule.'
const runtime = 'Name of the runtime service in the pool.'
const handle_id = 'Id of the task in the runtime service.'
const error = 'The error.'
const byToken = 'Name of its token. Absent for the token of the service.'
const why = 'The reason, if one was given.'

const CALLBACK = {
  event: 'Its event.',
  delivery_id: 'X-Taskmill-Delivery, the same for each try.',
  url: 'Its address.',
  tries: 'Number of tries so far.',
} as const

export const controlLogEvents = {
  'graph accepted': {
    level: 'info',
    when: 'A graph is on disk.',
    fields: { tasks, by: 'Name of the token that submitted it. Absent for the token of the service.' },
  },
  'the audit log cannot be written': {
    level: 'error',
    when: 'The disk refuses a line, or the database does not take records. Requests are carried out all the same.',
    fields: CAUSE,
  },
  'the audit log can be written again': {
    level: 'info',
    when: 'After a failure.',
    fields: { lost: 'Lines or records that are missing.' },
  },
  'graph ended': {
    level: 'info',
    when: 'The last task of a graph has ended.',
    fields: { tasks, duration_ms: 'Milliseconds since its acceptance.' },
  },
  'a graph was paused': {
    level: 'info',
    when: 'A caller pauses it: nothing of it starts.',
    fields: { by: byToken, why },
  },
  'a graph was resumed': { level: 'info', when: 'A caller resumes it.', fields: { by: byToken } },
  'no task starts: paused': {
    level: 'warn',
    when: 'A caller pauses the service, or a type of tasks.',
    fields: { type: 'The type. Absent for the service.', by: byToken, why },
  },
  'tasks start again: resumed': {
    level: 'info',
    when: 'A caller ends that pause.',
    fields: { type: 'The type. Absent for the service.', by: byToken },
  },
  'tasks retried': {
    level: 'info',
    when: 'A caller retried tasks of a graph in place.',
    fields: {
      tasks: 'Tasks that are pending again: those that are retried, and all that depend on them.',
      by: 'Name of the token that retried them. Absent for the token of the service.',
    },
  },
  'graph changed': {
    level: 'info',
    when: 'A caller, or the result of a dynamic task, changed which tasks a live graph has.',
    fields: {
      revision: 'How often the graph was changed in all.',
      added: 'New tasks, with those that have another definition.',
      removed: 'Tasks that are gone, with those that have another definition.',
      by: 'Name of the token that changed it. Absent for the token of the service.',
    },
  },
  'graph cancelled: another takes its place': {
    level: 'info',
    when: 'A later graph of its group asks for that (`on_full: cancel_oldest`). Repeated after a restart if it has not ended.',
    fields: { by: 'Id of the graph that takes its place.' },
  },
  'graph deleted': { level: 'info', when: 'A caller deleted a graph.', fields: { tasks } },
  'graph retired': { level: 'debug', when: 'Retention removes a graph.', fields: { tasks } },
  'callback delivered': { level: 'info', when: 'The receiver of a callback accepted it.', fields: CALLBACK },
  'callback failed': {
    level: 'warn',
    when: 'A try to deliver a callback failed. Others follow.',
    fields: { ...CALLBACK, ...CAUSE, retry_in_ms: 'Milliseconds until then.' },
  },
  'callback given up': {
    level: 'error',
    when: 'It was not accepted within a day, or too many wait.',
    fields: { ...CALLBACK, ...CAUSE },
  },
  'callbacks of an earlier run are lost': {
    level: 'error',
    when: 'A defect. Graphs that ended before a kill cause no callbacks.',
    fields: CAUSE,
  },
  'schedule submitted a graph': {
    level: 'info',
    when: 'A due time has come, or a caller asked for it.',
    fields: { schedule, due: 'The due time. Absent if a caller asked for it.' },
  },
  'schedule missed due times': {
    level: 'warn',
    when: 'They passed while the service was down or the clock jumped, and catch_up does not ask for their graphs.',
    fields: { schedule, missed: 'How many, at most 500 for each look.' },
  },
  'schedule skipped a due time': {
    level: 'warn',
    when: 'A graph of the schedule still runs.',
    fields: { schedule, due: 'The due time.' },
  },
  'schedule could not submit its graph': {
    level: 'error',
    when: 'The service refused it. The due time counts as missed.',
    fields: { schedule, due: 'The due time.', ...CAUSE },
  },
  'a schedule is from its file': {
    level: 'info',
    when: 'A file in --schedules-dir was read for the first time, or has changed.',
    fields: { schedule, file: 'Name of the file.' },
  },
  'the file of a schedule is gone': {
    level: 'info',
    when: 'The schedule is deleted. Its graphs stay.',
    fields: { schedule, file: 'Name of the file.' },
  },
  'a file of a schedule cannot be used': {
    level: 'error',
    when: 'Once per fault. What the file said before stays in force.',
    fields: { file: 'Name of the file.', ...CAUSE },
  },
  'the directory of schedules cannot be read': {
    level: 'error',
    when: 'Once per fault. All schedules stay as they are.',
    fields: CAUSE,
  },
  'traces cannot be delivered': {
    level: 'warn',
    when: 'The collector does not answer. Its spans wait. Once per outage.',
    fields: { url: 'Its address.', ...CAUSE },
  },
  'traces are delivered again': {
    level: 'info',
    when: 'The collector takes traces again.',
    fields: { url: 'Its address.', dropped: 'Dropped spans.' },
  },
  'traces were refused': {
    level: 'warn',
    when: 'A batch of spans is dropped. Check the address and OTEL_EXPORTER_OTLP_HEADERS.',
    fields: { url: 'Its address.', ...CAUSE, spans: 'Spans of the batch.' },
  },
  'attempt started': { level: 'debug', when: 'An attempt of a task starts.', fields: {} },
  'the list of a task cannot be written; it will be tried again': {
    level: 'warn',
    when: 'The journal does not take the list of a task with for_each. No child starts before.',
    fields: CAUSE,
  },
  'attempt failed, will be retried': {
    level: 'info',
    when: 'An attempt failed and others are left. After the tenth failure of a task only each hundredth is logged.',
    fields: {
      error,
      attempts_left: 'How many are left.',
      folded: 'Failures without a line since the last one.',
    },
  },
  'task failed': {
    level: 'warn',
    when: 'The task had one attempt.',
    fields: { error, code: 'What kind of failure.' },
  },
  'task failed after all retries': {
    level: 'warn',
    when: 'The last attempt failed.',
    fields: { error, code: 'What kind of failure.' },
  },
  'executor broke': {
    level: 'error',
    when: 'A defect of an executor. Its task fails with internal.',
    fields: {
      ...CAUSE,
      error,
      type: 'Type of the executor.',
      in: 'Method of the executor.',
      hook: 'Hook of the executor.',
    },
  },
  'executor did not stop when told to: its attempt is given up': {
    level: 'error',
    when: 'What the attempt started may still run.',
    fields: {},
  },
  'the scheduler has stopped because of a defect: no task is started any more': {
    level: 'error',
    when: 'The service ends; its next start continues.',
    fields: CAUSE,
  },
  'an error was not caught': { level: 'error', when: 'A defect. The service ends.', fields: CAUSE },
  'the service ends because of a defect; start it again': {
    level: 'error',
    when: 'The last line before exit code 1.',
    fields: { ...CAUSE, journal: 'Whether the journal is on disk.' },
  },
  'an event stream broke': {
    level: 'error',
    when: 'A fault of the database, or a defect. Clients of the stream resume it.',
    fields: CAUSE,
  },
  'a tool broke': {
    level: 'error',
    when: 'A defect of a tool of POST /mcp.',
    fields: { ...CAUSE, tool: 'Name of the tool.' },
  },
  'an MCP request was refused': { level: 'debug', when: 'POST /mcp got an invalid message.', fields: { error } },
  'cannot write the journal: nothing new is taken in or started until it can be': {
    level: 'error',
    when: 'Submissions get 503: make room on the disk.',
    fields: CAUSE,
  },
  'the journal can be written again': { level: 'info', when: 'After the line before.', fields: {} },
  'the journal cannot be relied on before the next snapshot': {
    level: 'error',
    when: 'A sync failed. The service writes all changes since the last snapshot anew.',
    fields: CAUSE,
  },
  'cannot write a snapshot; it will be tried again': {
    level: 'error',
    when: 'Nothing is lost; the journal grows.',
    fields: CAUSE,
  },
  'cannot write the last snapshot': {
    level: 'error',
    when: 'At the end of the service. Nothing is lost.',
    fields: CAUSE,
  },
  'cannot write a large result to its file; it stays in memory': {
    level: 'error',
    when: 'A result over 64 KiB.',
    fields: CAUSE,
  },
  'cannot write a large input to its file; later attempts resolve it again': {
    level: 'error',
    when: 'An input over 64 KiB with values of other tasks.',
    fields: CAUSE,
  },
  'a large result is lost': {
    level: 'warn',
    when: 'The file of a result or an input is missing or damaged.',
    fields: { ...CAUSE, file: 'Name of the file.' },
  },
  'cannot remove a result': {
    level: 'error',
    when: 'A file that nobody needs stays.',
    fields: { ...CAUSE, file: 'Name of the file.' },
  },
  'other users have rights to the file with the password of the database: chmod 600 it': {
    level: 'warn',
    when: 'At the start.',
    fields: { database_file: 'Its path.' },
  },
  'the database is away': {
    level: 'error',
    when: 'The database does not answer, or keeps nothing. Once for each kind of cause. Requests get 503, and no attempt starts.',
    fields: CAUSE,
  },
  'cannot keep the last changes in the database': {
    level: 'error',
    when: 'At the end of the service. What ended last runs again at another replica.',
    fields: CAUSE,
  },
  'the database is back': { level: 'info', when: 'The database answers again.', fields: {} },
  'the database is asked at another address': {
    level: 'debug',
    when: 'A server of the database is away or a standby.',
    fields: { ...CAUSE, server: 'Its address, without the password.' },
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
    fields: { version: 'That of the tables; 0 for none.', wanted: 'That of this program.' },
  },
  'this replica is not registered yet': {
    level: 'warn',
    when: 'The row of a killed replica is locked, or the database is away. It is tried again until --database-timeout.',
    fields: CAUSE,
  },
  'this replica is registered': {
    level: 'info',
    when: 'The replica has its lease, and the graphs of replicas that were gone.',
    fields: { replica: 'Its number.' },
  },
  'other replicas cannot reach this one: set --advertise to an address that leads to it': {
    level: 'warn',
    when: 'The replica asked its registered address, and did not get the request. It is repeated.',
    fields: { ...CAUSE, url: 'Its address.' },
  },
  'other replicas can reach this one now': {
    level: 'info',
    when: 'The registered address leads to the replica after all, perhaps through a proxy that routes to it since just now.',
    fields: { url: 'Its address.' },
  },
  'a replica was declared dead': {
    level: 'warn',
    when: 'It did not renew its lease. Others adopt its graphs. If it still runs, it ends with exit code 75.',
    fields: { replica: 'Its number.' },
  },
  'graphs adopted': {
    level: 'info',
    when: 'The replica runs graphs of one that is gone from now on.',
    fields: { replica: 'The one that is gone; 0 for an earlier version.', graphs: 'How many.' },
  },
  'a graph is unreadable and was set aside': {
    level: 'error',
    when: 'Its rows are damaged, or this version does not know them. GET /graphs?state=unreadable lists it. A start tries again; DELETE /graphs/{id} removes it.',
    fields: { ...CAUSE, graph_id: 'Its id.', graph_ordinal: 'Its number in the database.' },
  },
  'a row of the database is unreadable and is left out': {
    level: 'error',
    when: 'The callback is not delivered, the abandoned attempt not ended, or the runtime service has no labels. Repair or delete the row.',
    fields: { table: 'Its table: callback, orphan or runtime.', row: 'Its key.' },
  },
  'graphs of other replicas are not adopted': {
    level: 'error',
    when: 'A fault of the database, or a defect. It is tried again.',
    fields: CAUSE,
  },
  'cannot look for graphs to adopt': {
    level: 'debug',
    when: 'The database does not answer. The replica tries again.',
    fields: CAUSE,
  },
  'past events cannot be kept: streams can be resumed from now on only': {
    level: 'warn',
    when: 'Their file cannot be written or read. Streams that resume get a reset.',
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
  'ending what an earlier run of the service left running': {
    level: 'warn',
    when: 'At the start after a crash: commands of the earlier run.',
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
      era: 'Generation of its protocol.',
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
    when: 'After a crash they may run on.',
    fields: { ...CAUSE, path: 'The file.' },
  },
  'a runtime service was added': {
    level: 'info',
    when: 'A caller added it, or it registered itself.',
    fields: { runtime, url: 'Its address.', labels: 'Its labels.' },
  },
  'a runtime service has another address': {
    level: 'warn',
    when: 'It registered from there, or a caller moved it. If the line is repeated, two have one name.',
    fields: { runtime, url: 'Its address.', earlier_url: 'Its address before.' },
  },
  'a runtime service gets no new tasks': {
    level: 'info',
    when: 'A caller drains it.',
    fields: { runtime, by: byToken, why },
  },
  'a runtime service gets tasks again': { level: 'info', when: 'A caller ended its drain.', fields: { runtime } },
  'a runtime service was removed': {
    level: 'warn',
    when: 'A caller removed it.',
    fields: { runtime, attempts: 'Attempts that failed with it.' },
  },
  'a runtime service of --runtime-url was removed: it gets no tasks': {
    level: 'warn',
    when: 'At the start. POST /runtimes adds it again.',
    fields: { runtime, url: 'Its address.' },
  },
  'a runtime service was added under a name of --runtime-url, which counts here': {
    level: 'warn',
    when: 'Two addresses have one name. Give one of them another name.',
    fields: { runtime, url: 'Its address.', added_url: 'The address that was added.' },
  },
  'attempts that are to be ended were taken over': {
    level: 'info',
    when: 'Another replica is gone. This one ends what it was to end in the runtime services.',
    fields: { attempts: 'Number of attempts.' },
  },
  'a file of the data directory was moved into the database': {
    level: 'info',
    when: 'At the start with --database. Runtime services that callers changed (runtimes.json), or attempts that are still to be ended there (orphans.json), are rows now.',
    fields: { path: 'Where the file is now.' },
  },
  'pauses are not read': {
    level: 'error',
    when: 'With --database. A fault of the database, or a defect. It is tried again.',
    fields: CAUSE,
  },
  'cannot look for pauses': {
    level: 'debug',
    when: 'The database did not answer. The next look comes at the latest after half a second.',
    fields: CAUSE,
  },
  'changes of the runtime services are not read': {
    level: 'error',
    when: 'A fault of the database, or a defect. It is tried again.',
    fields: CAUSE,
  },
  'cannot look for changes of the runtime services': {
    level: 'debug',
    when: 'The database did not answer. The next look comes at the latest after half a second.',
    fields: CAUSE,
  },
  'places of groups of graphs are not given': {
    level: 'error',
    when: 'A fault of the database, or a defect. Graphs that share a limit wait. It is tried again.',
    fields: CAUSE,
  },
  'cannot look for places of groups of graphs': {
    level: 'debug',
    when: 'The database did not answer. The next look comes at the latest after half a second.',
    fields: CAUSE,
  },
  'files were brought to another runtime service': {
    level: 'info',
    when: 'Inputs of a task are staged where the task runs.',
    fields: {
      from: 'The runtime service that had them.',
      runtime,
      sha256: 'Hash of the bundle.',
      bytes: 'Its size.',
      duration_ms: 'How long it took.',
    },
  },
  'the runtime service is away, waiting for it': {
    level: 'warn',
    when: 'Its task is followed again once it is back.',
    fields: { ...CAUSE, handle_id, runtime },
  },
  'the runtime service is back': { level: 'info', when: 'After the line before.', fields: { handle_id, runtime } },
  'calls to the runtime service are not repeated': {
    level: 'error',
    when: 'A defect: kills and removals wait for the next start.',
    fields: CAUSE,
  },
  'a call to the runtime service broke': {
    level: 'error',
    when: 'A defect: one kill or removal is dropped.',
    fields: { ...CAUSE, handle_id },
  },
  'cannot note which tasks the runtime service is to remove': {
    level: 'error',
    when: 'runtime-drops.jsonl cannot be written. After a crash, retention removes the tasks.',
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
    when: 'Its kill was refused, or repeated for too long.',
    fields: { ...CAUSE, handle_id },
  },
  'ended an abandoned attempt in the runtime service': {
    level: 'info',
    when: 'A kill that had waited for the runtime service was carried out.',
    fields: { handle_id },
  },
  'the runtime service refuses to end an abandoned attempt': {
    level: 'error',
    when: 'The kill is repeated; the line comes again with another cause only.',
    fields: { ...CAUSE, handle_id },
  },
} as const satisfies LogEvents
