/**
 * `taskmill ensure-running`: checks that the control service is reachable, with `--with-runtime` also the runtime service,
 * and starts what is missing if a flag allows it. Otherwise it fails with the reason and hints.
 */
import type { HealthResponse } from '../../shared/contract/control.ts'
import { httpUrl } from '../../shared/http/client.ts'
import { duration, flag, type Setting, text } from '../../shared/settings/flags.ts'
import { type Answer, EXIT, PartialFailure, success } from '../envelope.ts'
import { probe } from '../probe.ts'
import type { Service, ServiceState } from '../start/bring-up.ts'
import { defineCommand } from './command.ts'

const HOUR_MS = 3_600_000

const runtimeUrlSetting: Setting<string> = httpUrl({
  variable: 'SERVICE_RUNTIME_URL',
  default: 'http://127.0.0.1:18080',
  help: 'Base URL of the runtime service.',
})

export const ensureRunning = defineCommand({
  summary:
    'Check that the control service is reachable. Start it if a flag says how and its address is on this machine.',
  usage: '[--with-runtime] [--start | --compose-dir DIR] [--timeout 30s]',
  settings: {
    withRuntime: flag({ help: 'Also require the runtime service to be ready.' }),
    start: flag({
      help: 'Start taskmill-control (with --with-runtime also taskmill-runtime) detached, with this environment and working directory. The executables come from the directory of this one, else from PATH. Logs and data: $XDG_STATE_HOME/taskmill, else ~/.local/state/taskmill. The docker flags are then ignored.',
    }),
    composeDir: text({
      variable: 'SERVICE_COMPOSE_DIR',
      value: 'directory',
      help: 'Start with docker compose up -d (or docker-compose) in this directory.',
    }),
    runtimeImage: text({
      variable: 'SERVICE_RUNTIME_IMAGE',
      value: 'image',
      help: 'Start the runtime service as a container of this image. Its port is published on loopback.',
    }),
    runtimeSource: text({
      variable: 'SERVICE_RUNTIME_SOURCE',
      value: 'url or directory',
      help: 'Location of the source of the runtime service. Used only in hints.',
    }),
    runtimeUrl: runtimeUrlSetting,
    timeout: duration({
      default: '30s',
      minMs: 0,
      maxMs: HOUR_MS,
      help: 'Maximum wait for started services to become ready.',
    }),
    dockerTimeout: duration({
      default: '2m',
      minMs: 1,
      maxMs: HOUR_MS,
      help: 'Time limit of a docker command that starts something, image pulls included. Docker queries get at most 20s.',
    }),
  },
  maxArguments: 0,
  async run({ values, service: { url: baseUrl, token = '' }, env }): Promise<Answer> {
    const runtimeUrl = values.runtimeUrl.replace(/\/+$/, '')
    const services: Service[] = [
      { name: 'control', target: { baseUrl, path: '/health', token } },
      ...(values.withRuntime
        ? [{ name: 'runtime', target: { baseUrl: runtimeUrl, path: '/readyz', token: '' } } as const]
        : []),
    ]
    const first = await Promise.all(
      services.map(async (service): Promise<ServiceState> => ({ service, probe: await probe(service.target) })),
    )
    if (first.every(isReady)) return success(report(first))

    const { bringUp } = await import('../start/bring-up.ts')
    const last = await bringUp(first, { ...values, env })
    const missing = last.find((state) => !isReady(state))
    if (missing === undefined) return success(report(last))
    throw unreachable(missing, report(last))
  },
})

const isReady = ({ probe: { outcome } }: ServiceState): boolean => outcome === 'ready'

/** Why a reachable control service accepts no graphs now. Starting a service would not help. */
function notReadyReason({ service, probe: seen }: ServiceState): string | undefined {
  if (service.name !== 'control' || seen.outcome !== 'ready') return undefined
  const { ready, reason } = JSON.parse(seen.body) as Partial<HealthResponse>
  return ready === false ? String(reason) : undefined
}

/** The data of the answer. Source: contract, Client. */
function report(states: readonly ServiceState[]): object {
  const services = states.map((state) => {
    const { service, probe: seen, startedBy, note } = state
    const reason = notReadyReason(state)
    const code = service.name === 'control' ? 'health_status_code' : 'ready_status_code'
    return [
      service.name,
      {
        url: service.target.baseUrl,
        reachable: isReady(state),
        ...(reason !== undefined && { ready: false, reason }),
        ...(startedBy !== undefined && { started_by: startedBy }),
        ...('statusCode' in seen && { [code]: seen.statusCode }),
        ...(note !== undefined && { attempt_note: note }),
      },
    ]
  })
  return { ...Object.fromEntries(services), manual_hints: [...new Set(states.flatMap(({ hints = [] }) => hints))] }
}

function unreachable({ service, probe: seen, note }: ServiceState, data: object): PartialFailure {
  const answer = 'statusCode' in seen ? { statusCode: seen.statusCode, body: seen.body } : {}
  const message = `the ${service.name} service at ${service.target.baseUrl} is not reachable: ${note}`
  const exitCode = service.name === 'control' ? EXIT.controlUnreachable : EXIT.runtimeUnreachable
  return new PartialFailure(message, answer, data, exitCode)
}
