/**
 * Goal: a launcher is asked for what the plan of a task says, no more and no less. Method: plans in a table, and the
 * arguments and environment that come of them.
 */
import { describe, expect, test } from 'bun:test'
import { taskDir } from '../../../runtime/files/task-dir.ts'
import type { TaskCgroup } from '../../../runtime/host/task-cgroups.ts'
import { planTask } from '../../../runtime/plan/plan.ts'
import { type LaunchSettings, launchPlan, taskEnvironment } from '../../../runtime/tasks/launch-plan.ts'
import { taskDirContent } from '../../../runtime/tasks/task-dir-content.ts'
import type { SubmitTaskRequest } from '../../../shared/contract/runtime-request.ts'
import { hostWithout, type Part } from '../../support/capabilities.ts'
import { request } from '../../support/runtime-requests.ts'

const settings: LaunchSettings = {
  graceMs: 500,
  maxOutputBytes: 1_000,
  baseEnvironment: { PATH: '/bin', USER: 'service' },
  sandbox: { capabilities: hostWithout(), masks: ['/run', '/data'], exposed: ['/run/x'] },
}
const dir = taskDir('/data', 'task-1')
const context = { dir, dirId: '7:9', cgroup: { version: 2, path: '/cgroup' } as const, mark: 'mark' }

function launched(
  parts: SubmitTaskRequest,
  {
    lacking = [] as Part[],
    given = settings,
    uid = 65_531 as number | null,
    sandboxPidsMax = undefined as number | undefined,
  } = {},
) {
  const asked = request({ task_id: 'task-1', ...parts })
  const plan = planTask(asked, hostWithout(...lacking), {
    capability_mode: 'adaptive',
    network: 'none',
    access: { runtime: 'token', control: 'token' },
    default_limits: { pids_max: sandboxPidsMax, disk_bytes: undefined },
  })
  const isSandboxed = plan.effective_sandbox.profile === 'linux_sandbox'
  const all = { ...context, uid: isSandboxed ? (uid ?? undefined) : undefined }
  return {
    ...{ asked, plan },
    launch: launchPlan(asked, plan, all, given),
    env: taskEnvironment(asked, plan, all, given),
  }
}

const sandbox = { profile: 'linux_sandbox' } as const
const SCRIPT = { execution: { kind: 'script', script: 'true' } } as const

