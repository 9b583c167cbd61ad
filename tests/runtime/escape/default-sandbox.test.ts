/** Goal: the default sandbox of `doctor --escape` has the group that a task in it has: for processes, and without a limit on memory. */
import { expect, test } from 'bun:test'
import { defaultsOf, type EscapeOptions } from '../../../runtime/escape/escape.ts'
import type { TaskCgroup } from '../../../runtime/host/task-cgroups.ts'

const optionsWith = (group: TaskCgroup | undefined): EscapeOptions => ({
  launcher: { command: ['/launcher'], wrapEnvironment: (env) => env, isNative: true },
  sandbox: { features: ['user', 'mount', 'cgroup', 'seccomp'], rootfs: '/tree', masks: [], exposed: [] },
  groupOf: () => group,
  hiddenDirectories: [],
  secretsDir: '/secrets',
  memoryFilesBytes: 1,
})

test.each<[TaskCgroup | undefined, TaskCgroup | undefined]>([
  [
    { version: 1, pids_path: '/pids/x', memory_path: '/memory/x' },
    { version: 1, pids_path: '/pids/x' },
  ],
  [{ version: 1, memory_path: '/memory/x' }, undefined],
  [
    { version: 2, path: '/x' },
    { version: 2, path: '/x' },
  ],
  [undefined, undefined],
])('of %j it has %j', (group, expected) => {
  const made = defaultsOf(optionsWith(group))
  expect(made.groupOf('escape')).toEqual(expected)
  expect(made.isMemoryUnlimited).toBe(true)
  expect(made.sandbox.rootfs).toBeUndefined()
})
