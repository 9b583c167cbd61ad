/**
 * Goal: no message to a runtime service comes before the commit that `message-order.ts` names for it.
 * Method: a server that stands for the runtime service, and a keeper that says when something is kept.
 */
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { MESSAGE_ORDER } from '../../../../control/executors/runtime/message-order.ts'
import { RemoteRemovals } from '../../../../control/executors/runtime/remote-removals.ts'
import { RuntimeService } from '../../../../control/executors/runtime/service.ts'
import type { Purpose } from '../../../../control/log/keeper.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { poolOf } from '../../../support/lone-runtime.ts'
import { tempDir } from '../../../support/temp.ts'
import { until } from '../../../support/until.ts'

const NO_SIGNAL = new AbortController().signal
const FILES = { task_id: 'a', file: 'f' }
const HASH = 'a'.repeat(64)

/** What sends something. */
type Message = Exclude<keyof RuntimeService, 'authorize' | 'url'>

interface World {
  readonly service: RuntimeService
  readonly removals: RemoteRemovals
  readonly kept: (purpose: Purpose) => Promise<void> | undefined
}

/** How each message is sent. */
const SEND: { readonly [M in Message]: (at: World) => unknown } = {
  submit: ({ service, kept }) =>
    service.submit({ id: 'a' }, 't', {
      ...{ begin: () => kept('act'), controlPort: undefined, signal: NO_SIGNAL, onSend: () => {} },
    }),
  kill: ({ service }) => service.kill('a', undefined, 't'),
  remove: ({ removals }) => removals.add([{ id: 'a' }], undefined),
  stage: ({ service }) => service.stage(HASH, new Response('b').body!, 't', NO_SIGNAL),
  ping: ({ service }) => service.ping(60_000, 't'),
  dryRun: ({ service }) => service.dryRun({}, 't', NO_SIGNAL),
  has: ({ service }) => service.has('a', 't'),
  look: ({ service }) => service.look('a', 't'),
  queued: ({ service }) => service.queued(60_000),
  resources: ({ service }) => service.resources(60_000),
  waitFor: ({ service }) => service.waitFor('a', 't'),
  waitForStart: ({ service }) => service.waitForStart('a', 't'),
  tellsStart: ({ service }) => service.tellsStart('t', NO_SIGNAL),
  openLog: ({ service }) => service.openLog('a', { stream: 'stdout' }, 't', NO_SIGNAL),
  network: ({ service }) => service.network('a', 't', NO_SIGNAL),
  openFile: ({ service }) => service.openFile('a', 'f', { method: 'GET', headers: {} }, 't', NO_SIGNAL),
  openTar: ({ service }) => service.openTar(FILES, { method: 'GET', headers: {} }, 't', NO_SIGNAL),
  bundleSize: ({ service }) => service.bundleSize(FILES, 't', NO_SIGNAL),
  bundleDigest: ({ service }) => service.bundleDigest(FILES, 't'),
  openBundle: ({ service }) => service.openBundle(FILES, 't', NO_SIGNAL),
  hasStaged: ({ service }) => service.hasStaged(HASH, 't', NO_SIGNAL),
}

function world() {
  const dir = tempDir()
  const arrived: string[] = []
  const asked: (PromiseWithResolvers<void> & { readonly purpose: Purpose })[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url, method }) => {
      arrived.push(`${method} ${new URL(url).pathname}`)
      return Response.json({})
    },
  })
  const kept = (purpose: Purpose) => {
    const waiting = { purpose, ...Promise.withResolvers<void>() }
    asked.push(waiting)
    return waiting.promise
  }
  const service = new RuntimeService({ url: server.url.href, token: undefined, keeper: { kept } })
  const removals = new RemoteRemovals({ dataDir: dir.path, pool: poolOf(service), keeper: { kept }, log: silentLog() })
  return {
    ...{ service, removals, kept, arrived, asked },
    /** Whether a later start would send something. */
    isNoted: () => existsSync(join(dir.path, 'runtime-drops.jsonl')),
    /** Resolves once `count` commits were waited for. */
    hasAsked: (count: number) =>
      until(
        () => asked.length,
        (length) => length === count,
      ),
    /** What arrives because of what was sent so far has arrived before the answer to this. */
    async settled(): Promise<readonly string[]> {
      await fetch(new URL('/last', server.url))
      return arrived.filter((path) => !path.startsWith('GET '))
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true)
      dir[Symbol.dispose]()
    },
  }
}

const MESSAGES = Object.entries(MESSAGE_ORDER satisfies Record<Message, unknown>).map(
  ([message, { after }]) => [message as Message, after] as const,
)
const ordered = MESSAGES.flatMap(([message, after]) => (after === undefined ? [] : [[message, after] as const]))
const free = MESSAGES.flatMap(([message, after]) => (after === undefined ? [message] : []))

test.each(ordered)('%s follows what is kept for the purpose %s', async (message, after) => {
  await using at = world()
  SEND[message](at)
  await at.hasAsked(1)
  expect(at.asked.map(({ purpose }) => purpose)).toEqual([after])
  expect([await at.settled(), at.isNoted()]).toEqual([[], false])
  at.asked[0]!.resolve()
  await until(
    () => at.settled(),
    ({ length }) => length === 1,
  )
})

test.each(ordered)('%s is not sent if that cannot be kept', async (message) => {
  await using at = world()
  const sent = Promise.resolve(SEND[message](at)).catch(() => 'failed')
  await at.hasAsked(1)
  at.asked[0]!.reject(new Error('the database is away'))
  if (message === 'remove') await at.hasAsked(2)
  else expect(await sent).toBe('failed')
  expect([await at.settled(), at.isNoted()]).toEqual([[], false])
})

test.each(free)('%s waits for nothing', async (message) => {
  await using at = world()
  await Promise.resolve(SEND[message](at)).catch(() => {}) // the answer is not one that it knows
  expect([at.asked.length, at.arrived.length]).toEqual([0, 1])
})
