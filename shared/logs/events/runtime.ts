/** Log messages of the runtime service. */
import { CAUSE, type LogEvents } from './event.ts'

export const runtimeLogEvents = {
  'task accepted': { level: 'info', when: 'A task is on disk.', fields: {} },
  'task ended': {
    level: 'info',
    when: 'A task has ended, with all its processes.',
    fields: { status: 'How it ended.', error: '{code, message}.' },
  },
  'registered with the control service': {
    level: 'info',
    when: 'With --register: control sends this service tasks from now on.',
    fields: { runtime: 'Its name there.', url: 'Its address there.', control: 'Address of the control service.' },
  },
  'cannot register with the control service': {
    level: 'warn',
    when: 'It is repeated; the line comes again with another cause only.',
    fields: { ...CAUSE, runtime: 'Its name there.', url: 'Its address there.' },
  },
  'task deleted': { level: 'info', when: 'A caller removed a task.', fields: {} },
  'kill requested': { level: 'info', when: 'A caller killed a task.', fields: {} },
  'tasks removed that are kept no longer': {
    level: 'info',
    when: 'Retention removed tasks.',
    fields: { removed: 'Number of tasks.' },
  },
  'cannot remove tasks that are kept no longer': {
    level: 'error',
    when: 'It is repeated after --gc-interval-ms.',
    fields: CAUSE,
  },
  'staged files removed that are kept no longer': {
    level: 'info',
    when: 'Bundles of other runtime services were not used for --staged-retention-secs.',
    fields: { removed: 'Number of bundles.' },
  },
  'cannot remove staged files that are kept no longer': {
    level: 'error',
    when: 'It is repeated after --gc-interval-ms.',
    fields: CAUSE,
  },
  'cannot remove stray directories': {
    level: 'error',
    when: 'After the start. They stay until the next one.',
    fields: CAUSE,
  },
  'cannot remove the files of a deleted task before the next start': {
    level: 'warn',
    when: 'After a removal.',
    fields: CAUSE,
  },
  'cannot remove the directory of a task': {
    level: 'warn',
    when: 'It is moved aside until the next start.',
    fields: CAUSE,
  },
  'it stays until the next start': {
    level: 'warn',
    when: 'The directory could not be moved aside either.',
    fields: CAUSE,
  },
  'a launcher is at work in a directory that no task has: it stays': {
    level: 'warn',
    when: 'The next start looks again.',
    fields: {},
  },
  'cannot remove the directory of a task that was refused': {
    level: 'warn',
    when: 'A submission failed.',
    fields: CAUSE,
  },
  'cannot serve the network of a task: it reaches nothing': {
    level: 'error',
    when: 'After a restart: its proxy could not be opened.',
    fields: CAUSE,
  },
  'cannot remove the sockets of ended tasks': {
    level: 'warn',
    when: 'The next start tries again.',
    fields: CAUSE,
  },
  'cannot keep what a task uses of its network': {
    level: 'warn',
    when: 'Its limits hold. After a crash its totals count only connections with an event.',
    fields: CAUSE,
  },
  'a connection of a task could not be served': {
    level: 'error',
    when: 'A defect. The connection is closed.',
    fields: CAUSE,
  },
  'cannot reduce a workspace to the outputs of its task': {
    level: 'warn',
    when: 'Files that it does not keep are still there.',
    fields: CAUSE,
  },
  'cannot remove what a task does not keep yet': {
    level: 'warn',
    when: 'It is tried again after --gc-interval-ms.',
    fields: CAUSE,
  },
  'user ids of sandboxes are not locked: give other services of this host other --sandbox-uids': {
    level: 'warn',
    when: 'A root service cannot write /run/taskmill-sandbox-uids.',
    fields: CAUSE,
  },
  'the user of a sandbox cannot be given back': {
    level: 'error',
    when: 'Remains of its task cannot be taken from it. It is tried again; no other sandbox gets the user before.',
    fields: { ...CAUSE, uid: 'Its id' },
  },
  'cannot close the directory of a task': {
    level: 'warn',
    when: 'Its sandbox user keeps access to it.',
    fields: CAUSE,
  },
  'cannot write the result file: the status is in the database': {
    level: 'warn',
    when: 'result.json is missing. Answers are not affected.',
    fields: CAUSE,
  },
  'cannot write the database': {
    level: 'error',
    when: 'Submissions get 503: make room on the disk.',
    fields: CAUSE,
  },
  'the database can be written again': { level: 'info', when: 'After the line before.', fields: {} },
  'the database lacks what was not written': {
    level: 'warn',
    when: 'At the end of the service. The next start learns it from launchers.',
    fields: CAUSE,
  },
  'a change of the database failed': {
    level: 'error',
    when: 'It failed twice. Its caller gets an error.',
    fields: { ...CAUSE, first: 'What went wrong the first time.' },
  },
  'cannot take back what was refused': { level: 'error', when: 'A refused change is still in memory.', fields: CAUSE },
  'the process that starts launchers ended: another takes its place (see launchers.log)': {
    level: 'warn',
    when: 'The fork server was killed, or failed.',
    fields: { exit_code: 'Its exit code.', signal: 'The signal that ended it.' },
  },
  'the machine refuses a launch: it is tried again': {
    level: 'warn',
    when: 'Processes or memory are short. The task waits up to --launch-retry-ms.',
    fields: CAUSE,
  },
  'cannot remove the record of a launch that was refused': { level: 'error', when: 'The task fails.', fields: CAUSE },
  'cannot write why a task is not started': { level: 'warn', when: 'The disk is full.', fields: CAUSE },
  'a task cannot be looked after': {
    level: 'error',
    when: 'It is repeated.',
    fields: CAUSE,
  },
  'a task of an earlier service cannot be taken up': {
    level: 'error',
    when: 'At the start. The task fails with internal.',
    fields: CAUSE,
  },
  'cannot ask a launcher to end its task yet': { level: 'warn', when: 'After a kill. It is repeated.', fields: CAUSE },
  'a launcher did not start its task in time: both are killed': {
    level: 'error',
    when: 'A launch hung.',
    fields: {},
  },
  'a launcher did not end its task in time: both are killed': {
    level: 'error',
    when: 'After the wall time or a kill.',
    fields: {},
  },
  'processes of a task whose launcher is gone cannot be killed': {
    level: 'error',
    when: 'Look for TASKMILL_TASK in environments of processes.',
    fields: {},
  },
  'the control group of a task that does not run cannot be ended': {
    level: 'error',
    when: 'Processes, or an empty cgroup, are left.',
    fields: CAUSE,
  },
  'the control groups of tasks cannot be listed': { level: 'error', when: 'At the start.', fields: CAUSE },
  'control groups stay: the file system of their service does not answer': {
    level: 'warn',
    when: 'Another service may still own them.',
    fields: { groups: 'Their paths.' },
  },
  'control groups of services that are gone removed': {
    level: 'info',
    when: 'At the start.',
    fields: { services: 'Number of services.' },
  },
  'cannot remove the files with the secrets of a task': {
    level: 'error',
    when: 'Remove the files that `secrets` of its `request.json` names.',
    fields: CAUSE,
  },
  'control groups of other services checked': { level: 'debug', when: 'At the start.', fields: {} },
  'control groups of services that are gone cannot be removed': { level: 'warn', when: 'At the start.', fields: CAUSE },
  'control groups have no record: no other service removes them if this one is killed': {
    level: 'warn',
    when: 'At the start.',
    fields: { causes: 'What went wrong.' },
  },
} as const satisfies LogEvents
