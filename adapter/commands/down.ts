/** `taskmill down`: ends the services that `taskmill up` started. */
import type { CapacityResponse } from '../../shared/contract/capacity.ts'
import type { ServiceClient } from '../../shared/http/client.ts'
import { duration } from '../../shared/settings/flags.ts'
import { controlClient } from '../client.ts'
import { type Answer, success } from '../envelope.ts'
import { lastServices, ownServices, unrecordedControl } from '../own-services/record.ts'
import { onePerUser } from '../own-services/state-dir.ts'
import { defineCommand } from './command.ts'

/** Milliseconds for the question what runs. A service that does not answer is ended all the same. */
const LOOK_MS = 5_000

/** Milliseconds to wait for a `taskmill up` that is under way. */
const OTHERS_MS = 60_000

export const down = defineCommand({
  summary: 'End the services that taskmill up started, and say what they were running.',
  usage: '[--timeout 1m]',
  settings: {
    timeout: duration({
      default: '1m',
      minMs: 0,
      maxMs: 3_600_000,
      help: 'Maximum wait for running attempts and the end of the services. After it, attempts are ended; they run again after the next start.',
    }),
  },
  maxArguments: 0,
  async run({ values: { timeout }, env }): Promise<Answer> {
    const { endServices, leftRuntime } = await import('../start/down.ts')
    return onePerUser(env, OTHERS_MS, async () => {
      const services = ownServices(env)
      const stray = unrecordedControl(env)
      if (stray !== undefined) {
        await endServices({ pid: stray.pid, process: stray }, env, timeout)
        return success({ stopped: true, pid: stray.pid })
      }
      const record = lastServices(env)
      if (record === undefined || (services === undefined && leftRuntime(env) === undefined)) {
        return success({ stopped: false, note: 'taskmill up has not started services, or they have ended' })
      }
      const running = services === undefined ? undefined : await whatRuns(controlClient(services.url, services.token))
      await endServices(record, env, timeout)
      const { url, pid } = record
      return { ...success({ stopped: true, url, pid, ...(running && { running }) }), warnings: warningsOf(running) }
    })
  },
})

/** What ran when the end began. */
interface Running {
  /** Attempts of the control service, those in the runtime service included. */
  readonly attempts: number
  /** Tasks of the runtime service, which run on. */
  readonly runtime_tasks: number
}

async function whatRuns(client: ServiceClient): Promise<Running | undefined> {
  try {
    const answer = await client.call({ method: 'GET', path: '/runtime', timeoutMs: LOOK_MS })
    const { slots, runtime } = answer as CapacityResponse
    return { attempts: slots.used, runtime_tasks: runtime.reserved?.task_slots ?? 0 }
  } catch {
    return undefined
  }
}

function warningsOf(running: Running | undefined): string[] {
  if (running === undefined) return []
  const { attempts, runtime_tasks: count } = running
  const ownAttempts = Math.max(0, attempts - count)
  const itsTasks = count === 1 ? '1 task of the runtime service runs' : `${count} tasks of the runtime service run`
  return [
    ...(count > 0 ? [`${itsTasks} on without the services; the next taskmill up takes up the outcome`] : []),
    ...(ownAttempts > 0 ? ['attempts that could not finish in time run again after the next taskmill up'] : []),
  ]
}
