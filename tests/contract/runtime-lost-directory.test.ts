/**
 * A task of the profile `process` can close its directory, or put something else in its place. That costs the task its
 * outcome at most: the service starts again, goes on, and nothing of the task is left.
 * Source: spec, Events; contract 2 (last item).
 */
import { describe, expect, test } from 'bun:test'
import { chownSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { endProcessesOf, noProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const NOBODY = 65_534
const asNobody = {
  through: ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'],
}
const canBeNobody = process.getuid?.() === 0

/** A data directory for services one after the other, which any user may have; what tasks leave is ended. */
function place() {
  const dir = tempDir()
  if (canBeNobody) chownSync(dir.path, NOBODY, NOBODY)
  const processes = endProcessesOf(dir.path)
  return {
    dataDir: join(dir.path, 'data'),
    file: (name: string) => join(dir.path, name),
    [Symbol.asyncDispose]: async () => {
      await processes[Symbol.asyncDispose]()
      dir[Symbol.dispose]()
    },
  }
}

const isThere = (path: string) => until(() => existsSync(path))

/** Waits for `go`, does it, says so. */
const spoiling = (at: ReturnType<typeof place>, text: string) =>
  `echo on; ${waitFor(at.file('go'))}; ${text}; : > ${at.file('done')}; exec sleep 600`

const WAYS = [
  ['a file in its place', 'cd ../..; mv x y; : > x'],
  ['a link to itself in its place', 'cd ../..; mv x y; ln -s x x'],
  ['nothing in its place', 'cd ../..; mv x y'],
] as const

describe.each(WAYS)('a task that leaves %s', (_, text) => {
  test('before a restart has failed after it', async () => {
    await using at = place()
    {
      await using runtime = await startRuntime(at)
      await runtime.script(spoiling(at, text), { task_id: 'x' })
      await runtime.printed('x')
      await Bun.write(at.file('go'), '')
      await isThere(at.file('done'))
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime(at)
    expect(await runtime.ended('x')).toMatchObject({ status: 'failed', error: { code: 'internal' } })
    expect(await noProcessesOf(join(at.dataDir, 'tasks'))).toEqual([])
    expect(await runtime.runScript('echo fine')).toMatchObject({ status: 'success', stdout: 'fine\n' })
  })

  test('after a restart fails, and the service goes on', async () => {
    await using at = place()
    {
      await using runtime = await startRuntime(at)
      await runtime.script(spoiling(at, text), { task_id: 'x' })
      await runtime.printed('x')
      await runtime.reached('x', 'running')
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime(at)
    await Bun.write(at.file('go'), '')
    expect(await runtime.ended('x')).toMatchObject({ status: 'failed', error: { code: 'internal' } })
    expect(await noProcessesOf(join(at.dataDir, 'tasks'))).toEqual([])
    expect(await runtime.runScript('echo fine')).toMatchObject({ status: 'success', stdout: 'fine\n' })
  })
})

describe.skipIf(!canBeNobody)('a task of a service that is not root (needs root, to become another user)', () => {
  test.each([
    ['its own directory', 'chmod 000 ..'],
    ['the directory of all tasks', 'chmod 000 ../..'],
  ])('that closes %s runs on over a restart, and ends as it ends', async (_, text) => {
    await using at = place()
    {
      await using runtime = await startRuntime({ ...at, ...asNobody })
      await runtime.script(
        `echo on; ${text}; : > ${at.file('done')}; until test -e ${at.file('end')}; do sleep 0.02; done; exit 7`,
        { task_id: 'x' },
      )
      await isThere(at.file('done'))
      await runtime.reached('x', 'running')
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime({ ...at, ...asNobody })
    expect((await runtime.get('x')).status).toBe('running')
    await Bun.write(at.file('end'), '')
    expect(await runtime.ended('x')).toMatchObject({ status: 'failed', exit_code: 7, stdout: 'on\n' })
  })

  test.each([
    ['its log', 'chmod 000 ../stdout.log'],
    ['its log, and its directory', 'chmod 000 ../stdout.log ..'],
  ])('that closes %s has its output shown', async (_, text) => {
    await using at = place()
    await using runtime = await startRuntime({ ...at, ...asNobody })
    const task = await runtime.runScript(`echo on; ${text}`)
    const logs = await (await runtime.fetch(`/api/v1/tasks/${task.task_id}/logs?stream=stdout`)).text()
    expect([task.stdout, logs]).toEqual(['on\n', 'on\n'])
  })
})
