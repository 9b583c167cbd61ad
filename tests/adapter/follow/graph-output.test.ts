/** The output of many tasks, read from a service of the test that answers when the test says so. */
import { expect, test } from 'bun:test'
import { controlClient } from '../../../adapter/client.ts'
import { GraphOutput, MAX_READ_OUTPUTS } from '../../../adapter/follow/graph-output.ts'
import type { TaskProgress } from '../../../shared/text/live-view/progress.ts'
import { until } from '../../support/until.ts'

const task = (id: string) => ({ id }) as TaskProgress

test(`at most MAX_READ_OUTPUTS tasks are read at the same time, and the others after them`, async () => {
  const held = new Map<string, () => void>()
  const asked: string[] = []
  using server = {
    server: Bun.serve({
      ...{ port: 0, hostname: '127.0.0.1', idleTimeout: 0 },
      async fetch(request) {
        const { pathname, searchParams } = new URL(request.url)
        const id = pathname.split('/')[4]!
        if (!pathname.endsWith('/logs')) return Response.json({ id, status: 'success', attempt: 1 })
        const isStdout = searchParams.get('stream') === 'stdout'
        if (isStdout) {
          asked.push(id)
          await new Promise<void>((go) => held.set(id, go))
        }
        return new Response(isStdout ? `of ${id}` : '', { headers: { 'x-task-attempt': '1', 'x-log-offset': '0' } })
      },
    }),
    [Symbol.dispose]() {
      void this.server.stop(true)
    },
  }
  const shown: string[] = []
  const output = new GraphOutput({
    client: controlClient(`http://127.0.0.1:${server.server.port}`, undefined),
    ...{ graphId: 'g', slots: MAX_READ_OUTPUTS, isFollowed: true, signal: new AbortController().signal },
    begin: () => ({
      maxKeptBytes: 0,
      sink: {
        show: async (chunk) => void shown.push(new TextDecoder().decode(chunk)),
        end: async (_, fault) => void expect(fault).toBeUndefined(),
      },
    }),
  })
  const ids = Array.from({ length: MAX_READ_OUTPUTS + 2 }, (_, i) => `t${i}`)
  for (const id of [...ids, ...ids]) output.add(task(id))
  await until(
    () => held.size,
    (size) => size === MAX_READ_OUTPUTS,
  )
  held.get('t3')!()
  await until(
    () => asked.length,
    (count) => count === MAX_READ_OUTPUTS + 1,
  )
  expect(shown).toEqual(['of t3'])
  for (const id of ids) {
    await until(
      () => held.has(id),
      (isHeld) => isHeld,
    )
    held.get(id)!()
  }
  await output.whenRead()
  expect(asked.toSorted()).toEqual(ids.toSorted())
  expect(shown.toSorted()).toEqual(ids.map((id) => `of ${id}`).toSorted())
})
