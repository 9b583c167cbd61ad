/** The services of `taskmill up`, their ports, and what leads the client elsewhere. */
import { VERSION } from '../../shared/process/version.ts'
import { lastServices, type OwnServices, ownPaths, ownServices, unrecordedControl } from '../own-services/record.ts'
import type { Environment } from '../own-services/state-dir.ts'
import { probe, type Target } from '../probe.ts'
import { leftRuntime } from '../start/down.ts'
import { HOST, isFree, portOf } from '../start/ports.ts'
import { controlOf, describeUnrecorded, PREFERRED, runtimeOf } from '../start/up.ts'
import { type Finding, fine, wrong } from './finding.ts'

export async function lookAtServices(env: Environment): Promise<Finding[]> {
  const services = ownServices(env)
  if (services === undefined) return [stopped(env), ...portsOf(env)]
  const states = await Promise.all([
    state('control service', controlOf(services), env),
    state('runtime service', runtimeOf(services), env),
  ])
  return [...states, running(services), token(services, env), ...address(services, env), ...otherToken(services, env)]
}

function stopped(env: Environment): Finding {
  const unrecorded = unrecordedControl(env)
  if (unrecorded !== undefined) {
    return wrong('services', describeUnrecorded(unrecorded), 'taskmill down ends it, then taskmill up.')
  }
  const left = leftRuntime(env)
  if (left === undefined) return fine('services', 'do not run; taskmill up starts them')
  return wrong(
    'services',
    `the control service was killed, and its runtime service (pid ${left.pid}) runs on`,
    'taskmill up starts them again; taskmill down ends what is left.',
  )
}

function portsOf(env: Environment): Finding[] {
  const last = lastServices(env)
  const ports = [portOf(last?.url) ?? PREFERRED.control, portOf(last?.runtime_url) ?? PREFERRED.runtime]
  return ports.map((port) =>
    fine('port', isFree(port) ? `${HOST}:${port} is free` : `${HOST}:${port} is taken: taskmill up takes another one`),
  )
}

async function state(check: string, target: Target, env: Environment): Promise<Finding> {
  const { outcome, fault } = await probe(target)
  if (outcome === 'ready') return fine(check, `ready at ${target.baseUrl}`)
  return wrong(check, `not ready: ${fault}`, `Read ${ownPaths(env).log}, then taskmill down and taskmill up.`)
}

function running({ version, pid, started_at }: OwnServices): Finding {
  const what = `version ${version}, pid ${pid}, since ${started_at}`
  if (version === VERSION) return fine('services', what)
  return wrong('services', `${what}, but this client is ${VERSION}`, 'taskmill down, then taskmill up.')
}

function token({ token: found }: OwnServices, env: Environment): Finding {
  if (found !== undefined) return fine('access', 'the services require the token')
  const path = ownPaths(env).token
  return wrong(
    'access',
    `the token file ${path} is gone, and the services require it`,
    'taskmill down, then taskmill up.',
  )
}

function otherToken({ token: own }: OwnServices, { SERVICE_TOKEN: given }: Environment): Finding[] {
  if (!given || given === own) return []
  return [wrong('SERVICE_TOKEN', 'the client sends another token than that of these services', 'unset SERVICE_TOKEN')]
}

function address({ url }: OwnServices, { SERVICE_URL: given }: Environment): Finding[] {
  if (!given || given.replace(/\/+$/, '') === url) return []
  return [wrong('SERVICE_URL', `the client calls ${given}, not the services at ${url}`, 'unset SERVICE_URL')]
}
