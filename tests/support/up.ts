/** Shared by the tests of `taskmill up` and `down`: an empty HOME, free ports, and an end to all that was started there. */
import { join } from 'node:path'
import { ownPaths } from '../../adapter/own-services/record.ts'
import { type ClientRun, runClient } from './client.ts'
import { workplace } from './ensure-running.ts'
import { freePort } from './free-port.ts'

interface UpData {
  started: boolean
  url: string
  runtime_url: string
  pid: number
  started_at: string
  token_file: string
  data_dir: string
  log_files: string[]
  agent_host: string
  shell: string
}

export const upData = ({ envelope, stderr }: ClientRun): UpData => {
  if (!envelope.ok) throw new Error(`up failed: ${envelope.error?.message ?? stderr}`)
  return envelope.data as unknown as UpData
}

export async function upPlace() {
  const place = await workplace()
  const ports = { control: await freePort(), runtime: await freePort() }
  const env = { HOME: place.home }
  const flags = ['--port', String(ports.control), '--runtime-port', String(ports.runtime)]
  /** Runs the client without an address or a token. */
  const client = (args: readonly string[], { env: more = {}, ...rest }: Parameters<typeof runClient>[1] = {}) =>
    runClient(args, { env: { ...env, ...more }, ...rest })
  return {
    ...{ home: place.home, env, ports, flags, client, started: place.started },
    paths: ownPaths(env),
    stateDir: join(place.home, '.local', 'state', 'taskmill'),
    up: (...args: string[]) => client(['up', ...flags, ...args]),
    [Symbol.asyncDispose]: place[Symbol.asyncDispose],
  }
}