describe('a launcher', () => {
  test('of the profile process is asked for no sandbox', () => {
    const { launch, env } = launched(SCRIPT)
    expect(launch).not.toHaveProperty('sandbox')
    expect(launch).toMatchObject({ workdir: dir.workspace, command: ['/bin/sh', dir.script_path], task_dir_id: '7:9' })
    expect(env).toEqual({ PATH: '/bin', USER: 'service', HOME: dir.workspace, TASKMILL_TASK: 'mark' })
  })

  test('of linux_sandbox is asked for what the plan says, with the paths of the service', () => {
    const { launch, env } = launched({ ...SCRIPT, sandbox: { ...sandbox, workspace_subdir: 'a' } })
    expect(launch).toMatchObject({ workdir: `${dir.workspace}/a`, command: ['/bin/sh', dir.script_path] })
    expect(launch.sandbox).toEqual({
      features: ['mount', 'pid', 'uts', 'ipc', 'net', 'user', 'seccomp'],
      ...{ uid: 65_531, masks: ['/run', '/data'], exposed: ['/run/x'] },
      ...{ workspace: dir.workspace, script: dir.script_path },
    })
    expect(env).toMatchObject({ HOME: dir.workspace, USER: '65531' })
  })

  test('with a rootfs finds workspace and script there', () => {
    const { launch, env } = launched({
      ...SCRIPT,
      sandbox: { ...sandbox, chroot: true, rootfs: '/srv/root', workspace_subdir: 'a' },
    })
    expect(launch).toMatchObject({ workdir: '/workspace/a', command: ['/bin/sh', '/script'] })
    expect(launch.sandbox).toMatchObject({ rootfs: '/srv/root', workspace: dir.workspace, script: dir.script_path })
    expect(env.HOME).toBe('/workspace')
  })

  test('of who is not root names no user', () => {
    const { launch, env } = launched({ sandbox }, { uid: null })
    expect(launch.sandbox).not.toHaveProperty('uid')
    expect(launch.sandbox).not.toHaveProperty('script')
    expect(env.USER).toBe('service')
  })

  test('without mounts gets no paths, and goes to the script on foot', () => {
    const { launch } = launched({ ...SCRIPT, sandbox: { ...sandbox, workspace_subdir: 'a/b' } }, { lacking: ['mount'] })
    expect(launch.sandbox).toEqual({ features: ['pid', 'uts', 'ipc', 'net', 'user', 'seccomp'], uid: 65_531 })
    expect(launch).toMatchObject({ workdir: `${dir.workspace}/a/b`, command: ['/bin/sh', '../../../script'] })
  })

  test('is asked for no filter where there is none', () => {
    const given = { ...settings, sandbox: { ...settings.sandbox, capabilities: hostWithout('seccomp') } }
    expect(launched({ sandbox }, { given, lacking: ['seccomp'] }).launch.sandbox?.features).not.toContain('seccomp')
  })

  test('of a sandbox without pids of its own gets a cgroup to be ended by, whatever its limits, and others do not', () => {
    const shared = { sandbox: { ...sandbox, namespaces: { pid: false } } }
    expect(launched(shared).launch).toMatchObject({ cgroup: context.cgroup })
    expect(launched({ sandbox }, { lacking: ['pid'] }).launch).toMatchObject({ cgroup: context.cgroup })
    for (const none of [launched({ sandbox }), launched({})]) expect(none.launch).not.toHaveProperty('cgroup')
    const v1 = { version: 1, pids_path: '/pids/task', memory_path: '/memory/task' } as const
    const { asked, plan } = launched(shared)
    expect(launchPlan(asked, plan, { ...context, cgroup: v1 }, settings).cgroup).toEqual({
      ...{ version: 1, pids_path: '/pids/task' },
    })
  })

  test('limits memory once: by the cgroup, or by address space', () => {
    const limits = { memory_bytes: 5, pids_max: 6 }
    expect(launched({ sandbox, limits }).launch).toMatchObject({ memory_max: 5, pids_max: 6, cgroup: context.cgroup })
    expect(launched({ sandbox, limits }).launch).not.toHaveProperty('address_space_bytes')
    const { launch } = launched({ sandbox, limits }, { lacking: ['memory_cgroup', 'pids_cgroup'] })
    expect(launch).toMatchObject({ address_space_bytes: 5 })
    for (const name of ['memory_max', 'pids_max', 'cgroup']) expect(launch).not.toHaveProperty(name)
  })
})

describe('a sandbox that asks for no limit on processes', () => {
  const v1 = { version: 1, pids_path: '/pids', memory_path: '/memory' } as const
  const planned = (parts: SubmitTaskRequest, lacking: Part[] = []) =>
    launched({ sandbox, ...parts }, { lacking, sandboxPidsMax: 9 })
  const launchIn = ({ asked, plan }: ReturnType<typeof launched>, cgroup: TaskCgroup) =>
    launchPlan(asked, plan, { ...context, cgroup }, settings)

  test('has that of the service, in a group for that alone', () => {
    expect(planned({}).launch).toMatchObject({ pids_max: 9, cgroup: context.cgroup })
    expect(launchIn(planned({}), v1)).toMatchObject({ pids_max: 9, cgroup: { version: 1, pids_path: '/pids' } })
    expect(launchIn(planned({}), v1).cgroup).not.toHaveProperty('memory_path')
    expect(launchIn(planned({ limits: { memory_bytes: 5 } }), v1).cgroup).toEqual(v1)
    expect(launchIn(planned({ limits: { pids_max: 3 } }), v1)).toMatchObject({ pids_max: 3, cgroup: v1 })
  })

  test('goes without it, and without a group, where there is no pids cgroup', () => {
    const { launch } = planned({}, ['pids_cgroup'])
    for (const name of ['pids_max', 'cgroup']) expect(launch).not.toHaveProperty(name)
  })
})

describe('the directory of a task', () => {
  test('has the request and the script', () => {
    const { asked } = launched({ ...SCRIPT, sandbox: { profile: 'process' } })
    expect(taskDirContent(asked, 'text')).toMatchObject({ request: 'text', script: 'true', workspaceSubdir: '' })
  })
})
