/** GET /api/v1/tasks: filters, limit and cursor. Source: contract 2 (Ours) and 5, Runtime. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TaskListResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, SLEEP, script } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'

const ofTenant = (tenant: string) => ({ control_context: { tenant } })

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-running-tasks', '1', '--max-queued-tasks', '100'] })
  for (const [id, body] of Object.entries({
    'ok-1': { ...command('/bin/true'), ...ofTenant('a'), metadata: { n: '1' } },
    'ok-2': { ...command('/bin/true'), ...ofTenant('b') },
    'ok-3': command('/bin/true'),
    'bad-1': { ...command('/bin/false'), ...ofTenant('a') },
  })) {
    await runtime.submit({ task_id: id, ...body })
    await runtime.ended(id)
  }
  await runtime.submit({ task_id: 'run-1', ...SLEEP, ...ofTenant('a') })
  await runtime.reached('run-1', 'running')
  for (const id of ['wait-1', 'wait-2', 'gone-1']) await runtime.submit({ task_id: id, ...SLEEP, ...ofTenant('b') })
  await runtime.kill('gone-1')
  await runtime.ended('gone-1')
})
afterAll(() => runtime.dispose())

const list = (query = '', service = runtime) => service.json<TaskListResponse>(`/api/v1/tasks${query}`)
const idsOf = ({ tasks }: TaskListResponse) => tasks.map(({ task_id }) => task_id).toSorted()

/** Reads all pages. Every page but the last has exactly `limit` tasks or fewer, and a cursor. */
async function pages(query: string, service = runtime): Promise<string[][]> {
  const found: string[][] = []
  for (let cursor: string | undefined; ; ) {
    const page = await list(`${query}${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`, service)
    found.push(page.tasks.map(({ task_id }) => task_id))
    if (page.next_cursor === undefined) return found
    expect(page.next_cursor).not.toBe('')
    cursor = page.next_cursor
  }
}

const ALL = ['bad-1', 'gone-1', 'ok-1', 'ok-2', 'ok-3', 'run-1', 'wait-1', 'wait-2']

test('answers { tasks, next_cursor? } with all tasks, each with its status', async () => {
  const answer = await list()
  expect(Object.keys(answer)).toEqual(['tasks'])
  expect(idsOf(answer)).toEqual(ALL)
  for (const task of answer.tasks) {
    const { status, created_at, metadata } = await runtime.get(task.task_id)
    expect(task).toMatchObject({ status, created_at, metadata })
  }
})

describe('filters', () => {
  test.each([
    ['success', ['ok-1', 'ok-2', 'ok-3']],
    ['failed', ['bad-1']],
    ['running', ['run-1']],
    ['accepted', ['wait-1', 'wait-2']],
    ['cancelled', ['gone-1']],
  ])('status=%s', async (status, ids) => {
    expect(idsOf(await list(`?status=${status}`))).toEqual(ids)
  })

  test.each([
    ['a', ['bad-1', 'ok-1', 'run-1']],
    ['b', ['gone-1', 'ok-2', 'wait-1', 'wait-2']],
    ["a' or 1=1 --", []],
  ])('tenant=%s', async (tenant, ids) => {
    expect(idsOf(await list(`?tenant=${encodeURIComponent(tenant)}`))).toEqual(ids)
  })

  test('both', async () => {
    expect(idsOf(await list('?tenant=a&status=success'))).toEqual(['ok-1'])
    expect(idsOf(await list('?tenant=b&status=accepted&limit=1'))).toHaveLength(1)
  })
})

describe('limit and cursor', () => {
  test.each([1, 3, 8])('pages of %d give every task once', async (limit) => {
    const found = await pages(`?limit=${limit}`)
    for (const page of found) expect(page.length).toBeLessThanOrEqual(limit)
    expect(found.flat().toSorted()).toEqual(ALL)
  })

  test('go together with filters', async () => {
    expect((await pages('?status=success&limit=1')).flat().toSorted()).toEqual(['ok-1', 'ok-2', 'ok-3'])
    expect((await pages('?tenant=b&limit=3')).flat().toSorted()).toEqual(['gone-1', 'ok-2', 'wait-1', 'wait-2'])
  })

  test('give every task once although tasks are submitted in between', async () => {
    await using other = await startRuntime()
    const ids = await Promise.all(
      Array.from({ length: 30 }, (_, i) => other.submit({ task_id: `t-${i}`, ...script('true') })),
    )
    const found: string[] = []
    for (let cursor = '', i = 0; ; i++) {
      const page = await list(`?limit=7${cursor}`, other)
      found.push(...page.tasks.map(({ task_id }) => task_id))
      if (page.next_cursor === undefined) break
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
      await other.submit({ task_id: `between-${i}`, ...script('true') })
    }
    expect(new Set(found).size).toBe(found.length)
    for (const id of ids) expect(found).toContain(id)
  })

  test('the cursor goes on after a restart', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    let first: TaskListResponse
    {
      await using before = await startRuntime({ dataDir })
      for (let i = 0; i < 5; i++) await before.run({ task_id: `t-${i}`, ...script('true') })
      first = await list('?limit=2', before)
      await before.stop()
    }
    await using after = await startRuntime({ dataDir })
    const rest = await list(`?limit=10&cursor=${encodeURIComponent(first.next_cursor!)}`, after)
    expect([...idsOf(first), ...idsOf(rest)].toSorted()).toEqual(['t-0', 't-1', 't-2', 't-3', 't-4'])
  })
})
