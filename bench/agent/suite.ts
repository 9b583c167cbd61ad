/**
 * What a model pays for taskmill: the tokens of the list of the MCP tools, and of a dialogue in which it builds, asks its user,
 * sees a failure, and runs the graph again. The tokens are those of `o200k_base`; those of other models differ by some
 * percent. Answers count once, as text: hosts give a model either that or the structured content.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import type { Figures } from '../measure.ts'
import { commandTarget, copiedProgram, quoted, type ServerTarget } from '../server.ts'
import { suiteOf, type Workload } from '../suite.ts'

/** Lines that the build prints. */
interface Sizes {
  readonly lines: number
}

const dialogue: Workload<ServerTarget, Sizes> = {
  name: 'dialogue',
  measures: ({ lines }) => [
    { key: 'list_bytes', label: 'tools/list', unit: 'bytes', better: 'lower', goal: { figure: 20_000 } },
    { key: 'list', label: '…', unit: 'tokens', better: 'lower' },
    { key: 'full_bytes', label: `build of ${lines} lines, approval, failure, rerun: detail: true`, unit: 'bytes' },
    { key: 'full', label: '…', unit: 'tokens' },
    { key: 'brief_bytes', label: '… in brief', unit: 'bytes', better: 'lower', goal: { figure: 39_000 / 3 } },
    { key: 'brief', label: '…', unit: 'tokens', better: 'lower' },
  ],
  async run(target, { sizes }) {
    await using server = await target.start()
    const client = new Client({ name: 'bench', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', server.url)))
    try {
      const { tools } = await client.listTools()
      const list = sizeOf(JSON.stringify(tools))
      const full = await talk(client, sizes, { detail: true })
      const brief = await talk(client, sizes, {})
      return {
        ...{ list: list.tokens, list_bytes: list.bytes, full: full.tokens, full_bytes: full.bytes },
        ...{ brief: brief.tokens, brief_bytes: brief.bytes },
      } satisfies Figures
    } finally {
      await client.close()
    }
  },
}

const sizeOf = (text: string) => ({ bytes: Buffer.byteLength(text), tokens: countTokens(text) })

/** Holds the dialogue. Gives the size of all calls and answers. */
async function talk(client: Client, { lines }: Sizes, more: { readonly detail?: boolean }) {
  const size = { bytes: 0, tokens: 0 }
  const call = async (name: string, input: Readonly<Record<string, unknown>>) => {
    const { content, structuredContent, isError } = await client.callTool({ name, arguments: input })
    const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
    if (isError === true) throw new Error(`${name}: ${text}`)
    const { bytes, tokens } = sizeOf(`${name} ${JSON.stringify(input)}\n${text}\n`)
    size.bytes += bytes
    size.tokens += tokens
    return structuredContent as { graph_id: string; [field: string]: unknown }
  }
  const shell = (id: string, script: string, after: readonly string[], args: readonly unknown[] = []) => ({
    ...{ id, type: 'shell', depends_on: after, params: { command: 'sh', args: ['-c', script, ...args] } },
  })
  const compiles = `i=0; while [ $i -lt ${lines} ]; do echo "compiled src/module-$i.ts in $((i % 7)) ms"; i=$((i + 1)); done`
  const tests =
    'echo "12 tests passed, $0 failed"; [ "$0" = 0 ] || echo "expected 200, got 500 at api.test.ts:31" >&2; exit "$0"'
  const { graph_id } = await call('submit_graph', {
    ...{ name: 'release', scope: 'graph', params: { failed: '1' } },
    tasks: [
      shell('build', compiles, []),
      shell('lint', 'echo "checked 214 files"', []),
      { id: 'sure', type: 'approval', params: { message: 'Test against staging?' }, depends_on: ['build', 'lint'] },
      shell('test', tests, ['sure'], [{ $param: 'failed' }]),
      shell('pack', 'echo "dist/app.tgz 3.1 MB"', ['test']),
    ],
    wait_ms: 30_000,
    ...more,
  })
  await call('answer_approval', { task_id: `${graph_id}/sure`, approved: true, who: 'ada' })
  await call('wait', { graph_id, ...more })
  await call('get_graph', { graph_id, ...more })
  await call('get_task', { task_id: `${graph_id}/test`, ...more })
  const again = await call('rerun_graph', { graph_id, params: { failed: '0' }, wait_ms: 30_000, ...more })
  await call('get_task', { task_id: `${again.graph_id}/pack`, ...more })
  await call('list_tasks', { graph_id: again.graph_id, ...more })
  if (again.all_terminal !== true) throw new Error(`the rerun has not ended: ${JSON.stringify(again)}`)
  return size
}

export const agent = suiteOf({
  name: 'agent',
  full: { lines: 150 },
  quick: { lines: 150 },
  rounds: 1,
  roundsMs: 60_000,
  async prepare(_config, lifetime) {
    const control = quoted(await copiedProgram('taskmill-control', lifetime))
    const command = `env SERVICE_SHELL_POLICY=open ${control} --addr 127.0.0.1:{port} --data-dir {dir}`
    return [commandTarget('control', command, { healthPath: '/health', fill: {} }, lifetime)]
  },
  workloads: [dialogue],
  isClosed: true,
})
