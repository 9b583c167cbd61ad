/**
 * The connections of a task whose network has rules, as control, the client and MCP show them. Against the built services.
 * Source: docs/http.md, "Read the connections".
 */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TaskListResponse } from '../../shared/contract/runtime.ts'
import type { TaskNetwork } from '../../shared/contract/task-network.ts'
import { runClient } from '../support/client.ts'
import { answering, TestServer } from '../support/egress.ts'
import { connectClient } from '../support/mcp-client.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { until } from '../support/until.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'
const curl = (url: string) => `curl --silent --noproxy '' '${url}'`
const networkOf = async ({ control }: Pair, path: string): Promise<TaskNetwork> =>
  (await (await control.fetch(`${path}/network`)).json()) as TaskNetwork
const sandbox = { profile: 'linux_sandbox', network: { allow: ['127.0.0.1'] } }

describe.skipIf(missingSandbox !== undefined)(
  `the connections of a task${missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`}`,
  () => {
    test('are listed while it runs and after its end, by control, the client and MCP', async () => {
      await using server = await TestServer.start(answering(OK))
      await using pair = await startPair()
      const { control } = pair
      const script = `${curl(`http://127.0.0.1:${server.port}/`)}; ${curl('http://10.0.0.1/')}; ${waitFor('go')}`
      const { graph_id } = await control.submit([{ id: 'a', type: 'runtime.script', params: { script, sandbox } }])
      const listed = await until(
        () => networkOf(pair, '/tasks/a'),
        ({ connections }) => connections.length === 2,
      )
      expect(listed).toEqual({
        usage: {
          ...{ connections_allowed: 1, connections_refused: 1 },
          ...{ bytes_sent: server.received.length, bytes_received: OK.length - 4 },
        },
        ...{ open: 0, unlisted: 0 },
        connections: [
          {
            ...{ at: expect.any(String), verdict: 'allowed', host: '127.0.0.1', port: server.port },
            ...{ address: '127.0.0.1', rule: '127.0.0.1', duration_ms: expect.any(Number) },
            ...{ bytes_sent: server.received.length, bytes_received: OK.length - 4 },
            message: expect.stringContaining('is allowed'),
          },
          {
            ...{ at: expect.any(String), verdict: 'refused', host: '10.0.0.1', port: 80, reason: 'class' },
            message: expect.stringContaining('10.0.0.1:80 is refused: its address is private'),
          },
        ],
      })
      const { tasks } = await pair.runtime.json<TaskListResponse>('/api/v1/tasks')
      await Bun.write(join(tasks[0]!.artifacts.task_dir, 'workspace', 'go'), '')
      await control.ended('a')
      expect(await networkOf(pair, '/tasks/a')).toEqual(listed)
      expect(await networkOf(pair, `/graphs/${graph_id}/tasks/a`)).toEqual(listed)
      expect((await runClient(['network', 'a'], { url: control.url })).envelope.data).toEqual({ ...listed })
      await using mcp = await connectClient(control.url)
      const { data } = await mcp.call('get_logs', { task_id: 'a', stream: 'network' })
      expect((data as { text: string }).text).toMatch(/ is allowed: .*\n.* is refused: .*\n\{"connections_allowed":1,/)
    })

    test('are counted still when the runtime service has removed the task, and absent without rules', async () => {
      await using pair = await startPair()
      const { control, runtime } = pair
      const ruled = { script: curl('http://10.0.0.1/'), sandbox }
      await control.submit([
        { id: 'a', type: 'runtime.script', params: ruled },
        { id: 'b', type: 'runtime.script', params: { script: 'true' } },
        { id: 'c', type: 'noop' },
      ])
      await control.allEnded()
      const none = { open: 0, connections: [], unlisted: 0 }
      for (const id of ['b', 'c']) expect(await networkOf(pair, `/tasks/${id}`)).toEqual(none)
      expect((await control.fetch('/tasks/nobody/network')).status).toBe(404)
      const { handle_id } = (await (await control.fetch('/tasks/a')).json()) as { handle_id: string }
      expect((await runtime.fetch(`/api/v1/tasks/${handle_id}`, { method: 'DELETE' })).status).toBe(204)
      const usage = { connections_allowed: 0, connections_refused: 1, bytes_sent: 0, bytes_received: 0 }
      expect(await networkOf(pair, '/tasks/a')).toEqual({ ...none, usage, unlisted: 1 })
      await pair.stopRuntime('SIGKILL')
      const away = await control.fetch('/tasks/a/network')
      expect([away.status, await away.text()]).toEqual([503, expect.stringContaining('cannot read the connections')])
    })
  },
)
