/**
 * What networks cost a task: /bin/true in a sandbox of the service, with `none` and with `host`, in alternating slices of
 * the same service; then a stream to curl in a sandbox, through the rules of its network by CONNECT and over that of the host.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { NetworkRules } from '../../shared/contract/runtime-request.ts'
import { MB } from '../measure.ts'
import type { ServerTarget } from '../server.ts'
import { median } from '../statistics.ts'
import type { Tools, Workload } from '../suite.ts'
import { measureOpened, prepareOpened } from './opened.ts'
import { SANDBOX } from './targets.ts'

const SLICES = 6
const SLOTS = 4
const CLIENTS = 2 * SLOTS
const STREAMS = 3
const CHUNK_BYTES = 8 * MB

interface SandboxSizes {
  /** Tasks that make a fresh service warm before the clock starts. */
  readonly warmUpTasks: number
  /** Of one client, one after the other; and of all clients together where rates are measured. In each slice. */
  readonly singleTasks: number
  readonly rateTasks: number
  /** Milliseconds after which no further task of a slice begins. */
  readonly sliceMs: number
  /** Of one stream. */
  readonly streamMegabytes: number
}

export const network: Workload<ServerTarget, SandboxSizes> = {
  name: 'network',
  measures: () => [
    {
      key: 'network',
      label: '/bin/true with a network of its own, 1 client: half within',
      unit: 'ms',
      better: 'lower',
    },
    { key: 'network_host', label: '… with that of the host', unit: 'ms', better: 'lower' },
    { key: 'network_to_host', label: '… the one to the other', unit: 'ratio', better: 'lower', goal: { figure: 1.1 } },
    {
      key: 'network_rate',
      label: `/bin/true with a network of its own, ${SLOTS} slots, ${CLIENTS} clients`,
      unit: '/s',
      better: 'higher',
    },
    { key: 'network_rate_host', label: '… with that of the host', unit: '/s', better: 'higher' },
    { key: 'network_rate_to_host', label: '… the one to the other', unit: 'ratio', better: 'higher' },
    {
      key: 'network_stream',
      label: 'one stream to curl in a sandbox, by CONNECT through rules',
      unit: 'MB/s',
      better: 'higher',
      goal: { figure: 200 },
    },
    { key: 'network_stream_host', label: '… over the network of the host', unit: 'MB/s', better: 'higher' },
    {
      key: 'network_opened_stream',
      label: '… over TLS that the proxy ends, with a secret added',
      unit: 'MB/s',
      better: 'higher',
      goal: { figure: 100 },
    },
    {
      key: 'network_opened',
      label: 'a request over TLS that the proxy ends, beyond one that passes sealed: half within',
      unit: 'ms',
      better: 'lower',
      goal: { figure: 1 },
    },
  ],
  run: compared,
}

async function compared(server: ServerTarget, tools: Tools<SandboxSizes>) {
  const dataDir = mkdtempSync(join(tmpdir(), 'taskmill-bench-'))
  try {
    prepareOpened(dataDir)
    return await comparedIn(dataDir, server, tools)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function comparedIn(dataDir: string, server: ServerTarget, { sizes, load, freshPrefix }: Tools<SandboxSizes>) {
  await using running = await server.start({ fill: { slots: String(SLOTS) }, dataDir })
  const { url, pid } = running
  const slice = async (kind: 'none' | 'host', clients: number, tasks: number) => {
    const sandbox = { ...SANDBOX, network: kind }
    const job = { url, pid, clients, tasks, warmUpTasks: 0, limitMs: sizes.sliceMs, sandbox, prefix: freshPrefix() }
    return await load.run('run', job)
  }
  await slice('none', 1, sizes.warmUpTasks)
  const singles: Pair[] = []
  const rates: Pair[] = []
  for (let i = 0; i < SLICES; i++) {
    const [none, host] = [await slice('none', 1, sizes.singleTasks), await slice('host', 1, sizes.singleTasks)]
    singles.push({ ours: none.p50Ms, host: host.p50Ms })
    const all = [await slice('none', CLIENTS, sizes.rateTasks), await slice('host', CLIENTS, sizes.rateTasks)]
    rates.push({ ours: all[0]!.ratePerSecond, host: all[1]!.ratePerSecond })
  }
  const bytes = new Blob(Array(Math.ceil((sizes.streamMegabytes * MB) / CHUNK_BYTES)).fill(new Uint8Array(CHUNK_BYTES)))
  const hasCurl = Bun.which('curl') !== null
  const streams = hasCurl ? await streamed(url, bytes) : []
  const opened = hasCurl && (await measureOpened(dataDir, bytes, (script, rules) => output(url, script, rules)))
  return {
    ...{ network: oursOf(singles), network_host: hostOf(singles), network_to_host: ratioOf(singles) },
    ...{ network_rate: oursOf(rates), network_rate_host: hostOf(rates), network_rate_to_host: ratioOf(rates) },
    ...(streams.length > 0 && { network_stream: oursOf(streams), network_stream_host: hostOf(streams) }),
    ...(opened && { network_opened_stream: opened.stream, network_opened: opened.extraMs }),
  }
}

/** A figure of a task with a network of its own, and of one with that of the host. */
interface Pair {
  readonly ours: number
  readonly host: number
}

const oursOf = (pairs: readonly Pair[]) => median(pairs.map(({ ours }) => ours))
const hostOf = (pairs: readonly Pair[]) => median(pairs.map(({ host }) => host))
const ratioOf = (pairs: readonly Pair[]) => median(pairs.map(({ ours, host }) => ours / host))

/** MB/s of one stream, several times. */
async function streamed(url: string, bytes: Blob): Promise<Pair[]> {
  await using source = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(bytes) })
  const get = `curl --silent --show-error --fail --output /dev/null --write-out '%{speed_download}'`
  const pairs: Pair[] = []
  for (let i = 0; i < STREAMS; i++) {
    const ours = await output(url, `${get} --noproxy '' --proxytunnel ${source.url}`, { allow: ['127.0.0.1'] })
    const host = await output(url, `${get} ${source.url}`, 'host')
    pairs.push({ ours: Number(ours) / MB, host: Number(host) / MB })
  }
  return pairs
}

/** What a script in a sandbox prints. */
async function output(url: string, script: string, network: NetworkRules | 'host'): Promise<string> {
  const body = JSON.stringify({ execution: { kind: 'script', script }, sandbox: { ...SANDBOX, network } })
  const accepted = await fetch(`${url}/api/v1/tasks`, { method: 'POST', body })
  const { task_id } = (await accepted.json()) as { task_id: string }
  const answer = await fetch(`${url}/api/v1/tasks/${task_id}?wait_ms=60000`)
  const { status, stdout, stderr, error } = (await answer.json()) as TaskStatusResponse
  if (status !== 'success') throw new Error(`${script}: ${error?.message ?? status}: ${stderr}`)
  return stdout
}
