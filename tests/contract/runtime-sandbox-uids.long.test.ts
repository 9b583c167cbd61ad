/**
 * Each sandbox of a root service has a user of its own, which no other sandbox has while it runs.
 * Source: contract 0, --sandbox-uids; architecture 4.
 */
import { expect, test } from 'bun:test'
import { closeSync, existsSync, lstatSync, openSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readText } from '../../runtime/host/read-text.ts'
import { uidsOfProcesses } from '../../runtime/host/sandbox-uids.ts'
import { openDatabase } from '../../runtime/store/database.ts'
import { tryLock } from '../../shared/files/directory-lock.ts'
import { bootId } from '../../shared/process/processes.ts'
import { ownUid } from '../support/ordinary-user.ts'
import { writeRefusal } from '../support/refused-launch.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0
const why = isRoot ? (missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`) : ' (skipped: needs root)'
const skip = !isRoot || missingSandbox !== undefined
const sandbox = { profile: 'linux_sandbox' } as const

const FIRST = 65_600
const LAST = 69_695
const UNTIL_TOLD = 'id -u; until [ -e go ]; do sleep 0.02; done'

const workspaceOf = async (runtime: Runtime, id: string) =>
  join((await runtime.get(id)).artifacts.task_dir, 'workspace')
const tell = async (runtime: Runtime, id: string) => writeFileSync(join(await workspaceOf(runtime, id), 'go'), '')
const uidOf = async (runtime: Runtime, id: string) => Number((await runtime.printed(id)).stdout)

test.skipIf(skip)(
  `tasks that share the view and the processes of the host cannot touch another sandbox${why}`,
  async () => {
    await using runtime = await startRuntime()
    const victim = await runtime.submit({
      execution: { kind: 'script', script: UNTIL_TOLD, env: { PASSWORD: 'hunter2' } },
      sandbox,
    })
    const uid = await uidOf(runtime, victim)
    const { pid } = await runtime.get(victim)
    const attack = `
    cat /proc/${pid}/environ; ls /proc/${pid}/cwd/; echo x > /proc/${pid}/cwd/forged; echo forged > /proc/${pid}/fd/1
    dd if=/proc/${pid}/mem bs=1 count=1 skip=4194304; nsenter -t ${pid} -U true; kill -KILL ${pid}; id -u`
    for (const namespaces of [
      { mount: false, user: false },
      { pid: false },
      { mount: false, pid: false, user: false },
    ]) {
      const task = await runtime.runScript(attack, { sandbox: { ...sandbox, namespaces } })
      const own = Number(task.stdout)
      expect([own >= FIRST && own <= LAST, own === uid]).toEqual([true, false])
    }
    expect((await runtime.get(victim)).status).toBe('running')
    await tell(runtime, victim)
    expect(await runtime.ended(victim)).toMatchObject({ status: 'success', stdout: `${uid}\n` })
  },
)

test.skipIf(skip)(`a user comes back once nothing bears it: files, IPC objects, files of the host${why}`, async () => {
  const UID = ownUid(71_000)
  await using runtime = await startRuntime({ flags: ['--sandbox-uid', String(UID)] })
  const shared = `/var/tmp/taskmill-${crypto.randomUUID()}`
  const { artifacts, status } = await runtime.runScript(
    `umask 0; mkdir -p a/b; echo x > a/b/file; ln -s file a/link; mkfifo a/fifo; chmod 4755 a/b/file
     mkdir ${shared}; perl -e 'defined shmget(0, 4096, 01666) or die $!; defined msgget(0, 01666) or die; defined semget(0, 1, 01666) or die'`,
    { sandbox: { ...sandbox, namespaces: { mount: false, ipc: false } } },
  )
  expect(status).toBe('success')
  const left = ['', 'a', 'a/b', 'a/b/file', 'a/link', 'a/fifo'].map((name) =>
    lstatSync(join(artifacts.task_dir, 'workspace', name)),
  )
  expect(left.map(({ uid, gid }) => [uid, gid])).toEqual(left.map(() => [0, 0]))
  expect(left[3]!.mode & 0o7777).toBe(0o755)
  expect(existsSync(shared)).toBe(false)
  for (const kind of ['shm', 'msg', 'sem']) expect(readText(`/proc/sysvipc/${kind}`)).not.toContain(String(UID))
  expect((await runtime.runScript('id -u', { sandbox })).stdout).toBe(`${UID}\n`)
})

test.skipIf(skip)(`no result is lost when the service is killed while it takes files back${why}`, async () => {
  using data = tempDir()
  const dataDir = join(data.path, 'data')
  const FILES = 20_000
  const first = await startRuntime({ dataDir })
  const task = await first.script(`mkdir sub; seq ${FILES} | xargs touch; cd sub; seq ${FILES} | xargs touch`, {
    sandbox,
  })
  const workspace = await workspaceOf(first, task)
  const ownerOf = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.uid
  await until(
    () => ownerOf(join(workspace, 'sub', '1')),
    (uid) => uid !== undefined,
  )
  await until(() => ownerOf(workspace), 0)
  await first.stop('SIGKILL')
  await first.dispose()
  await using second = await startRuntime({ dataDir })
  expect((await second.ended(task)).status).toBe('success')
  const left = readdirSync(workspace, { recursive: true, encoding: 'utf8' })
  expect(left).toHaveLength(2 * FILES + 1)
  expect(left.filter((name) => ownerOf(join(workspace, name)) !== 0)).toEqual([])
})

test.skipIf(skip)(`one user: sandboxes run one at a time, other tasks beside them${why}`, async () => {
  const UID = ownUid(76_000)
  await using runtime = await startRuntime({ flags: ['--sandbox-uid', String(UID)] })
  const first = await runtime.script(UNTIL_TOLD, { sandbox })
  expect(await uidOf(runtime, first)).toBe(UID)
  const second = await runtime.script('id -u', { sandbox })
  expect((await runtime.run({ ...command('/bin/true') })).status).toBe('success')
  expect(await runtime.get(second)).toMatchObject({ status: 'accepted', waiting_for: { resource: 'sandbox_uid' } })
  await tell(runtime, first)
  expect(await runtime.ended(second)).toMatchObject({ status: 'success', stdout: `${UID}\n` })
})

test.skipIf(skip)(
  `two services of one host never have a user in common, also while one of them is away${why}`,
  async () => {
    using data = tempDir()
    const dataDir = join(data.path, 'data')
    const uids = [ownUid(81_000), ownUid(81_000) + 1] as const
    const flags = ['--sandbox-uids', uids.join('-')]
    const first = await startRuntime({ dataDir, flags })
    const running = await first.script(`${UNTIL_TOLD}; id -u`, { sandbox })
    const uid = await uidOf(first, running)
    await first.stop()
    await first.dispose()
    await using other = await startRuntime({ flags })
    const others = await Promise.all([1, 2].map(() => other.runScript('id -u', { sandbox })))
    for (const { stdout } of others) expect(stdout).toBe(`${uid === uids[0] ? uids[1] : uids[0]}\n`)
    await using second = await startRuntime({ dataDir, flags })
    const next = await second.script('id -u', { sandbox })
    expect((await second.get(next)).status).toBe('accepted')
    await tell(second, running)
    expect(await second.ended(running)).toMatchObject({ status: 'success', stdout: `${uid}\n${uid}\n` })
    expect(await second.ended(next)).toMatchObject({ status: 'success', stdout: `${uid}\n` })
  },
)

test.skipIf(skip)(`a user that a process of the host has is waited for, and the status says so${why}`, async () => {
  const UID = ownUid(86_000)
  const foreign = Bun.spawn(['setpriv', `--reuid=${UID}`, '--clear-groups', 'sleep', '1000'])
  await until(uidsOfProcesses, (uids) => uids.has(UID))
  await using runtime = await startRuntime({ flags: ['--sandbox-uid', String(UID)] })
  const task = await runtime.script('id -u', { sandbox })
  expect(await runtime.get(task)).toMatchObject({ status: 'accepted', waiting_for: { resource: 'sandbox_uid' } })
  foreign.kill('SIGKILL')
  expect(await runtime.ended(task)).toMatchObject({ status: 'success', stdout: `${UID}\n` })
})

test.skipIf(skip).each(['held', 'refused'] as const)(
  `a launch of a service that gave sandboxes no users, and that was %s, waits for one${why}`,
  async (how) => {
    const UID = ownUid(91_000)
    using data = tempDir()
    const options = { dataDir: join(data.path, 'data'), flags: ['--sandbox-uid', String(UID)] }
    const before = await startRuntime(options)
    const first = await before.script(UNTIL_TOLD, { sandbox })
    await before.printed(first)
    const second = await before.script('id -u', { sandbox })
    const { task_dir } = (await before.get(second)).artifacts
    await before.stop()
    await before.dispose()
    using db = openDatabase(options.dataDir)
    db.run(`update tasks set launch_boot_id = ?, reserved_at = created_at where task_id = ?`, [bootId(), second])
    const launcher = openSync(task_dir, 'r')
    if (how === 'held') expect(tryLock(launcher)).toBe(true)
    else writeRefusal(task_dir)
    await using after = await startRuntime(options)
    closeSync(launcher)
    await until(
      () => after.get(second),
      ({ waiting_for }) => waiting_for?.resource === 'sandbox_uid',
    )
    await tell(after, first)
    expect(await after.ended(second)).toMatchObject({ status: 'success', stdout: `${UID}\n` })
  },
)
