/**
 * The queue of tasks that are ready to run: the highest priority first. Of those with the same, tenants take turns, and the
 * tasks of a tenant are first in, first out. It is unbounded.
 */
import { tenantIn } from '../executors/runtime/request.ts'
import type { Task } from '../task/graph.ts'

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
    return this.#lines.find(({ isEmpty }) => !isEmpty)!.shift()
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
  readonly #tenants = new Map<string | undefined, Tenant>()
  /** Stands behind those that had their turns. It never ends, because it is asked only while there are others. */
  readonly #turns = this.#tenants.values()
  /** The only tenant, which `#turns` has passed and whose turn it is again. Undefined while `#turns` has the next one. */
  #only: Tenant | undefined
  /** Saves most services a new object whenever a task comes into an empty line. */
  readonly #unnamed = new Tenant(undefined)

  constructor(priority: number) {
    this.priority = priority
  }

  get isEmpty(): boolean {
    return this.#tenants.size === 0
  }

  /** False if `task` is there already. */
  add(task: Task): boolean {
    const name = tenantOf(task)
    const tenant = this.#tenants.get(name) ?? this.#enter(name)
    const before = tenant.tasks.size
    return tenant.tasks.add(task).size > before
  }

  /** False if `task` is not there. */
  delete(task: Task): boolean {
    const tenant = this.#tenants.get(tenantOf(task))
    if (tenant?.tasks.delete(task) !== true) return false
    if (tenant.tasks.size === 0) this.#leave(tenant)
    return true
  }

  shift(): Task {
    const tenant = this.#only ?? this.#turns.next().value!
    this.#only = this.#tenants.size === 1 ? tenant : undefined
    const task = tenant.shift()
    if (tenant.tasks.size === 0) this.#leave(tenant)
    else if (this.#only === undefined) {
      this.#tenants.delete(tenant.name)
      this.#tenants.set(tenant.name, tenant)
    }
    return task
  }

  #enter(name: string | undefined): Tenant {
    const tenant = name === undefined ? this.#unnamed : new Tenant(name)
    this.#tenants.set(name, tenant)
    return tenant
  }

  #leave(tenant: Tenant): void {
    this.#tenants.delete(tenant.name)
    if (this.#only === tenant) this.#only = undefined
  }
}

class Tenant {
  readonly name: string | undefined
  /** In the order in which they came. A task that waits for too long leaves at once, wherever it stands. */
  readonly tasks = new Set<Task>()
  /** Stands behind the taken tasks, and never ends either. */
  readonly #next = this.tasks.values()

  constructor(name: string | undefined) {
    this.name = name
  }

  shift(): Task {
    const task = this.#next.next().value!
    this.tasks.delete(task)
    return task
  }
}

/** Tasks for which no tenant is given literally are those of one tenant, undefined. */
const tenantOf = ({ type, input }: Task): string | undefined => (type === 'runtime' ? tenantIn(input) : undefined)
