/**
 * The profile linux_sandbox, as callers see it: what a task gets, what its plan says, how it ends.
 * Source: spec, SandboxPolicy and ResourceLimits; contract 2 and 5, Runtime.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { NAMESPACES } from '../../shared/contract/runtime-request.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { asOrdinaryUser, ORDINARY_UID } from '../support/ordinary-user.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, script } from '../support/runtime-tasks.ts'
import { missingSandbox, testRootfs } from '../support/sandboxes.ts'
import { tempDir } from '../support/temp.ts'

const MEBIBYTE = 1024 * 1024
const isRoot = process.getuid?.() === 0
const sandbox = { profile: 'linux_sandbox' } as const
const STRICT = { policy: { capability_mode: 'strict' } } as const
const lines = (text: string | undefined): string[] => (text ?? '').split('\n').filter((line) => line !== '')

/** Of --sandbox-uids. */
const expectOwnUid = (text: string | undefined) => {
  expect(Number(text)).toBeGreaterThanOrEqual(65_600)
  expect(Number(text)).toBeLessThanOrEqual(69_695)
}

const why = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
const skip = missingSandbox !== undefined

const settings: readonly (readonly [string, number | undefined, Parameters<typeof startRuntime>[0]])[] = isRoot
  ? [
      ['as root', undefined, {}],
      ['as an ordinary user', ORDINARY_UID, await asOrdinaryUser()],
    ]
  : [['as an ordinary user', process.getuid?.() ?? 0, {}]]

