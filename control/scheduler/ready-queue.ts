/**
 * The queue of tasks that are ready to run: the highest priority first. Of those with the same, tenants take turns, and the
 * tasks of a tenant are first in, first out. It is unbounded.
 */
import { tenantIn } from '../executors/runtime/request.ts'
import type { Task } from '../task/graph.ts'
import { Places } from './places.ts'

/** Maximum tasks that count as queued. Further tasks count as a backlog. Source: spec, Limits A. */
export const READY_QUEUE_CAPACITY = 1024

export class ReadyQueue {
  readonly #onPush: (task: Task) => void
  /** One for each priority that a task had, the highest first. */
  readonly #lines: Line[] = [new Line(0)]
  #size = 0

  constructor(onPush: (task: Task) => void = () => {}) {
    this.#onPush = onPush
  }

  /** Number of queued tasks without the backlog. */
  get length(): number {
    return Math.min(this.#size, READY_QUEUE_CAPACITY)
  }

  push(task: Task): void {
    if (this.#lineOf(task.priority).add(task)) this.#size++
    this.#onPush(task)
  }

  shift(): Task | undefined {
    if (this.#size === 0) return undefined
    this.#size--
    let at = 0
    while (this.#lines[at]!.isEmpty) at++
    return this.#lines[at]!.shift()
  }

  /** `task` is queued no longer; it may be pushed again. */
  withdraw(task: Task): void {
    if (this.#lineOf(task.priority).delete(task)) this.#size--
  }

  #lineOf(priority: number): Line {
    let at = 0
    while (at < this.#lines.length && this.#lines[at]!.priority > priority) at++
    const found = this.#lines[at]
    if (found?.priority === priority) return found
    const line = new Line(priority)
    this.#lines.splice(at, 0, line)
    return line
  }
}

class Line {
  readonly priority: number
  /** The tenants with tasks, in the order of their turns. */
  readonly #turns = new Places<Tenant>()
  readonly #named = new Map<string, Tenant>()
  readonly #unnamed = new Tenant(undefined)

  constructor(priority: number) {
    this.priority = priority
  }

  get isEmpty(): boolean {
    return this.#turns.size === 0
  }

  /** False if `task` is there already. */
  add(task: Task): boolean {
    const name = tenantOf(task)
    const tenant = name === undefined ? this.#unnamed : (this.#named.get(name) ?? this.#enter(name))
    this.#turns.add(tenant)
    return tenant.tasks.add(task)
  }

  /** False if `task` is not there. */
  delete(task: Task): boolean {
    const name = tenantOf(task)
    const tenant = name === undefined ? this.#unnamed : this.#named.get(name)
    if (tenant?.tasks.delete(task) !== true) return false
    if (tenant.tasks.size === 0) this.#leave(tenant)
    return true
  }

  shift(): Task {
    const tenant = this.#turns.first!
    const task = tenant.tasks.first!
    tenant.tasks.delete(task)
    if (tenant.tasks.size === 0) this.#leave(tenant)
    else if (this.#turns.size > 1) {
      this.#turns.delete(tenant)
      this.#turns.add(tenant)
    }
    return task
  }

  #enter(name: string): Tenant {
    const tenant = new Tenant(name)
    this.#named.set(name, tenant)
    return tenant
  }

  #leave(tenant: Tenant): void {
    this.#turns.delete(tenant)
    if (tenant.name !== undefined) this.#named.delete(tenant.name)
  }
}

class Tenant {
  readonly name: string | undefined
  place = 0
  readonly tasks = new Places<Task>()

  constructor(name: string | undefined) {
    this.name = name
  }
}

/** Tasks for which no tenant is given literally are those of one tenant, undefined. */
const tenantOf = ({ graph, type, input }: Task): string | undefined =>
  graph.tenant ?? (type === 'runtime' ? tenantIn(input) : undefined)
