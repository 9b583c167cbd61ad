/** Every example of an action runs on a real service, and there is one for every kind. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ACTION_KINDS } from '../../shared/contract/adapter-v1.ts'
import { runClient } from '../support/client.ts'
import { startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'

const ACTIONS = join(dirname(dirname(import.meta.dir)), 'examples/actions')

test('there is one for every kind, and no other', () => {
  expect(readdirSync(ACTIONS).sort()).toEqual(ACTION_KINDS.map((kind) => `${kind}.json`).sort())
})

test.each(ACTION_KINDS)('%s runs and succeeds', async (kind) => {
  const isRuntime = kind.startsWith('runtime.')
  await using runtime = isRuntime ? await startRuntime() : undefined
  await using control = await startControl({ flags: isRuntime ? ['--runtime-url', runtime!.url] : [] })
  // The examples speak to the service at its default address.
  const action = readFileSync(join(ACTIONS, `${kind}.json`), 'utf8').replaceAll(
    '127.0.0.1:8080',
    new URL(control.url).host,
  )
  expect(JSON.parse(action).action.kind).toBe(kind)
  const options = { url: control.url, stdin: action }
  expect((await runClient(['translate'], options)).exitCode).toBe(0)
  const acted = await runClient(['act'], options)
  expect(acted.exitCode).toBe(0)
  const ids = acted.envelope.data!.task_ids as string[]
  const waited = await runClient(['wait', ...ids, '--timeout', '30s'], options)
  expect(waited.envelope.data).toMatchObject({
    all_terminal: true,
    tasks: ids.map((id) => ({ id, status: 'success' })),
  })
})