describe.skipIf(skip).each([...settings])(`a service %s${why}`, (_, uid, options) => {
  let runtime: Runtime
  beforeAll(async () => {
    runtime = await startRuntime(options)
  })
  afterAll(() => runtime?.dispose())

  test('without a view of its own a task that knows the id of another reaches nothing of it', async () => {
    const bare = { sandbox: { ...sandbox, namespaces: { mount: false } } }
    const other = await runtime.script('id -u; until [ -e go ]; do sleep 0.02; done', bare)
    const { stdout, artifacts } = await runtime.printed(other)
    const attack = `cat ../../${other}/stdout.log; echo forged > ../../${other}/stdout.log`
    const beside = await runtime.runScript(attack, bare)
    const status = statSync(artifacts.task_dir)
    writeFileSync(join(artifacts.task_dir, 'workspace/go'), '')
    expect((await runtime.ended(other)).status).toBe('success')
    const after = await runtime.runScript(attack, bare)
    if (uid !== undefined) return // tasks of a user's service have that user's rights
    expect([status.mode & 0o777, status.gid]).toEqual([0o710, Number(stdout)])
    for (const task of [beside, after]) expect(task).toMatchObject({ status: 'failed', stdout: '' })
    expect((await runtime.get(other)).stdout).toBe(stdout!)
    const { mode, gid } = statSync(artifacts.task_dir)
    expect([mode & 0o777, gid]).toEqual([0o700, 0])
  })

  test('can do it all, and says so', async () => {
    const { sandbox: manifest } = await runtime.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
    expect(manifest).toEqual({
      ...{ process: true, linux_sandbox: true, chroot: true, rootless: true },
      namespaces: Object.fromEntries(NAMESPACES.map((name) => [name, true])) as typeof manifest.namespaces,
    })
  })

  test('gives a strict task what it asks for: the plan is what was requested, but for the user namespace', async () => {
    const { status, execution_plan } = await runtime.run({ ...command('/bin/true'), sandbox, ...STRICT })
    expect([status, execution_plan.degraded, execution_plan.fallback_reasons]).toEqual(['success', false, []])
    const namespaces = { mount: true, pid: true, uts: true, ipc: true, net: true, cgroup: false }
    expect(execution_plan.requested_sandbox).toEqual({ ...sandbox, chroot: false, namespaces })
    expect(execution_plan.effective_sandbox).toEqual({
      ...sandbox,
      chroot: false,
      network: 'none',
      namespaces: { ...namespaces, user: true },
    })
  })

  test('a script runs in its workspace, at its own path, as the user of sandboxes', async () => {
    const task = await runtime.runScript('pwd; echo $HOME; echo $0; id -u; echo made > file; cat file', {
      sandbox,
      ...STRICT,
    })
    const { task_dir, script_path } = task.artifacts
    const workspace = join(task_dir, 'workspace')
    expect(task).toMatchObject({ status: 'success', stderr: '' })
    const [, , , own] = lines(task.stdout)
    expect(lines(task.stdout)).toEqual([workspace, workspace, script_path!, String(uid ?? own), 'made'])
    if (uid === undefined) expectOwnUid(own)
    expect(statSync(join(workspace, 'file')).uid).toBe(uid ?? 0) // it is the service's again
  })

  test('workspace_subdir is the working directory, and can be written', async () => {
    const task = await runtime.runScript('pwd; echo x > file; echo x > ../file', {
      sandbox: { ...sandbox, workspace_subdir: 'a/b' },
    })
    expect(task).toMatchObject({ status: 'success', stdout: `${join(task.artifacts.task_dir, 'workspace/a/b')}\n` })
    expect(existsSync(join(task.artifacts.task_dir, 'workspace/a/b/file'))).toBe(true)
  })

  test('a task does not see the data directory, nor other tasks and their processes', async () => {
    const other = await runtime.script('echo ready; sleep 600', { sandbox })
    const { pid, artifacts } = await runtime.printed(other)
    const { dataDir } = runtime
    const spy = `find ${realpathSync(dataDir)} -mindepth 1 | sort; cat ${artifacts.request_path} ${dataDir}/runtime.db; kill ${pid}; ls /proc/${pid}; exit 0`
    const task = await runtime.runScript(spy, { sandbox })
    const top = join(realpathSync(dataDir), 'tasks')
    const own = join(top, task.task_id)
    expect(lines(task.stdout)).toEqual([top, own, join(own, 'script'), join(own, 'workspace')])
    expect((await runtime.get(other)).status).toBe('running')
    await runtime.kill(other)
  })

  test('a rootfs is all that a task sees, with its workspace at /workspace', async () => {
    using rootfs = testRootfs()!
    const given = { ...sandbox, chroot: true, rootfs: rootfs.path }
    const task = await runtime.runScript('pwd; echo $HOME $0; ls /; echo x > /etc/x || echo x > file', {
      sandbox: { ...given, workspace_subdir: 'sub' },
      ...STRICT,
    })
    expect(task).toMatchObject({ status: 'success', execution_plan: { effective_sandbox: given } })
    expect(lines(task.stdout)).toEqual([
      ...['/workspace/sub', '/workspace /script', 'bin', 'dev', 'etc', 'proc', 'script', 'tmp', 'workspace'],
    ])
    expect(existsSync(join(task.artifacts.task_dir, 'workspace/sub/file'))).toBe(true)
  })

  test('a rootfs that vanishes before the task starts: sandbox_setup_failed', async () => {
    using rootfs = testRootfs()!
    using away = tempDir()
    await using full = await startRuntime({ ...options, flags: ['--max-running-tasks', '1'] })
    const first = await full.script('echo ready; sleep 600')
    await full.printed(first)
    const path = join(away.path, 'link')
    symlinkSync(rootfs.path, path)
    Bun.spawnSync(['chmod', '755', away.path])
    const id = await full.submit({ ...command('/bin/true'), sandbox: { ...sandbox, chroot: true, rootfs: path } })
    Bun.spawnSync(['rm', path])
    await full.kill(first)
    const task = await full.ended(id)
    expect(task).toMatchObject({
      status: 'failed',
      error: { code: 'sandbox_setup_failed', message: expect.stringContaining('sandbox.rootfs cannot be used') },
    })
    expect(await full.eventTypes(id)).not.toContain('started')
  })

  test('a rootfs in the data directory is refused: tasks could change it', async () => {
    const rootfs = join(runtime.dataDir, 'tasks')
    const answer = await runtime.post({ ...command('/bin/true'), sandbox: { ...sandbox, chroot: true, rootfs } })
    expect(await refused(answer)).toEqual([400, 'invalid_input', expect.stringContaining('which is hidden from tasks')])
  })

  test('cpu_time_sec holds, and address space where no memory cgroup does', async () => {
    const task = await runtime.runScript('while :; do :; done', { sandbox, limits: { cpu_time_sec: 1 } })
    expect(task.error?.code).toBe('cpu_limit_exceeded')
    await using bare = await startRuntime({ ...options, flags: ['--disable-cgroup'] })
    const limited = await bare.runScript('ulimit -v', { sandbox, limits: { memory_bytes: 64 * MEBIBYTE } })
    expect(limited.stdout).toBe(`${64 * 1024}\n`)
    expect(limited.execution_plan.resource_enforcement).toMatchObject({ memory_enforced: true, oom_detection: false })
  })
})

