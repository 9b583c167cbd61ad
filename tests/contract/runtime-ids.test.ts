/** Task ids of the runtime: which are allowed, and that no two tasks have the same. Source: spec, SubmitTaskRequest; contract 2 and 5. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, SLEEP, script } from '../support/runtime-tasks.ts'

const TRUE = command('/bin/true')

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime()
})
afterAll(() => runtime.dispose())

describe('task_id: only letters, digits, -, _ and ., 1 to 128 characters, not . or ..', () => {
  test.each(['-rf', '...', 'Ab-9_z.x', 'x'.repeat(128), '__proto__'])('allowed: %s', async (task_id) => {
    expect(await runtime.submit({ task_id, ...TRUE })).toBe(task_id)
    const task = await runtime.ended(task_id)
    expect(task).toMatchObject({ task_id, handle_id: task_id, status: 'success' })
    expect(task.artifacts.task_dir).toBe(join(runtime.dataDir, 'tasks', task_id))
  })

  test.each(['..', 'x'.repeat(129), 'a/b', 7])('refused: %j', async (task_id) => {
    const before = readdirSync(join(runtime.dataDir, 'tasks'))
    const [status, code] = await refused(await runtime.post({ task_id, ...TRUE }))
    expect([status, code]).toEqual([400, 'invalid_input'])
    expect(readdirSync(join(runtime.dataDir, 'tasks'))).toEqual(before)
  })

  test('case counts', async () => {
    await runtime.submit({ task_id: 'CASE', ...script('echo upper') })
    await runtime.submit({ task_id: 'case', ...script('echo lower') })
    expect((await runtime.ended('CASE')).stdout).toBe('upper\n')
    expect((await runtime.ended('case')).stdout).toBe('lower\n')
  })
})

describe('conflict: a custom task_id already exists', () => {
  test('409 `task <id> already exists`, for a task that runs and for one that has ended; both stay as they are', async () => {
    for (const [task_id, first] of [
      ['running-one', SLEEP],
      ['ended-one', script('echo first')],
    ] as const) {
      await runtime.submit({ task_id, ...first, metadata: { from: 'first' } })
      if (task_id === 'ended-one') await runtime.ended(task_id)
      const answer = await refused(await runtime.post({ task_id, ...script('echo second') }))
      expect(answer).toEqual([409, 'conflict', `task ${task_id} already exists`])
      expect((await runtime.get(task_id)).metadata).toEqual({ from: 'first' })
      const { artifacts } = await runtime.get(task_id)
      expect(JSON.parse(readFileSync(artifacts.request_path, 'utf8'))).toMatchObject(first)
    }
    expect((await runtime.get('ended-one')).stdout).toBe('first\n')
    expect((await runtime.kill('running-one')).status).toBe(200)
    expect((await runtime.ended('running-one')).status).toBe('cancelled')
  })

  test('of many that race for an id one is accepted and runs, the others are 409', async () => {
    for (let round = 0; round < 5; round++) {
      const task_id = `race-${round}`
      const mark = join(runtime.dataDir, `mark-${round}`)
      const body = (i: number) => ({
        task_id,
        ...script(`echo ${i} >> ${mark}; echo ${i}`),
        metadata: { i: String(i) },
      })
      const answers = await Promise.all(
        Array.from({ length: 12 }, async (_, i) => ({ i, response: await runtime.post(body(i)) })),
      )
      const accepted = answers.filter(({ response }) => response.status === 200)
      expect(accepted.length).toBe(1)
      for (const { response } of answers) {
        if (response.status === 200) continue
        expect(await refused(response)).toEqual([409, 'conflict', `task ${task_id} already exists`])
      }
      const winner = String(accepted[0]!.i)
      expect(await runtime.ended(task_id)).toMatchObject({ stdout: `${winner}\n`, metadata: { i: winner } })
      expect(readFileSync(mark, 'utf8')).toBe(`${winner}\n`)
      expect(await runtime.eventTypes(task_id)).toEqual([...new Set(await runtime.eventTypes(task_id))])
    }
  })

  test('an id that was refused before is free', async () => {
    expect((await runtime.post({ task_id: 'again', execution: { kind: 'command' } })).status).toBe(400)
    expect(existsSync(join(runtime.dataDir, 'tasks', 'again'))).toBe(false)
    await runtime.submit({ task_id: 'again', ...TRUE })
    expect((await runtime.ended('again')).status).toBe('success')
  })
})

describe('the id in a path is never a way out of the tasks', () => {
  test.each(['..%2f..', '%2e%2e', '..%2Fruntime.db', 'a%2Fb', '%00', '%ff', '..%5C..', 'x'.repeat(2000)])(
    '%s',
    async (id) => {
      for (const suffix of ['', '/events', '/logs', '/logs?stream=stdout']) {
        const response = await runtime.fetch(`/api/v1/tasks/${id}${suffix}`)
        expect([400, 404]).toContain(response.status)
        await refused(response)
      }
    },
  )
})
