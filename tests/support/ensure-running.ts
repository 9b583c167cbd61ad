/** Shared by the tests of `taskmill ensure-running`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { allPids } from '../../shared/process/processes.ts'
import { type ClientRun, runClient } from './client.ts'
import { freePort } from './free-port.ts'
import { endProcess } from './stand-in-docker.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

interface ServiceData {
  url: string
  reachable: boolean
  started_by?: string
  health_status_code?: number
  ready_status_code?: number
  attempt_note?: string
}

interface EnsureData {
  control: ServiceData
  runtime?: ServiceData
  manual_hints: string[]
}

export const dataOf = ({ envelope }: ClientRun) => envelope.data as unknown as EnsureData

/** A HOME, an address where nobody listens, and an end to all that was started there. */
export async function workplace() {
  const home = tempDir()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const stateDir = join(home.path, '.local', 'state', 'taskmill')
  const ensure = (args: readonly string[] = [], { env = {}, ...rest }: Parameters<typeof runClient>[1] = {}) =>
    runClient(['ensure-running', ...args], { url, env: { HOME: home.path, ...env }, ...rest })
  /** Pids of what runs with the mark of this workplace in its environment. */
  const started = () =>
    allPids().filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`HOME=${home.path}`)
      } catch {
        return false
      }
    })
  const dispose = async () => {
    // A service may have started another one meanwhile.
    await until(
      async () => {
        const pids = started()
        await Promise.all(pids.map(endProcess))
        return pids.length
      },
      (left) => left === 0,
    )
    home[Symbol.dispose]()
  }
  return { home: home.path, port, url, stateDir, ensure, started, [Symbol.asyncDispose]: dispose }
}
