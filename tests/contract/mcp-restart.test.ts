/** An agent waits, by the client of the official SDK, while the service is killed and started again. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { connectClient, ERAS } from '../support/mcp-client.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'

test.each(ERAS)('era %s: the call that was cut off fails, and the next one of the same client goes on', async (era) => {
  using temp = tempDir()
  const go = join(temp.path, 'go')
  const options = {
    dataDir: join(temp.path, 'data'),
    flags: ['--addr', `127.0.0.1:${await freePort()}`],
    env: { SERVICE_SHELL_POLICY: 'open' },
  }
  await using first = await startControl(options)
  await using mcp = await connectClient(first.url, era)
  const { data } = await mcp.call('run_action', {
    ...{ kind: 'os.shell', input: { script: `${waitFor(go)}; echo done` }, wait_ms: 100 },
  })
  expect(data.all_terminal).toBe(false)
  const named = { task_ids: data.task_ids }
  const cut = mcp.call('wait', named).then(
    () => 'answered',
    () => 'cut',
  )
  await first.reached(data.task_ids[0], 'running')
  await first.stop('SIGKILL')
  expect(await cut).toBe('cut')
  await using second = await startControl(options)
  expect(second.url).toBe(first.url)
  const waiting = mcp.call('wait', named)
  writeFileSync(go, '')
  const ended = (await waiting).data
  expect(ended).toMatchObject({ all_terminal: true, counts: { success: 1 } })
  expect(ended.tasks[0].output).toBe('done')
})
