/**
 * Starts a service's executable: the one beside the client's own, else the one in PATH.
 *
 * The service leads a session of its own, so it outlives the client and its terminal. It gets the environment and working
 * directory of the client. Its output goes to a log file. If it ends before it answers, the lines since its start tell why.
 */
import { closeSync, existsSync, openSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import type { StartAddress } from '../../shared/http/start-address.ts'
import { findSibling, siblingNotFound } from '../../shared/process/sibling.ts'
import { type Environment, serviceDir } from '../own-services/state-dir.ts'
import { commandLine } from '../shell-words.ts'
import { type Attempt, failed } from './attempt.ts'
import { type DetachedProcess, startDetached } from './detached.ts'

/** An executable of ours, with the arguments that set its address and data directory. */
export interface Sibling {
  readonly service: 'control' | 'runtime'
  readonly program: string
  arguments(listen: string, dataDir: string): readonly string[]
}

export const CONTROL: Sibling = {
  service: 'control',
  program: 'taskmill-control',
  arguments: (listen, dataDir) => ['--addr', listen, '--data-dir', dataDir],
}

export const RUNTIME: Sibling = {
  service: 'runtime',
  program: 'taskmill-runtime',
  arguments: (listen, dataDir) => ['serve', '--listen-addr', listen, '--data-dir', dataDir],
}

/** At a start, a larger log is renamed to `<name>.log.1`. So at most two logs are kept. */
const MAX_LOG_BYTES = 16 * 1024 * 1024

export interface SiblingOptions {
  readonly address: StartAddress
  /** The whole environment of the service. */
  readonly env: Environment
  /** Data directory of the service. Undefined: one in our state directory. */
  readonly dataDir: string | undefined
}

export function startSibling(sibling: Sibling, { address, env, dataDir }: SiblingOptions): Attempt {
  const path = findSibling(sibling.program, env.PATH)
  if (path === null) return failed(siblingNotFound(sibling.program))
  let logPath: string
  let log: number
  let data: string
  try {
    const dir = serviceDir(env, `${sibling.service}-${address.hostname.replaceAll(':', '_')}-${address.port}`)
    data = dataDir ?? join(dir, 'data')
    logPath = join(dir, `${sibling.service}.log`)
    log = openLog(logPath)
  } catch (error) {
    return failed(`cannot make a place for the log and data of ${sibling.program}: ${messageOf(error)}`)
  }
  const command = [path, ...sibling.arguments(address.listen, data)]
  let child: DetachedProcess
  try {
    child = startDetached(command, { env, output: log })
  } catch (error) {
    closeSync(log)
    return failed(`cannot start ${path}: ${messageOf(error)}`, [commandLine(...command)])
  }
  return {
    isStarted: true,
    by: 'start',
    note: `${path}, pid ${child.pid}, log ${logPath}, data ${data}`,
    hints: [commandLine('tail', '-n', '50', logPath), commandLine(...command)],
    ended: child.ended,
  }
}

/** Opens the log for appending, because an earlier service may still write to it, and for reading its end later. */
function openLog(path: string): number {
  if (existsSync(path) && statSync(path).size > MAX_LOG_BYTES) renameSync(path, `${path}.1`)
  return openSync(path, 'a+', 0o600)
}
