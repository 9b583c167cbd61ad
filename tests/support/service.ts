/**
 * Starts a real service for one test: a process, a directory and the lines that it logs. All are gone at the end of
 * the block.
 */
import { chownSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { builtProgram, type ProgramName } from '../../scripts/build.ts'
import { cgroupRemover } from '../../scripts/service-cgroups.ts'
import { faultsOfLogLine } from './log-line.ts'
import { databaseFlags, recoveredFrom, releaseDatabase } from './on-database.ts'
import { tempDir } from './temp.ts'

export interface ServiceOptions {
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Keep what is in it: several services one after the other. Default: a new one that goes with the service. */
  readonly dataDir?: string
  /** Working directory of the service. Default: a new, empty one. */
  readonly cwd?: string
  /** Starts it through this command: with fewer rights, or as another user. */
  readonly through?: readonly string[]
  /** To whom its own directory belongs, where that is not us. */
  readonly ownerUid?: number
}

export type LogLine = Readonly<Record<string, unknown>>

export interface StartedService {
  readonly url: string
  readonly cwd: string
  readonly dataDir: string
  readonly process: Subprocess<'ignore', 'pipe', 'pipe'>
  /** What it has logged so far; grows. */
  readonly log: LogLine[]
  /** All that it wrote to its standard error, once it has ended. */
  readonly stderr: Promise<string>
  /** Resolves when `log` is complete: it has ended, and so has whatever else writes to its standard output. */
  readonly allLogged: Promise<void>
  readonly dispose: () => Promise<void>
}

/** The environment of every executable under test: ours reaches none of them. The mark lets the suite find leftovers. */
export const testEnvironment = (extra: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
  ...(process.env.TASKMILL_TEST_RUN === undefined ? {} : { TASKMILL_TEST_RUN: process.env.TASKMILL_TEST_RUN }),
  ...extra,
})

export interface SpawnedService extends Omit<StartedService, 'url'> {
  /** The address, once the service listens; undefined if it ended before. */
  readonly listening: Promise<string | undefined>
}

/** Starts a service and waits until it listens. Fails with its output when it does not. */
export async function startService(
  program: ProgramName,
  argv: readonly string[],
  options: ServiceOptions,
): Promise<StartedService> {
  const { listening, ...service } = await spawnService(program, argv, options)
  const url = await listening
  if (url !== undefined) return { url, ...service }
  await service.dispose()
  throw new Error(`${program} did not start: ${await service.stderr}`)
}

/** Starts a service, which may have to wait before it listens. */
export async function spawnService(
  program: ProgramName,
  argv: readonly string[],
  options: ServiceOptions,
): Promise<SpawnedService> {
  const temp = tempDir()
  const cwd = options.cwd ?? temp.path
  const dataDir = options.dataDir ?? join(temp.path, 'data')
  if (options.ownerUid !== undefined) chownSync(temp.path, options.ownerUid, options.ownerUid)
  const { flags = [] } = options
  const database = program === 'taskmill-control' ? await databaseFlags(dataDir, flags) : []
  const command = [await builtProgram(program), ...argv, '--data-dir', dataDir, ...database, ...flags]
  const child = Bun.spawn([...(options.through ?? []), ...command], {
    cwd,
    env: testEnvironment(options.env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const stderr = new Response(child.stderr).text()
  const log: LogLine[] = []
  const undeclared: string[] = []
  const { promise: listens, resolve: isListening } = Promise.withResolvers<string>()
  const reading = readLines(child.stdout, (text) => {
    const line = JSON.parse(text) as LogLine
    log.push(line)
    undeclared.push(...faultsOfLogLine(line))
    // Control may have started the other service, whose lines are among its own.
    if (line.msg === 'listening' && program.endsWith(`-${line.service}`)) isListening(String(line.url))
  })
  let removeGroup = () => {}
  const listening = Promise.race([listens, child.exited.then(() => undefined)]).then(async (url) => {
    if (url === undefined) return undefined
    removeGroup = cgroupRemover(dataDir)
    if (database.length > 0) await recoveredFrom(dataDir, url)
    return url
  })
  const dispose = async () => {
    child.kill('SIGKILL')
    await Promise.all([child.exited, reading])
    removeGroup()
    temp[Symbol.dispose]()
    if (!existsSync(dataDir)) await releaseDatabase(dataDir)
    if (undeclared.length > 0) throw new Error(`log lines that are not declared: ${undeclared.join('; ')}`)
  }
  return { listening, cwd, dataDir, process: child, log, stderr, allLogged: reading, dispose }
}

/** Milliseconds that the last lines of a service that has ended may take. */
const MAX_LOGGING_MS = 1_000

/** Waits until a process that was killed has ended. Whoever lost a connection to it may hear of that much earlier. */
export const exitOf = ({ process }: Pick<StartedService, 'process'>): Promise<unknown> =>
  Promise.race([process.exited, Bun.sleep(20_000)])

/** Ends the service with `signal` and gives its exit code, or the signal's name. */
export async function stopService(service: StartedService, signal: NodeJS.Signals): Promise<number | string> {
  service.process.kill(signal)
  await service.process.exited
  // Another service that it started may live on, and write there.
  await Promise.race([service.allLogged, Bun.sleep(MAX_LOGGING_MS)])
  return service.process.signalCode ?? service.process.exitCode!
}

async function readLines(stream: ReadableStream<Uint8Array>, each: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) each(line)
  }
}
