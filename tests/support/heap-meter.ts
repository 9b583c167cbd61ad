/**
 * What a service holds once its garbage is collected. By itself it collects the whole heap every ten to twenty minutes, and
 * lets memory grow by up to 20 MB meanwhile, which looks like a leak of 60 MB an hour.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { footprintOf } from './footprint.ts'
import { until } from './until.ts'

const FIXTURE = join(import.meta.dir, '../fixtures/heap-meter.ts')

export interface Held {
  readonly heapBytes: number
  readonly residentBytes: number
}

export class HeapMeter {
  readonly #file: string

  /** `file` is in a directory that the service may write to. */
  constructor(file: string) {
    this.#file = file
  }

  /** The environment with which the service has to be started. */
  get env(): Record<string, string> {
    return { BUN_OPTIONS: `--preload=${FIXTURE}`, TASKMILL_TEST_HEAP_FILE: this.#file }
  }

  /** Has the service collect its garbage. */
  async look(pid: number): Promise<Held> {
    rmSync(this.#file, { force: true })
    process.kill(pid, 'SIGUSR2')
    await until(() => existsSync(this.#file))
    return { heapBytes: Number(readFileSync(this.#file, 'utf8')), residentBytes: footprintOf(pid).bytes }
  }
}
