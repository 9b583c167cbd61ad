/**
 * Goal: what nobody waits for is ended as soon as that can be done.
 * Method: orphans of their own in a directory of their own, and a server that stands for the runtime service.
 */
import { expect, test } from 'bun:test'
import { Orphans } from '../../../../control/executors/runtime/orphans.ts'
import { RuntimeService } from '../../../../control/executors/runtime/service.ts'
import { silentLog } from '../../../../shared/log.ts'
import { tempDir } from '../../../support/temp.ts'
import { until } from '../../../support/until.ts'

/** Rounds after which the next one is more than a second away. */
const LONG_PAUSES = 5

test('one that comes does not wait for those that have been there for long', async () => {
  using dir = tempDir()
  const kills: string[] = []
  let isHelpful = false
  await using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      const id = new URL(url).pathname.split('/').at(-2)!
      kills.push(id)
      return Response.json({}, { status: id === 'new' || isHelpful ? 200 : 403 })
    },
  })
  const service = new RuntimeService({ url: server.url.href, token: undefined })
  const orphans = new Orphans({ dataDir: dir.path, service, log: silentLog() })
  const add = (handle_id: string) => orphans.add({ handle_id, is_taken: true, since: Date.now() })
  const ended = (id: string) =>
    until(
      () => kills,
      (all) => all.includes(id),
    )
  add('refused')
  await until(
    () => kills.length,
    (count) => count === LONG_PAUSES,
  )
  const startedAt = performance.now()
  add('new')
  await ended('new')
  expect(performance.now() - startedAt).toBeLessThan(1_000)
  isHelpful = true
  add('last')
  await until(
    () => Bun.file(`${dir.path}/orphans.json`).json(),
    (file) => file.orphans.length === 0,
  )
})
