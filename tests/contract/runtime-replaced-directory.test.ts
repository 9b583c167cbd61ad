/**
 * A data directory that is moved, or replaced, under a runtime service: nothing is promised that no restart would find.
 * Source: docs/runtime.md, Submitting a task (200 once it is on disk); contract 4 (one service for each data directory).
 */
import { describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startRuntime } from '../support/runtime.ts'
import { refused, SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

function place() {
  const dir = tempDir()
  const processes = endProcessesOf(dir.path)
  const dataDir = join(dir.path, 'data')
  const aside = join(dir.path, 'aside')
  const copy = join(dir.path, 'copy')
  return {
    dataDir,
    aside,
    file: (name: string) => join(dir.path, name),
    replace: {
      nothing: () => renameSync(dataDir, aside),
      'an empty directory': () => {
        renameSync(dataDir, aside)
        mkdirSync(dataDir, { mode: 0o700 })
      },
      'a directory with tasks/ alone': () => {
        renameSync(dataDir, aside)
        mkdirSync(join(dataDir, 'tasks'), { recursive: true, mode: 0o700 })
      },
      'a copy': () => {
        cpSync(dataDir, copy, { recursive: true, filter: (path) => !path.endsWith('launchers') })
        renameSync(dataDir, aside)
        renameSync(copy, dataDir)
      },
    },
    [Symbol.asyncDispose]: async () => {
      await processes[Symbol.asyncDispose]()
      dir[Symbol.dispose]()
    },
  }
}

type Replacement = keyof ReturnType<typeof place>['replace']
const REPLACEMENTS: Replacement[] = ['nothing', 'an empty directory', 'a directory with tasks/ alone', 'a copy']

const filesBelow = (path: string) => (existsSync(path) ? readdirSync(path, { recursive: true }).toSorted() : [])

describe.each(REPLACEMENTS)('a data directory with %s in its place', (replacement) => {
  test('is 503 with the remedy, gets no file, and has running tasks go on', async () => {
    await using at = place()
    let id: string
    {
      await using runtime = await startRuntime({ dataDir: at.dataDir, flags: ['--dispatch-poll-interval-ms', '10'] })
      id = await runtime.script(`${waitFor(at.file('go'))}; : > ${at.file('went')}; exit 7`)
      await runtime.reached(id, 'running')
      expect((await runtime.fetch('/readyz')).status).toBe(200)
      at.replace[replacement]()
      const found = filesBelow(at.dataDir)
      // The service may look while the old directory is gone and the new one is not there yet.
      const how = replacement === 'nothing' ? 'deleted or moved' : '(deleted or moved|replaced by another one)'
      const message = new RegExp(
        `^the data directory ${at.dataDir} \\(--data-dir\\) was ${how} while the service ran: restart the service$`,
      )
      const answer = [503, 'unavailable', expect.stringMatching(message)]
      const ran = at.file('ran')
      expect(await refused(await runtime.post({ task_id: 'x', ...script(`: > ${ran}`) }))).toEqual(answer as never)
      expect(await refused(await runtime.fetch('/readyz'))).toEqual(answer as never)
      expect(await refused(await runtime.kill(id))).toEqual(answer as never)
      expect((await runtime.fetch('/healthz')).status).toBe(200)
      expect((await runtime.fetch('/api/v1/tasks/x')).status).toBe(404)
      await Bun.write(at.file('go'), '')
      await until(() => existsSync(at.file('went')))
      expect(filesBelow(at.dataDir)).toEqual(found)
      expect(existsSync(ran)).toBe(false)
      expect((await runtime.get(id)).status).toBe('running') // the next service knows how it ended
      expect(await runtime.stop('SIGTERM')).toBe(0)
    }
    rmSync(at.dataDir, { recursive: true, force: true })
    renameSync(at.aside, at.dataDir)
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    expect(await runtime.ended(id)).toMatchObject({ status: 'failed', exit_code: 7 })
    expect((await runtime.fetch('/api/v1/tasks/x')).status).toBe(404)
    expect((await runtime.fetch('/readyz')).status).toBe(200)
  })
})

test('a task that waits is not launched in the directory of another service', async () => {
  await using at = place()
  await using first = await startRuntime({ dataDir: at.dataDir, flags: ['--max-running-tasks', '1'] })
  await first.script(waitFor(at.file('go')))
  const waiting = await first.script(`: > ${at.file('ran')}`)
  at.replace['an empty directory']()
  {
    await using second = await startRuntime({ dataDir: at.dataDir })
    await Bun.write(at.file('go'), '')
    expect((await refused(await first.post(SLEEP))).slice(0, 2)).toEqual([503, 'unavailable'])
    expect(await second.runScript('echo mine')).toMatchObject({ status: 'success', stdout: 'mine\n' })
    expect((await first.get(waiting)).status).toBe('accepted')
    const tasks = readdirSync(join(at.dataDir, 'tasks')).filter((name) => !name.startsWith('+'))
    expect(tasks).toHaveLength(1)
  }
  expect(existsSync(at.file('ran'))).toBe(false)
  await first.stop('SIGKILL')
})
