/**
 * The logs of a task belong to the service: what a task does to them keeps no answer of the service from its callers.
 * Source: architecture 3, stdout and stderr.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { readText } from '../../runtime/host/read-text.ts'
import { asOrdinaryUser } from '../support/ordinary-user.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0
const isLinux = process.platform === 'linux'
const why = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
const logs = (id: string, stream = 'stdout') => `/api/v1/tasks/${id}/logs?stream=${stream}`

/** F_SETLEASE is 1024, F_WRLCK is 1. Without the handler the signal of a broken lease would end the holder. */
const LEASE = `$SIG{IO} = "IGNORE"; for (STDOUT, STDERR) { push @got, fcntl($_, 1024, 1) ? "leased" : "refused" }`

const owners: readonly (readonly [string, string, Parameters<typeof startRuntime>[0]])[] = [
  ...(isRoot && missingSandbox === undefined ? ([['linux_sandbox as root', 'linux_sandbox', {}]] as const) : []),
  ['process', 'process', {}],
  ...(missingSandbox === undefined
    ? ([['linux_sandbox as an ordinary user', 'linux_sandbox', isRoot ? await asOrdinaryUser() : {}]] as const)
    : []),
]

describe.skipIf(!isLinux).each([...owners])(`a task of %s${why}`, (name, profile, options) => {
  const more = { sandbox: { profile } }
  let runtime: Runtime
  beforeAll(async () => {
    runtime = await startRuntime(options)
  })
  afterAll(() => runtime?.dispose())

  test('takes no lease on its logs, and status, logs and kill answer', async () => {
    const script = `exec perl -e '${LEASE} open F, ">", "leases"; print F "@got\\n"; close F; sleep 1 while 1'`
    const id = await runtime.script(script, more)
    const { artifacts } = await runtime.get(id)
    const leases = await until(
      () => readText(join(artifacts.task_dir, 'workspace/leases')) ?? '',
      (text) => text.endsWith('\n'),
    )
    expect(leases).toBe('refused refused\n')
    const statuses = await Promise.all(
      [`/api/v1/tasks/${id}`, logs(id), logs(id, 'stderr'), `${logs(id)}&tail=1`].map(async (path) => {
        const { status } = await runtime.fetch(path)
        return status
      }),
    )
    expect(statuses).toEqual([200, 200, 200, 200])
    expect((await runtime.kill(id)).status).toBe(200)
    expect(await runtime.ended(id)).toMatchObject({ status: 'cancelled' })
  })

  test('opens its standard output again by each of its names, to write and to read', async () => {
    const script = 'echo a; echo b >> /dev/stdout; echo c > /proc/self/fd/1; cat /dev/stdout >&2; echo d > /dev/stderr'
    const { status, stdout, stderr } = await runtime.runScript(script, more)
    // Opening with > truncates, as it does for every file.
    expect([status, stdout, stderr]).toEqual(['success', 'c\n', 'd\n'])
  })

  // Without root the task and the service are one user.
  if (name === 'linux_sandbox as root')
    test('does not change the rights of its logs', async () => {
      const { stdout, stderr } = await runtime.runScript('chmod 0 /dev/stdout || echo refused', more)
      expect(stdout).toBe('refused\n')
      expect(stderr).toContain('Operation not permitted')
    })
})

describe.skipIf(!isLinux)('a task of the service user', () => {
  let runtime: Runtime
  beforeAll(async () => {
    runtime = await startRuntime()
  })
  afterAll(() => runtime?.dispose())

  test('that leases the log of another: the status says that there is more, the log is refused with 503', async () => {
    const first = await runtime.runScript('echo seen')
    const lease = `open F, "+<", "${first.artifacts.stdout_path}" or die; $SIG{IO} = "IGNORE"`
    const holder = await runtime.script(
      `exec perl -e '${lease}; $| = 1; print fcntl(F, 1024, 1) ? "leased\\n" : "$!\\n"; sleep 1 while 1'`,
    )
    expect((await runtime.printed(holder)).stdout).toBe('leased\n')
    expect(await runtime.get(first.task_id)).toMatchObject({ stdout: '', stdout_truncated: true })
    for (const path of [logs(first.task_id), `${logs(first.task_id)}&tail=1`]) {
      const answer = await runtime.fetch(path)
      expect(answer.status).toBe(503)
      expect(JSON.stringify(await answer.json())).toContain('another process holds a lease')
    }
    await runtime.kill(holder)
    await runtime.ended(holder)
    expect(await (await runtime.fetch(logs(first.task_id))).text()).toBe('seen\n')
  })

  test('that writes to the log of an ended task changes nothing of what is served', async () => {
    const first = await runtime.runScript('echo own; echo own >&2')
    const { stdout_path, stderr_path } = first.artifacts
    await runtime.runScript(`echo foreign >> ${stdout_path}; echo foreign >> ${stderr_path}`)
    expect(await runtime.get(first.task_id)).toMatchObject({ stdout: 'own\n', stderr: 'own\n' })
    for (const query of ['', '&tail=5', '&follow=true', '&offset=1&limit=90']) {
      const text = await (await runtime.fetch(`${logs(first.task_id)}${query}`)).text()
      expect(text).toBe(query.includes('offset') ? 'wn\n' : 'own\n')
    }
  })
})
