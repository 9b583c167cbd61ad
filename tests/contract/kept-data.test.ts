/**
 * Data of every earlier version load, for ever: `tests/data/<version>/` was written by that version
 * (`tests/support/keep-data.ts`). And data of a later version are refused in one line, and left as they are.
 */
import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DATA_FORMAT } from '../../control/log/data-format.ts'
import { builtProgram } from '../../scripts/build.ts'
import { startControl } from '../support/control.ts'
import { KEPT_DATA, type KeptData, runtimeStatuses, settled, statusesOf } from '../support/keep-data.ts'
import { startRuntime } from '../support/runtime.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const versions = readdirSync(KEPT_DATA).filter((name) => existsSync(join(KEPT_DATA, name, 'kept.json')))

test('there are data of a version', () => {
  expect(versions.length).toBeGreaterThan(0)
})

describe.each(versions)('data of %s', (version) => {
  const kept = JSON.parse(readFileSync(join(KEPT_DATA, version, 'kept.json'), 'utf8')) as KeptData

  test('load in the control service, go on, and load again', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'control')
    cpSync(join(KEPT_DATA, version, 'control'), dataDir, { recursive: true })
    for (const run of ['first', 'second']) {
      await using control = await startControl({ dataDir, flags: ['--retention', '0'] })
      const statuses = await settled(control)
      if (run === 'first') expect(statuses).toEqual(kept.statuses as Record<string, string>)
      const old = await control.fetch(`/graphs/${kept.graph_id}`)
      expect([old.status, ((await old.json()) as { state: string }).state]).toEqual([200, 'success'])
      const graphs = (await (await control.fetch('/graphs?name=large')).json()) as { graph_id: string }[]
      const large = await control.fetch(`/graphs/${graphs[0]!.graph_id}/tasks/large`)
      expect(((await large.json()) as { result: { stdout: string } }).result.stdout.length).toBeGreaterThan(100_000)
      if (run === 'first') {
        const [asked] = (await (await control.fetch('/graphs?name=asked')).json()) as { graph_id: string }[]
        const answer = JSON.stringify({ who: 'ada' })
        const path = `/graphs/${asked!.graph_id}/tasks/sure/approve`
        await until(() => control.fetch(path, { method: 'POST', body: answer }).then(({ status }) => status), 200)
      }
      await until(
        () => statusesOf(control),
        (seen) => seen['asked/sure'] === 'success' && seen['asked/after'] === 'success',
      )
      expect(await control.stop()).toBe(0)
    }
  })

  test('load in the runtime service, with the output of their tasks', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'runtime')
    cpSync(join(KEPT_DATA, version, 'runtime'), dataDir, { recursive: true })
    await using runtime = await startRuntime({ dataDir, flags: ['--result-retention-secs', '0'] })
    expect(await runtimeStatuses(runtime.url)).toEqual(kept.runtime_tasks as Record<string, string>)
    const { tasks } = (await (await fetch(`${runtime.url}/api/v1/tasks`)).json()) as { tasks: { task_id: string }[] }
    const script = tasks.find(({ task_id }) => task_id.startsWith('script-'))!
    const log = await fetch(`${runtime.url}/api/v1/tasks/${script.task_id}/logs?stream=stdout`)
    expect(await log.text()).toBe('hello\n')
  })
})

/** Starts a service that is to refuse: its exit code and what it said. */
async function refusal(program: 'taskmill-control' | 'taskmill-runtime', args: readonly string[]) {
  const child = Bun.spawn([await builtProgram(program), ...args], {
    env: testEnvironment(),
    ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

describe('data of a newer version are refused in one line', () => {
  test('by the control service', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'format.json'), JSON.stringify({ format: DATA_FORMAT + 1, written_by: '9.9.9' }))
    writeFileSync(join(dir.path, 'state.json'), 'in a new form')
    const { exitCode, stdout, stderr } = await refusal('taskmill-control', [
      ...['--addr', '127.0.0.1:0', '--data-dir', dir.path],
    ])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toBe(
      `taskmill-control: the data directory ${dir.path} was written by a newer taskmill-control (9.9.9, its format is ${DATA_FORMAT + 1}, this one knows ${DATA_FORMAT}): use that one, or choose another directory with --data-dir\n`,
    )
    expect(readFileSync(join(dir.path, 'state.json'), 'utf8')).toBe('in a new form')
  })

  test('by the runtime service', async () => {
    using dir = tempDir()
    mkdirSync(join(dir.path, 'data'))
    using db = new Database(join(dir.path, 'data', 'runtime.db'))
    db.run('pragma user_version = 999')
    const { exitCode, stdout, stderr } = await refusal('taskmill-runtime', [
      ...['serve', '--listen-addr', '127.0.0.1:0', '--data-dir', join(dir.path, 'data')],
    ])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(
      /^taskmill-runtime: the database \S+ was written by a newer taskmill-runtime \(its schema is 999, this one knows \d+\): use that one, or choose another directory with --data-dir\n$/,
    )
    expect(db.query('pragma user_version').get()).toEqual({ user_version: 999 })
  })
})
