/**
 * A fake `docker`: a shell script that records its calls and does what the test says.
 *
 * It is the only program in the PATH that `path` returns, so the docker of the machine is never called.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive, until } from './until.ts'

/** Patterns of shell `case` over the arguments, to what is done then. Others succeed and say nothing. */
export type Reactions = Readonly<Record<string, string>>

export class StandInDocker {
  readonly path: string
  /** The file with what it started by `in_background` has said. */
  readonly output: string
  readonly #record: string
  readonly #pids: string

  constructor(dir: string) {
    this.path = join(dir, 'bin')
    this.output = join(dir, 'output')
    this.#record = join(dir, 'calls')
    this.#pids = join(dir, 'pids')
    mkdirSync(this.path)
  }

  install(reactions: Reactions, name: 'docker' | 'docker-compose' = 'docker'): this {
    const cases = Object.entries(reactions).map(
      ([pattern, reaction]) => `${pattern.replaceAll(' ', '\\ ')})\n${reaction}\n;;`,
    )
    const file = join(this.path, name)
    writeFileSync(
      file,
      `#!/bin/sh
PATH=/usr/local/bin:/usr/bin:/bin
printf '%s\\n' "${name} $*" >> '${this.#record}'
in_background() {
  setsid "$@" >> '${this.output}' 2>&1 < /dev/null &
  echo $! >> '${this.#pids}'
}
case "$*" in
${cases.join('\n')}
esac
`,
    )
    chmodSync(file, 0o755)
    return this
  }

  /** How it was called, in order. */
  get calls(): string[] {
    return existsSync(this.#record) ? linesOf(this.#record) : []
  }

  called(start: string): Promise<string[]> {
    return until(
      () => this.calls,
      (calls) => calls.some((call) => call.startsWith(start)),
    )
  }

  /** Ends what it started by `in_background`. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of existsSync(this.#pids) ? linesOf(this.#pids).map(Number) : []) await endProcess(pid)
  }
}

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)

/** Ends a process that is not our child, and waits until it is gone. */
export async function endProcess(pid: number): Promise<void> {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended by itself
  }
  await until(() => isAlive(pid), false)
}

/** `word` for a shell, whatever is in it. */
export const shellWord = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