describe.skipIf(skip || missingCgroups !== undefined)(
  `cgroups of sandboxes${missingCgroups === undefined ? why : ` (skipped: ${missingCgroups})`}`,
  () => {
    let runtime: Runtime
    beforeAll(async () => {
      runtime = await startRuntime()
    })
    afterAll(() => runtime?.dispose())

    test('memory_bytes: the whole task, told apart, with its peak', async () => {
      const eat = command('perl', '-e', 'my $x = "a" x 200_000_000; print length $x')
      const task = await runtime.run({ ...eat, sandbox, limits: { memory_bytes: 50 * MEBIBYTE }, ...STRICT })
      expect(task).toMatchObject({
        status: 'failed',
        error: { code: 'memory_limit_exceeded', message: 'task exceeded memory_bytes' },
      })
      expect(task.usage?.memory_peak_bytes).toBeGreaterThan(40 * MEBIBYTE)
      expect(task.usage?.memory_peak_bytes).toBeLessThanOrEqual(50 * MEBIBYTE)
      const { resource_enforcement } = task.execution_plan
      expect(resource_enforcement).toMatchObject({ memory_enforced: true, cgroup_enforced: true, oom_detection: true })
    })

    test('memory_bytes counts what the task has in /tmp, and limits no address space', async () => {
      const limits = { memory_bytes: 50 * MEBIBYTE }
      const task = await runtime.runScript('ulimit -v; head -c 100M /dev/zero > /tmp/x', { sandbox, limits })
      expect([task.stdout, task.error?.code]).toEqual(['unlimited\n', 'memory_limit_exceeded'])
    })

    test('pids_max counts the processes of the task, and none of ours', async () => {
      const fork = (count: number) => `for i in $(seq ${count}); do sleep 1 & done; wait; echo fine`
      // seq is a process too, and has ended by then: the shell and three more.
      const fits = await runtime.runScript(fork(3), { sandbox, limits: { pids_max: 4 }, ...STRICT })
      expect(fits).toMatchObject({ status: 'success', stdout: 'fine\n' })
      const tight = await runtime.runScript(fork(4), { sandbox, limits: { pids_max: 4 }, ...STRICT })
      expect(tight.stderr).toContain('Cannot fork')
    })
  },
)

const whyNoUid = isRoot ? why : ' (skipped: sandboxes of root have users of their own)'
test.skipIf(skip || !isRoot)(
  `a task keeps its user over a restart with other users, and one that waits gets a new one${whyNoUid}`,
  async () => {
    using data = tempDir()
    const dataDir = join(data.path, 'data')
    const one = ['--max-running-tasks', '1']
    const first = await startRuntime({ dataDir, flags: one })
    const running = await first.script('echo ready; until [ -e go ]; do sleep 0.02; done; id -u; echo x > file', {
      sandbox,
    })
    const { artifacts } = await first.printed(running)
    const waiting = await first.script('id -u; echo x > file && cat file', {
      sandbox: { ...sandbox, workspace_subdir: 'sub' },
    })
    const ofWaiting = (await first.get(waiting)).artifacts
    expect(statSync(join(ofWaiting.task_dir, 'workspace')).uid).toBe(0)
    await first.stop()
    await first.dispose()
    await using second = await startRuntime({ dataDir, flags: [...one, '--sandbox-uids', '69700-69799'] })
    writeFileSync(join(artifacts.task_dir, 'workspace/go'), '')
    expect(await second.ended(running)).toMatchObject({ status: 'success' })
    expectOwnUid(lines((await second.get(running)).stdout)[1])
    const { status, stdout } = await second.ended(waiting)
    expect(status).toBe('success')
    expect(stdout).toMatch(/^697\d\d\nx\n$/)
    expect(await second.eventTypes(waiting)).toEqual([
      ...['submitted', 'accepted', 'planned', 'resource_reserved', 'started', 'resource_released', 'finished'],
    ])
  },
)

