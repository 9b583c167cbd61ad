/** A server that somebody else has written, in another runtime, as client of it: the reference server "everything". */
import { describe, expect, test } from 'bun:test'
import type { McpTools } from '../../shared/contract/mcp.ts'
import { freePort } from '../support/free-port.ts'
import { everythingProgram, startMcpControl, textOf } from '../support/mcp.ts'
import { testEnvironment } from '../support/service.ts'
import { until } from '../support/until.ts'

const node = Bun.which('node') ?? process.execPath

interface Way extends AsyncDisposable {
  readonly config: object
}

async function byHttp(): Promise<Way> {
  const port = await freePort()
  const server = Bun.spawn([node, everythingProgram, 'streamableHttp'], {
    env: testEnvironment({ PORT: String(port) }),
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  await until(
    () =>
      fetch(`http://127.0.0.1:${port}/mcp`).then(
        () => true,
        () => false,
      ),
    (isThere) => isThere,
  )
  return {
    config: { type: 'http', url: `http://127.0.0.1:${port}/mcp` },
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL')
      await server.exited
    },
  }
}

const byStdio = async (): Promise<Way> => ({
  config: { command: node, args: [everythingProgram, 'stdio'], env: { GREETING: 'hello' } },
  async [Symbol.asyncDispose]() {},
})

describe.each([
  ['stdio', byStdio],
  ['streamable HTTP', byHttp],
])('over %s', (_, start) => {
  test('its tools are listed and called, also in a graph, and a long call reports and can be cancelled', async () => {
    await using way = await start()
    await using mcp = await startMcpControl({ every: way.config })
    const { tools } = (await mcp.run('discover', { server: 'every' })).result as McpTools
    expect(tools.find(({ name }) => name === 'every/get-sum')?.input_schema).toMatchObject({ required: ['a', 'b'] })

    await mcp.control.submit([
      { id: 'sum', type: 'mcp', tool_name: 'every/get-sum', input: { a: 19, b: 23 } },
      {
        id: 'weather',
        type: 'mcp',
        tool_name: 'every/get-structured-content',
        input: { location: 'Chicago' },
        depends_on: ['sum'],
      },
      { id: 'image', type: 'mcp', tool_name: 'every/get-tiny-image', depends_on: ['sum'] },
    ])
    expect(textOf(await mcp.control.ended('sum'))).toBe('The sum of 19 and 23 is 42.')
    expect((await mcp.control.ended('weather')).result).toMatchObject({
      structuredContent: { conditions: expect.any(String) },
    })
    expect((await mcp.control.ended('image')).result).toMatchObject({
      content: [{}, { type: 'image', mimeType: 'image/png' }, {}],
    })

    const wrong = await mcp.run('every/get-sum', { a: 'one' })
    expect([wrong.status, wrong.runtime?.error?.code]).toEqual(['failed', 'external_failure'])
    expect(wrong.error).toContain('Input validation error')

    const operation = { type: 'mcp', tool_name: 'every/trigger-long-running-operation' }
    const done = await mcp.control.run({ ...operation, input: { duration: 1, steps: 2 } })
    expect(textOf(done)).toContain('Long running operation completed')
    expect(done.progress!.length).toBeGreaterThan(0)
    await mcp.control.submit([{ id: 'long', ...operation, input: { duration: 600, steps: 6_000 } }])
    await until(
      () => mcp.control.get('long'),
      ({ progress }) => progress !== undefined,
    )
    await mcp.control.fetch('/tasks/long/cancel', { method: 'POST' })
    expect((await mcp.control.ended('long')).status).toBe('cancelled')
    expect(textOf(await mcp.run('every/get-sum', { a: 1, b: 2 }))).toBe('The sum of 1 and 2 is 3.')
  })
})
