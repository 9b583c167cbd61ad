/**
 * Goal: only directories whose files nobody else can have open serve another task.
 * Method: a table of plans.
 */
import { expect, test } from 'bun:test'
import { keepsItsFiles } from '../../../runtime/tasks/task-dir-content.ts'
import type { ExecutionPlan, PlannedSandbox } from '../../../shared/contract/runtime.ts'

const ALL = { mount: true, pid: true, uts: true, ipc: true, net: true, cgroup: false, user: true }

const keeps = (effective_sandbox: object, exposed: readonly string[] = []) =>
  keepsItsFiles({ effective_sandbox: effective_sandbox as PlannedSandbox } as ExecutionPlan, exposed)

test.each([
  ['no sandbox promises anything', true, { profile: 'process' }, []],
  ['a whole sandbox', true, { profile: 'linux_sandbox', namespaces: ALL }, []],
  ['sockets by name in the network of the host', false, { namespaces: { ...ALL, net: false } }, []],
  ['processes of others in view', false, { namespaces: { ...ALL, pid: false } }, []],
  ['all files of the host in view', false, { namespaces: { ...ALL, mount: false } }, []],
  ['a root of its own, which others may have', false, { namespaces: ALL, chroot: true }, []],
  ['a socket that all sandboxes may have', false, { namespaces: ALL }, ['/run/some']],
  ['nothing known', false, {}, []],
] as const)('%s: %p', (_, expected, sandbox, exposed) => {
  expect(keeps({ profile: 'linux_sandbox', ...sandbox }, exposed)).toBe(expected)
})