describe.skipIf(skip || !isRoot)(`root without its rights${why}`, () => {
  test('drops the user and filters calls all the same, names what is lost, and refuses strict tasks for it', async () => {
    const through = ['setpriv', '--bounding-set', '-sys_admin', '--']
    await using runtime = await startRuntime({ through })
    const task = await runtime.runScript(
      'id -u; grep -E "NoNewPrivs|Seccomp:|CapBnd" /proc/self/status; pwd; echo x > file; cat file',
      { sandbox },
    )
    const [own] = lines(task.stdout)
    expectOwnUid(own)
    expect(lines(task.stdout)).toEqual([
      ...[own!, 'CapBnd:\t0000000000000000', 'NoNewPrivs:\t1', 'Seccomp:\t2'],
      ...[join(task.artifacts.task_dir, 'workspace'), 'x'],
    ])
    const { degraded, effective_sandbox, fallback_reasons } = task.execution_plan
    expect([degraded, effective_sandbox.profile]).toEqual([true, 'linux_sandbox'])
    expect(fallback_reasons.map((reason) => reason.split(' ')[0])).toEqual(
      ['mount', 'pid', 'uts', 'ipc', 'net'].map((name) => `sandbox.namespaces.${name}`),
    )
    const answer = await runtime.post({ ...script('true'), sandbox, ...STRICT })
    expect(await refused(answer)).toEqual([
      ...([
        400,
        'unsupported_capability',
        expect.stringMatching(/^sandbox\.namespaces\.mount is unavailable: .*SYS_ADMIN/),
      ] as const),
    ] as [number, string, string])
    const { sandbox: manifest } = await runtime.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
    expect(manifest).toMatchObject({ linux_sandbox: false, chroot: false })
  })
})

test.skipIf(skip)(`--sandbox-mask hides, --sandbox-expose shows${why}`, async () => {
  using tree = tempDir()
  mkdirSync(join(tree.path, 'public'))
  writeFileSync(join(tree.path, 'key'), 'secret\n')
  writeFileSync(join(tree.path, 'public/text'), 'shown\n')
  Bun.spawnSync(['chmod', '-R', 'a+rX', tree.path])
  // Below /tmp everything is hidden.
  const flags = ['--sandbox-expose', tree.path, '--sandbox-mask', join(tree.path, 'key')]
  await using runtime = await startRuntime({ flags })
  const task = await runtime.runScript(`cat ${tree.path}/key ${tree.path}/public/text`, { sandbox })
  expect(task.stdout).toBe('shown\n')
})

/** Not below /tmp or a home directory, which are hidden as a whole. A throw-away kernel has it read-only. */
const ELSEWHERE = '/srv'

test.skipIf(skip || !isRoot || !isWritable(ELSEWHERE))(
  `the data directory may lie where only root may enter (for a service of root that may write to ${ELSEWHERE})${why}`,
  async () => {
    const closed = mkdtempSync(join(ELSEWHERE, 'taskmill-'))
    try {
      await using runtime = await startRuntime({ dataDir: join(closed, 'inner/data') })
      const task = await runtime.runScript('touch here && ls "$PWD"', { sandbox })
      expect([task.status, task.stdout]).toEqual(['success', 'here\n'])
    } finally {
      rmSync(closed, { recursive: true, force: true })
    }
  },
)

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}
