/**
 * Everything that the bench starts or writes, and its end.
 *
 * Each process leads a group of its own, so that a killed one takes its children along. The `exit` hook ends all of
 * them and removes the directory, whether the bench is done, breaks or is interrupted. Being killed outright (SIGKILL)
 * is the one end that leaves something behind.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SpawnOptions, Subprocess } from 'bun'

const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

type Spawned = SpawnOptions.SpawnOptions<'ignore', 'ignore', 'inherit' | number>

export class Lifetime {
  /** A directory of this run. */
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), 'taskmill-bench-')))
  readonly #children = new Set<Subprocess>()

  constructor() {
    process.on('exit', () => this.#end())
    for (const signal of END_SIGNALS) process.on(signal, () => process.exit(128 + constants.signals[signal]))
  }

  /** Starts a process whose standard output nobody reads. */
  spawn(command: string[], options: Partial<Spawned> = {}): Subprocess {
    const child = Bun.spawn(command, {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'inherit',
      ...options,
      detached: true,
    })
    this.#children.add(child)
    child.exited.then(() => this.#children.delete(child))
    return child
  }

  async kill(child: Subprocess): Promise<void> {
    killGroup(child.pid)
    await child.exited
  }

  #end(): void {
    for (const { pid } of this.#children) killGroup(pid)
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 })
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {} // it has ended already
}
