/** Shell commands that help with a missing service, with explanations as comments. */

import { fetchTarget } from '../../shared/http/socket-address.ts'
import { isLoopback, startAddress } from '../../shared/http/start-address.ts'
import { findSibling, siblingNotFound } from '../../shared/process/sibling.ts'
import type { Environment } from '../own-services/state-dir.ts'
import type { Probe, Target } from '../probe.ts'
import { commandLine, quoted, thisProgram } from '../shell-words.ts'
import { runLine } from './container.ts'
import { CONTROL, RUNTIME, type Sibling } from './sibling.ts'

interface Service {
  readonly name: 'control' | 'runtime'
  readonly target: Target
}

interface Wishes {
  readonly start: boolean
  readonly composeDir: string
  readonly runtimeImage: string
  readonly runtimeSource: string
  readonly env: Environment
}

const siblingOf = ({ name }: Service): Sibling => (name === 'runtime' ? RUNTIME : CONTROL)

/** Hints for `missing`, one of the wanted `services`. */
export function hintsFor(
  missing: { readonly service: Service; readonly probe: Probe },
  services: readonly Service[],
  wishes: Wishes,
): string[] {
  const { service, probe } = missing
  const { baseUrl, path } = service.target
  const { origin, socket } = fetchTarget(baseUrl)
  const check = commandLine('curl', '-i', ...(socket.unix ? ['--unix-socket', socket.unix] : []), origin + path)
  const address = startAddress(baseUrl)
  if (typeof address === 'string') {
    const remedy = isLoopback(baseUrl) ? address : 'it is on another machine: start the service there'
    return [`# ${baseUrl}: ${remedy}`, check]
  }
  if (probe.outcome !== 'absent') return [whoListens(address.port), check]

  const { start, composeDir, runtimeImage, runtimeSource, env } = wishes
  const isRuntime = service.name === 'runtime'
  const hasDockerStart = composeDir !== '' || (isRuntime && runtimeImage !== '')
  const { program } = siblingOf(service)
  const isInstalled = findSibling(program, env.PATH) !== null
  return [
    ...(isInstalled && !start ? [startLine(services, env.PATH)] : []),
    ...(!isInstalled && (start || !hasDockerStart) ? [`# ${siblingNotFound(program)}`] : []),
    ...(isRuntime && start && runtimeImage !== '' ? [runLine(runtimeImage, address)] : []),
    ...(isRuntime && runtimeSource !== '' ? [buildLine(runtimeSource, address.listen)] : []),
  ]
}

/** The command line of this call, with `--start`. */
function startLine(services: readonly Service[], path: string | undefined): string {
  const flags = services.flatMap(({ name, target }) =>
    name === 'runtime' ? ['--with-runtime', '--runtime-url', target.baseUrl] : ['--url', target.baseUrl],
  )
  return commandLine(thisProgram(path), 'ensure-running', '--start', ...flags)
}

const whoListens = (port: number): string =>
  process.platform === 'linux' ? `ss -ltnp 'sport = :${port}'` : `lsof -nP -iTCP:${port} -sTCP:LISTEN`

/** Fetches the source of the runtime if it is remote, builds it and starts it. */
function buildLine(source: string, listen: string): string {
  const isRemote = /^[a-z][a-z+.-]*:\/\/|^[\w.-]+@[\w.-]+:/i.test(source)
  const dir = isRemote ? 'taskmill' : source
  const fetch = isRemote ? `git clone ${quoted(source)} ${dir} && ` : ''
  const serve = commandLine(`${dir.replace(/\/+$/, '')}/dist/${RUNTIME.program}`, 'serve', '--listen-addr', listen)
  return `${fetch}${commandLine('make', '-C', dir, 'build')} && ${serve}`
}
