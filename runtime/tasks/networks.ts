/**
 * The networks of tasks that have rules: each has a proxy from its launch to its end, also over a restart of the service.
 *
 * The rules are those of the plan: what a task was promised does not change while it waits.
 */

import { messageOf } from '../../shared/contract/errors.ts'
import type { ExecutionPlan, ResourceUsage } from '../../shared/contract/runtime.ts'
import type { NetworkRules } from '../../shared/contract/runtime-request.ts'
import type { TaskNetwork } from '../../shared/contract/task-network.ts'
import type { SecretFile } from '../../shared/files/secret-values.ts'
import { hasOpenedRules } from '../../shared/request/network-rules.ts'
import { placeholdersIn, placeholderText } from '../../shared/request/placeholder.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { CERTIFICATES_FILE } from '../egress/authority.ts'
import type { EgressTotals } from '../egress/egress.ts'
import type { NetworkUse } from '../egress/network-use.ts'
import { taskNetwork } from '../egress/report.ts'
import { readEvents, type TaskEvent } from '../store/events.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { TaskRow } from '../store/tasks.ts'
import type { Ground } from './context.ts'
import type { Ending } from './ending.ts'

type NetworksContext = Pick<Ground, 'egress' | 'authority' | 'secrets' | 'store' | 'log'>

export class Networks {
  readonly #context: NetworksContext

  constructor(context: NetworksContext) {
    this.#context = context
  }

  /** Serves the network of a task. Returns the path of its socket; undefined if its plan has no rules. Throws. */
  open(task: LiveTask): string | undefined {
    const rules = rulesIn(task.plan)
    if (rules === undefined) return undefined
    const { egress, secrets, store } = this.#context
    const { execution, control_context } = store.requestOf(task.task_id)
    return egress.open({
      ...{ task_id: task.task_id, ordinal: task.row.ordinal, rules },
      isTenantOnly: control_context.tenant_only === true,
      ...(hasOpenedRules(rules) && { placeholders: placeholdersOf(task.task_id, execution) }),
      readSecret: (name, to) => secrets.carried(name, control_context, to),
      earlier: readEvents(task.events),
      onEvent: (event) => {
        if (!task.isEnding) store.note(task, { patch: {}, events: [event] })
      },
    })
  }

  /**
   * The certificates that a task trusts whose rules are about single requests, as a file for its workspace. Nothing for other
   * tasks. Throws.
   */
  certificates(task: LiveTask): readonly SecretFile[] {
    const rules = rulesIn(task.plan)
    if (rules === undefined || !hasOpenedRules(rules)) return []
    return [{ variable: 'SSL_CERT_FILE', names: CERTIFICATES_FILE, value: this.#context.authority.bundle() }]
  }

  /** The same for a task that an earlier service launched. If it cannot be served, it reaches nothing. */
  adopt(task: LiveTask): void {
    try {
      this.open(task)
    } catch (error) {
      const { task_id } = task
      this.#context.log.error('cannot serve the network of a task: it reaches nothing', {
        task_id,
        cause: messageOf(error),
      })
    }
  }

  get totals(): EgressTotals {
    return this.#context.egress.totals
  }

  useOf(task: LiveTask): NetworkUse | undefined {
    return this.#context.egress.useOf(task.task_id)
  }

  /** What a task did on its network so far, with its `events`. */
  look({ task_id, usage }: Pick<TaskRow, 'task_id' | 'usage'>, events: readonly TaskEvent[]): TaskNetwork {
    const { egress } = this.#context
    const known = usage === null ? egress.useOf(task_id)?.usage : (JSON.parse(usage) as ResourceUsage).network
    return taskNetwork(known, egress.openOf(task_id), events)
  }

  /** Closes the network of a task of which nothing runs. Returns its end with what it used. */
  close(task: LiveTask, ending: Ending): Ending {
    const use = this.#context.egress.close(task.task_id)
    if (use === undefined || ending.usage === undefined) return ending
    return { ...ending, usage: { ...ending.usage, network: use.usage } }
  }

  /** The same where nothing is known of its end. */
  cut(task: LiveTask): void {
    this.#context.egress.close(task.task_id)
  }

  /** Removes what is kept of a network that nobody asks for any more. Never throws. */
  forget(taskId: string): void {
    const { egress, log } = this.#context
    try {
      egress.forget(taskId)
    } catch (error) {
      log.warn('cannot remove the sockets of ended tasks', { cause: messageOf(error) })
    }
  }

  /** Cuts all connections, before the service ends. The next service serves the tasks that still run. */
  stop(): void {
    this.#context.egress.stop()
  }

  removeStrays(): void {
    try {
      this.#context.egress.removeStrays()
    } catch (error) {
      this.#context.log.warn('cannot remove the sockets of ended tasks', { cause: messageOf(error) })
    }
  }
}

const placeholdersOf = (taskId: string, { env }: TaskRequest['execution']): ReadonlyMap<string, string> =>
  new Map(placeholdersIn(env).map(([, name]) => [placeholderText(taskId, name), name]))

const rulesIn = ({ effective_sandbox: { network } }: ExecutionPlan): NetworkRules | undefined =>
  typeof network === 'object' ? network : undefined
