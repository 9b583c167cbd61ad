/** Metrics of the process and its build. */
import { BUILD_INFO } from '../process/build-info.ts'
import type { Metric, Sample } from './prometheus.ts'

const gauge = (name: string, help: string, read: () => number | undefined): Metric<unknown> => ({
  ...{ name, type: 'gauge', help },
  samples: () => sampleOf(read()),
})

const sampleOf = (value: number | undefined): Sample[] | undefined => (value === undefined ? undefined : [{ value }])

type FileSystem = typeof import('node:fs')

/** What Linux tells. Undefined on other platforms. */
function fromProc<T>(read: (fs: FileSystem) => T): T | undefined {
  try {
    return read(process.getBuiltinModule('node:fs')) // a start does not load it for this
  } catch {
    return undefined
  }
}

const maxDescriptors = () =>
  fromProc((fs) => {
    const limit = /^Max open files +(\d+)/m.exec(fs.readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return limit === undefined ? undefined : Number(limit)
  })

const startedAtSeconds = Math.floor(performance.timeOrigin / 1_000)

/** `PREFIX_build_info`, and the metrics of every process; `names` is what their names begin with. */
export const processMetrics = (prefix: string, names = 'process'): readonly Metric<unknown>[] => [
  {
    name: `${prefix}_build_info`,
    type: 'gauge',
    help: 'Always 1. The labels tell which build runs.',
    labels: { version: 'such as 0.1.0', commit: 'of its sources', build: 'platform', bun: 'version of Bun in it' },
    samples: () => [{ labels: { ...BUILD_INFO }, value: 1 }],
  },
  {
    name: `${names}_cpu_seconds_total`,
    type: 'counter',
    help: 'Seconds of CPU time, of user and system together.',
    samples: () => {
      const { user, system } = process.cpuUsage()
      return [{ value: (user + system) / 1_000_000 }]
    },
  },
  gauge(`${names}_resident_memory_bytes`, 'Bytes of memory in RAM.', () => process.memoryUsage.rss()),
  gauge(`${names}_open_fds`, 'Open file descriptors. Only on Linux.', () =>
    fromProc((fs) => fs.readdirSync('/proc/self/fd').length),
  ),
  gauge(`${names}_max_fds`, 'File descriptors that may be open. Only on Linux.', maxDescriptors),
  gauge(`${names}_start_time_seconds`, 'Seconds from 1970 to the start of the service.', () => startedAtSeconds),
]
