/** `taskmill status`: whether the services of `taskmill up` run and are ready. For tasks there is `taskmill get`. */
import { UsageError } from '../../shared/contract/errors.ts'
import { type Answer, EXIT } from '../envelope.ts'
import { type OwnServices, ownServices } from '../own-services/record.ts'
import { type Probe, probe } from '../probe.ts'
import { defineCommand } from './command.ts'
import { servicesView } from './services-view.ts'

export const status = defineCommand({
  summary: 'Show whether the services that taskmill up started run and are ready. If not: exit code 1.',
  usage: '',
  settings: {},
  maxArguments: 1,
  async run({ positionals: [id], env }): Promise<Answer> {
    if (id !== undefined) {
      throw new UsageError(`status is about the services and takes no id (for a task or a graph: taskmill get ${id})`)
    }
    const services = ownServices(env)
    if (services === undefined)
      return { data: { running: false, note: 'taskmill up starts the services' }, exitCode: EXIT.error }
    const [control, runtime] = await states(services)
    const isReady = control.ready && runtime.ready
    const data = { running: true, control, runtime, ...servicesView(services, env) }
    return { data, exitCode: isReady ? EXIT.success : EXIT.error }
  },
})

interface State {
  readonly ready: boolean
  readonly reason?: string
}

async function states(services: OwnServices): Promise<[State, State]> {
  const { controlOf, runtimeOf } = await import('../start/up.ts')
  const [control, runtime] = await Promise.all([probe(controlOf(services)), probe(runtimeOf(services))])
  return [stateOf(control), stateOf(runtime)]
}

const stateOf = ({ outcome, fault }: Probe): State =>
  outcome === 'ready' ? { ready: true } : { ready: false, reason: fault }
