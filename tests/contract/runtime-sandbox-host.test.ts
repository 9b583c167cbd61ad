/**
 * The profile linux_sandbox in odd surroundings: groups of the service, places below /dev and /proc, roots that cannot be
 * used. Source: docs/sandbox.md; contract 2.
 */
import { describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { CALLS, recordedSharedMounts, withoutCalls } from '../support/hosts.ts'
import { asOrdinaryUser, becoming, openProgram } from '../support/ordinary-user.ts'
import { startRuntime } from '../support/runtime.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { command, refused } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { testEnvironment } from '../support/service.ts'
import { childrenOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0
const sandbox = { profile: 'linux_sandbox' } as const
const STRICT = { policy: { capability_mode: 'strict' } } as const
const why = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
const whyUser = isRoot ? why : ' (skipped: only root can become another user)'

describe.skipIf(missingSandbox !== undefined || !isRoot)(`a service in groups besides its own${whyUser}`, () => {
  const GROUPS = [61_301, 61_302]

  test('warns in each plan of a sandbox that its tasks keep them, and its manifest has the remedy', async () => {
    using dir = tempDir()
    chmodSync(dir.path, 0o755)
    const file = join(dir.path, 'file')
    writeFileSync(file, 'of the group\n', { mode: 0o640 })
    chownSync(file, 0, GROUPS[0]!)
    await using runtime = await startRuntime({
      ...(await asOrdinaryUser(GROUPS)),
      flags: ['--sandbox-expose', dir.path],
    })
    const task = await runtime.runScript(`cat ${file}`, { sandbox, ...STRICT })
    expect(task).toMatchObject({ status: 'success', stdout: 'of the group\n', execution_plan: { degraded: false } })
    const { warnings } = await runtime.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
    for (const texts of [task.execution_plan.capability_warnings, warnings])
      expect(texts).toContainEqual(expect.stringMatching(/its groups 61301, 61302 .*setpriv --clear-groups/))
    expect((await runtime.runScript('true')).execution_plan.capability_warnings).toEqual([])
  })

  test('is told by doctor', async () => {
    const command = [...becoming(GROUPS), await openProgram(), 'doctor']
    const { stdout } = Bun.spawnSync(command, { cwd: '/', env: testEnvironment() })
    expect(stdout.toString()).toMatch(
      /^MISSING {2}linux_sandbox without groups of the service: .*61301, 61302.*\n {9}Start/m,
    )
  })

  test('without them warns of nothing', async () => {
    await using runtime = await startRuntime(await asOrdinaryUser())
    const { execution_plan } = await runtime.runScript('true', { sandbox, ...STRICT })
    expect(execution_plan.capability_warnings).toEqual([])
  })
})

const settings = isRoot ? (['as root', 'as an ordinary user'] as const) : (['as an ordinary user'] as const)

describe.skipIf(missingSandbox !== undefined).each([...settings])(`a service %s${why}`, (who) => {
  const options = async () => (isRoot && who !== 'as root' ? await asOrdinaryUser() : {})

  test('may have its data directory in /dev/shm', async () => {
    using shm = tempDir('/dev/shm')
    const given = await options()
    if (given.ownerUid !== undefined) chownSync(shm.path, given.ownerUid, given.ownerUid)
    await using runtime = await startRuntime({ ...given, dataDir: join(shm.path, 'data') })
    const { task_id, ...task } = await runtime.runScript(
      'pwd; echo x > file && cat file; ls /dev/shm/* /dev/shm/*/data',
      {
        sandbox,
        ...STRICT,
      },
    )
    const workspace = join(shm.path, 'data/tasks', task_id, 'workspace')
    expect(task).toMatchObject({ status: 'success', stderr: '' })
    expect(task.stdout?.split('\n')).toEqual([
      workspace,
      'x',
      `${shm.path}:`,
      'data',
      '',
      `${shm.path}/data:`,
      'tasks',
      '',
    ])
  })

  test('hides what it is told to of /proc', async () => {
    const flags = ['--sandbox-mask', '/proc/cpuinfo', '--sandbox-mask', '/proc/sys/kernel']
    await using runtime = await startRuntime({ ...(await options()), flags })
    const task = await runtime.runScript('cat /proc/cpuinfo; ls /proc/sys/kernel', { sandbox, ...STRICT })
    expect(task).toMatchObject({ status: 'success', stdout: '' })
  })
})

test('what no sandbox can be made with is refused at the start, and by doctor --escape', async () => {
  const many = Array.from({ length: 130 }, (_, i) => `/srv/place-${i}`).join(',')
  using dir = tempDir()
  for (const [value, message] of [
    ['/proc', /^taskmill-runtime: --sandbox-mask \/proc: no sandbox can be made without \/proc .*\n$/],
    [many, /^taskmill-runtime: --sandbox-mask: 1\d\d places, .*at most 128.*\n$/],
  ] as const) {
    for (const command of [
      ['serve', '--data-dir', join(dir.path, 'data')],
      ['doctor', '--escape'],
    ]) {
      const { exitCode, stderr } = await runRuntime([...command, '--sandbox-mask', value])
      expect([command[0], exitCode]).toEqual([command[0], 2])
      expect(stderr).toMatch(message)
    }
  }
})

test('a rootfs that the host will not follow is invalid input, with the reason', async () => {
  using dir = tempDir()
  symlinkSync('loop', join(dir.path, 'loop'))
  await using runtime = await startRuntime()
  for (const [rootfs, reason] of [
    ['/etc/passwd/x', 'a part of its path is no directory'],
    [`/${'x'.repeat(300)}`, 'a name in its path is too long'],
    [join(dir.path, 'loop'), 'its links lead in a circle'],
  ] as const) {
    for (const chroot of [true, false]) {
      const [status, code, message] = await until(
        async () =>
          await refused(await runtime.post({ ...command('/bin/true'), sandbox: { ...sandbox, chroot, rootfs } })),
        ([, , text]) => !text.includes('did not answer'), // on a busy machine the time of a look may run out
      )
      expect([status, code]).toEqual([400, 'invalid_input'])
      expect(message).toStartWith('sandbox.rootfs ')
      expect(message).toEndWith(` cannot be used on this host: ${reason}`)
    }
  }
})

test.skipIf(!isRoot)(`a rootfs behind a directory that the service may not pass, too${whyUser}`, async () => {
  using dir = tempDir() // 0700, of root
  await using runtime = await startRuntime(await asOrdinaryUser())
  const rootfs = join(dir.path, 'root')
  const answer = await runtime.post({ ...command('/bin/true'), sandbox: { ...sandbox, chroot: true, rootfs } })
  const [status, code, message] = await refused(answer)
  expect([status, code]).toEqual([400, 'invalid_input'])
  expect(message).toMatch(/cannot be used on this host: the service may not pass a directory on its path \(let .*\)$/)
})

const whyHost = isRoot ? why : ' (skipped: only root can share mounts)'
const oddHosts = Object.entries(CALLS)

/**
 * The recorded mounts. Without those of other tests, which run at the same time: the end of one takes its mounts out of all
 * namespaces.
 */
const mountsIn = (dir: string, name: string): string[] =>
  readFileSync(join(dir, name), 'utf8')
    .split('\n')
    .filter((line) => line.includes(dir) || !line.includes('/taskmill-'))

describe.skipIf(missingSandbox !== undefined || !isRoot).each(oddHosts)(
  `a service on a host that shares its mounts and whose kernel lacks %s${whyHost}`,
  (_, calls) => {
    test('starts, keeps its data directory, runs and kills tasks, and mounts nothing there', async () => {
      using dir = tempDir()
      const through = [...recordedSharedMounts(dir.path), ...withoutCalls(calls)]
      await using runtime = await startRuntime({ through, dataDir: join(dir.path, 'data') })
      try {
        const execution = { kind: 'command', program: '/bin/sh', args: ['-c', 'echo x > /tmp/x; cat /tmp/x'] }
        for (const root of [{}, { chroot: true, rootfs: '/' }]) {
          const id = await runtime.submit({ execution, sandbox: { ...sandbox, ...root }, ...STRICT })
          expect(await runtime.ended(id)).toMatchObject({ status: 'success', stdout: 'x\n' })
        }
        const id = await runtime.script('echo ready; sleep 600', { sandbox, ...STRICT })
        await runtime.printed(id)
        await runtime.kill(id)
        expect(await runtime.ended(id)).toMatchObject({ status: 'cancelled' })
      } finally {
        for (const service of childrenOf(runtime.process.pid)) process.kill(service, 'SIGTERM')
        await runtime.process.exited
      }
      expect(existsSync(join(dir.path, 'data/runtime.db'))).toBe(true)
      const [before, after] = ['before', 'after'].map((name) => mountsIn(dir.path, name))
      expect(after).toEqual(before!)
    })
  },
)
