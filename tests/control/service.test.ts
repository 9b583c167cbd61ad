/**
 * Goal: the service keeps nothing of an earlier run that retention has removed. Method: the real parts and the real
 * service in this process, over the data directory of a service that has ended; weak references to its graphs.
 */
import { expect, test } from 'bun:test'
import { controlSettings } from '../../control/config.ts'
import { buildParts, runtimesOf } from '../../control/parts.ts'
import { ControlService } from '../../control/service.ts'
import type { Graph } from '../../control/task/graph.ts'
import { claimDataDirectory } from '../../shared/files/data-directory.ts'
import { LOCK_FILES } from '../../shared/files/directory-lock.ts'
import { listen } from '../../shared/http/listen.ts'
import { serviceAccess } from '../../shared/http/service-access.ts'
import { StartProgress } from '../../shared/process/start-progress.ts'
import { readCommandLine } from '../../shared/settings/flags.ts'
import { startControl } from '../support/control.ts'
import { memoryLog } from '../support/memory-log.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const HOUR_MS = 3_600_000
const GRAPHS = 200

/** A service in this process, and weak references to the graphs that it has recovered. */
async function serviceIn(dataDir: string) {
  const argv = ['--addr', '127.0.0.1:0', '--data-dir', dataDir, '--retention', '1h']
  const { values: config } = readCommandLine(argv, {}, controlSettings)
  const { log } = memoryLog()
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const signals = { duringStart: new AbortController().signal, unlessStopped: <T>(step: Promise<T>) => step }
  const access = serviceAccess(
    { listen: { text: config.addr, setting: 'addr' }, tokenFile: '', token: undefined, allowedHosts: [] },
    log,
  )
  const host = {
    env: {},
    log,
    signals,
    startedAt: performance.now(),
    access,
    directory: claimDataDirectory(dataDir, LOCK_FILES.control),
    server: await listen(access.address, 'addr'),
    progress: new StartProgress(),
    exit: async () => resolve(),
  }
  const { parts, earlierRun } = await buildParts(config, host, runtimesOf(config, host))
  const service = new ControlService(config, host, parts)
  await service.start(earlierRun)
  const { store, retention } = parts.storage
  const stop = async () => {
    await service.stop('SIGTERM')
    await ended
  }
  return { graphs: Array.from(store.graphs, (graph) => new WeakRef<Graph>(graph)), store, retention, stop }
}

/** How many of `graphs` are in memory. */
function keptOf(graphs: readonly WeakRef<Graph>[]): number {
  Bun.gc(true)
  return graphs.filter((graph) => graph.deref() !== undefined).length
}

test('graphs of an earlier run leave memory when retention removes them', async () => {
  using dir = tempDir()
  {
    await using control = await startControl({ dataDir: dir.path })
    const sent = Array.from({ length: GRAPHS }, (_, i) => control.submit([{ id: `t${i}`, type: 'noop' }]))
    await Promise.all(sent)
    await control.allEnded()
    await control.stop()
  }
  const { graphs, store, retention, stop } = await serviceIn(dir.path)
  expect(keptOf(graphs)).toBe(GRAPHS)
  retention.sweep(Date.now() + 2 * HOUR_MS)
  await until(() => [...store.graphs].length, 0)
  // The engine may take a word on the stack for a reference, so a few may stay.
  await until(
    () => keptOf(graphs),
    (kept) => kept < GRAPHS / 10,
  )
  await stop()
})
