/** Log messages that both services have. */
import { CAUSE, type LogEvents } from './event.ts'

const request = {
  method: 'Method of the request.',
  path: 'Path of the request.',
  status: 'Status of the answer.',
} as const

export const bothLogEvents = {
  listening: {
    level: 'info',
    when: 'The service takes requests.',
    fields: {
      url: 'Its address.',
      version: 'Version of the build.',
      pid: 'Its process.',
      recovered_graphs: 'Control: graphs that were read from disk.',
      cut_journal_bytes: 'Control: incomplete bytes that a crash left at the end of the journal.',
      waiting: 'Runtime: tasks in the queue.',
      running: 'Runtime: tasks that ran on meanwhile.',
      ended: 'Runtime: tasks that ended meanwhile.',
    },
  },
  'listening beyond loopback without a token: whoever reaches this address can run tasks (set --token-file)': {
    level: 'warn',
    when: 'At the start.',
    fields: {},
  },
  'tokens file read': {
    level: 'info',
    when: '--tokens-file has changed, and is in force.',
    fields: { tokens: 'Number of its tokens.' },
  },
  'tokens file cannot be used: the earlier tokens stay in force': {
    level: 'error',
    when: '--tokens-file has changed and is damaged, or is gone.',
    fields: { error: 'What is wrong with it.' },
  },
  stopping: {
    level: 'info',
    when: 'A signal ends the service.',
    fields: { signal: 'The signal.', running_tasks: 'Runtime: tasks that run on.' },
  },
  stopped: { level: 'info', when: 'The service ends, and all is on disk.', fields: {} },
  'stopped before it listened': {
    level: 'info',
    when: 'A signal ended the service during its start.',
    fields: { signal: 'The signal.' },
  },
  request: { level: 'debug', when: 'A request was answered.', fields: request },
  'request refused': {
    level: 'warn',
    when: 'A request got a status from 400 to 498.',
    fields: { ...request, error: 'The error of the answer.' },
  },
  'request given up': {
    level: 'info',
    when: 'The caller closed the connection before the answer. The status is 499.',
    fields: { ...request, error: 'What had not happened yet.' },
  },
  'request failed': {
    level: 'error',
    when: 'A request got a status of 500 or more.',
    fields: { ...request, error: 'The error of the answer.', ...CAUSE },
  },
  'the data directory is lost': {
    level: 'error',
    when: 'The data directory was moved or replaced. The service stores nothing more: restart it.',
    fields: { ...CAUSE, data_dir: 'Its path.' },
  },
  'other users can read files with secrets, which belong to somebody else': {
    level: 'warn',
    when: 'At the start. The service may not change their modes.',
    fields: { files: 'Their paths.' },
  },
  'other users can look into the data directory: chmod 700 it, or choose another with --data-dir': {
    level: 'warn',
    when: 'At the start.',
    fields: { data_dir: 'Its path.' },
  },
  'other users have rights to the token file: chmod 600 it': {
    level: 'warn',
    when: 'At the start.',
    fields: { token_file: 'Its path.' },
  },
  'the rules of the secrets have changed': {
    level: 'info',
    when: 'The file of --secrets-rules was read again. Its rules are in force.',
    fields: { file: 'Its path.', secrets: 'Number of secrets that have rules.' },
  },
  'the rules of the secrets cannot be used: those before stay in force': {
    level: 'error',
    when: 'The file of --secrets-rules was changed or removed. Correct it; the health of the service says so until then.',
    fields: { file: 'Its path.', cause: 'What is wrong with it.' },
  },
  'log lines dropped: stdout is read too slowly': {
    level: 'warn',
    when: 'More than 8 MiB of lines waited for their reader.',
    fields: { dropped: 'Number of dropped lines.' },
  },
  'log lines dropped: the log file cannot be written': {
    level: 'warn',
    when: 'When --log-file can be written again.',
    fields: { dropped: 'Number of dropped lines.' },
  },
} as const satisfies LogEvents
