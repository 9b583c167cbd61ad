/**
 * The longest wait of a reader. A separate process asks GET /health every millisecond, while
 *   - nothing else happens: the share of the machine and of the prober,
 *   - a graph of 100,000 tasks is accepted and run,
 *   - the server writes the state of these tasks to `state.json`, if it does that.
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { formatDuration } from '../../shared/settings/duration.ts'
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'

/** Milliseconds of probing an idle server. */
const IDLE_MS = 300

/** Milliseconds, beside two intervals, after which a server without a state file counts as one that writes none. */
const FIRST_FILE_MS = 2_000

/** Milliseconds in which a server that writes state files writes the next one. */
const NEXT_FILE_MS = 20_000

interface Sizes {
  readonly tasks: number
  /** Milliseconds between two writes of the state file. */
  readonly persistMs: number
}

export const stall: Workload<ServerTarget, Sizes> = {
  name: 'stall',
  measures: ({ tasks }) => [
    { key: 'stall_idle', label: 'longest wait for /health, nothing else to do', unit: 'ms', better: 'lower' },
    {
      key: 'stall_run',
      label: `… while ${tasks.toLocaleString('en')} tasks are taken in and run`,
      unit: 'ms',
      better: 'lower',
    },
    { key: 'stall_snapshot', label: '… while their state file is written', unit: 'ms', better: 'lower' },
  ],
  async run(target, { sizes, load, prober, freshPrefix }) {
    const { tasks, persistMs } = sizes
    await using server = await target.start({ fill: { persist: formatDuration(persistMs) } })
    const { url } = server
    const longestWait = async (meanwhile: () => Promise<unknown>) => {
      await prober.run('probe-start', { url })
      await meanwhile()
      return (await prober.run('probe-stop', null)).longestMs
    }
    const job = { url, shape: 'wide', tasks, repeats: 1, warmUps: 0, prefix: freshPrefix() } as const

    const stall_idle = await longestWait(() => Bun.sleep(IDLE_MS))
    const stall_run = await longestWait(() => load.run('graph', job))
    const stateFile = server.dataDir === undefined ? undefined : join(server.dataDir, 'state.json')
    if (stateFile === undefined || !(await isWrittenSince(0, stateFile, 2 * persistMs + FIRST_FILE_MS))) {
      return { stall_idle, stall_run, stall_snapshot: null }
    }
    const stall_snapshot = await longestWait(async () => {
      // One more task has all tasks written again, whether or not the file that is there holds them.
      const start = Date.now()
      const one = { tasks: [{ id: freshPrefix(), type: 'noop' }] }
      await fetch(`${url}/tasks`, { method: 'POST', body: JSON.stringify(one) })
      if (!(await isWrittenSince(start, stateFile, NEXT_FILE_MS))) throw new Error(`${stateFile} is not written again`)
    })
    return { stall_idle, stall_run, stall_snapshot }
  },
}

/** Whether a state file appears within `patienceMs` that was begun at `start` or later. */
async function isWrittenSince(start: number, path: string, patienceMs: number): Promise<boolean> {
  const end = performance.now() + patienceMs
  while (performance.now() < end) {
    const file = await stat(path).catch(() => undefined)
    if (file !== undefined && file.birthtimeMs >= start) return true
    await Bun.sleep(20)
  }
  return false
}
