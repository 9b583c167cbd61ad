/**
 * Goal: monitoring finds nothing odd in our metrics. Method: `promtool check metrics` of Prometheus reads those of both
 * services after they have done something of each kind.
 */
import { expect, test } from 'bun:test'
import { startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'

/**
 * Names that the specification of the services fixes. The duration in seconds is there, too.
 * Its `_ms` is no base unit.
 */
const FIXED_NAMES = ['service_runtime_task_duration_ms']

const promtool = Bun.which('promtool')

/** What promtool says of the metrics, a line for each finding. */
async function findings(text: string): Promise<string[]> {
  const child = Bun.spawn([promtool!, 'check', 'metrics'], {
    ...{ stdin: new Blob([text]), stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const lines = `${stdout}${stderr}`.split('\n').filter((line) => line !== '')
  expect(await child.exited).toBe(lines.length === 0 ? 0 : 3) // 3: it has read all of it, and has findings
  return lines
}

test.skipIf(promtool === null)(
  `promtool finds nothing in the metrics but names that are fixed${promtool === null ? ' (skipped: promtool is not here)' : ''}`,
  async () => {
    await using runtime = await startRuntime()
    await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
    await control.submit([
      { id: 'a', type: 'noop' },
      { id: 'b', type: 'runtime.command', params: { program: 'false' } },
      { id: 'c', type: 'noop', depends_on: ['b'] },
    ])
    await control.allEnded()
    await control.fetch('/graphs')
    for (const service of [control, runtime]) {
      const text = await (await service.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
      expect(text).toContain('_http_request_duration_seconds_bucket')
      const found = await findings(text)
      expect(found.filter((line) => !FIXED_NAMES.some((name) => line.startsWith(`${name} `)))).toEqual([])
    }
  },
)
