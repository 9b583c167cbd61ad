/**
 * What happens to a graph, as `docs/graphs.md` has it: the rules alone, without regard to speed, disk or time.
 *
 * The model shares no code with the service. Property tests tell it what the service did, one event after the other. It
 * notes a fault for each event that the rules do not allow, and says what the graph amounts to in the end.
 */

export interface ModelTask {
  readonly id: string
  readonly depends_on?: readonly string[]
  readonly run_if?: 'success' | 'failed' | 'always'
  readonly continue_on_error?: boolean
  /** A condition on the status of a direct dependency. */
  readonly when?: { readonly $from: string; readonly path: '/status' } & (
    | { readonly equals: string }
    | { readonly not: string }
    | { readonly in: readonly string[] }
  )
  /** It runs once for each element of this list, or of a list of another task. */
  readonly for_each?: unknown
  /** How many elements a list of another task has. */
  readonly elements?: number
  readonly max_parallel?: number
  readonly fail_fast?: boolean
  /** The members of a group. */
  readonly tasks?: readonly ModelTask[]
  /** It is one of `on_end`, for this state of the graph. */
  readonly at_end?: 'always' | 'success' | 'failed' | 'cancelled'
}

/** `gone`: its record was deleted before it ran. */
type State = 'waiting' | 'running' | 'success' | 'failed' | 'skipped' | 'cancelled' | 'gone'

type Counts = 'good' | 'neutral' | 'bad' | 'cancelled'

export class GraphModel {
  readonly faults: string[] = []
  readonly #tasks: readonly ModelTask[]
  readonly #states = new Map<string, State>()
  readonly #skippedAs = new Map<string, Counts>()
  readonly #deleted = new Set<string>()
  readonly #asked = new Set<string>()
  /** The children of each task that runs for each element of a list, once it has started. */
  readonly #children = new Map<string, readonly string[]>()
  /** For each child its parent. */
  readonly #parents = new Map<string, string>()
  /** The definitions of the children of groups, with the ids of the graph. */
  readonly #members = new Map<
    string,
    ModelTask & { readonly element: number; readonly whenPlace: string | undefined }
  >()
  /** Children that have started at least once. */
  readonly #startedChildren = new Set<string>()
  #isCancelled = false
  /** A cancel of the graph came when only its end was left. */
  #isEndCancelled = false
  /** The states of the graph since all but its end is over: the deletion of a record may change it. */
  readonly #endStates = new Set<string>()

  constructor(tasks: readonly ModelTask[]) {
    this.#tasks = tasks
    for (const { id } of tasks) this.#states.set(id, 'waiting')
  }

  stateOf(id: string): State {
    return this.#states.get(id)!
  }

  /** How a task that has ended counts for those that depend on it. */
  #countsAs(id: string): Counts | undefined {
    switch (this.stateOf(id)) {
      case 'success':
        return 'good'
      case 'failed':
        return this.#task(id).continue_on_error ? 'good' : 'bad'
      case 'skipped':
        return this.#skippedAs.get(id)!
      case 'cancelled':
      case 'gone':
        return 'cancelled'
      default:
        return undefined
    }
  }

  /** Of a child that is no member of a group the definition of its parent. */
  #task(id: string): ModelTask {
    const member = this.#members.get(id)
    if (member !== undefined) return member
    const own = this.#parents.get(id) ?? id
    return this.#tasks.find((task) => task.id === own)!
  }

  #dependencies(id: string): readonly string[] {
    return this.#parents.has(id) && !this.#members.has(id) ? [] : (this.#task(id).depends_on ?? [])
  }

  #isMet(id: string): boolean {
    const { when } = this.#task(id)
    if (when === undefined) return true
    const status = this.stateOf(when.$from)
    if ('equals' in when) return status === when.equals
    return 'not' in when ? status !== when.not : when.in.includes(status)
  }

  /**
   * Without a record of the dependency the condition cannot be tested, and the task starts only to fail. The condition may
   * have been tested before the deletion.
   */
  #cannotBeTested(id: string): boolean {
    const { when } = this.#task(id)
    return when !== undefined && this.#deleted.has(when.$from)
  }

  #isAtEnd(id: string): boolean {
    return this.#task(id).at_end !== undefined
  }

  get #haveOthersEnded(): boolean {
    return this.open.every((id) => this.#isAtEnd(id))
  }

  #noteEnd(): void {
    if (this.#haveOthersEnded) this.#endStates.add(this.state)
  }

  mayStart(id: string): boolean {
    const { at_end } = this.#task(id)
    if (at_end !== undefined) {
      const isMet = at_end === 'always' ? this.#endStates.size > 0 : this.#endStates.has(at_end)
      return isMet && this.stateOf(id) === 'waiting' && !this.#isEndCancelled
    }
    const parent = this.#parents.get(id)
    const isMember = this.#members.has(id)
    if (parent !== undefined && !(isMember ? this.#mayStartMember(id, parent) : this.#mayStartChild(id, parent)))
      return false
    if (parent !== undefined && !isMember) return true
    return this.#dependenciesAllow(id) && (this.#isMet(id) || this.#cannotBeTested(id))
  }

  #dependenciesAllow(id: string): boolean {
    const counts = this.#dependencies(id).map((dependency) => this.#countsAs(dependency))
    if (this.stateOf(id) !== 'waiting' || this.#isCancelled || counts.includes(undefined)) return false
    switch (this.#task(id).run_if ?? 'success') {
      case 'always':
        return true
      case 'failed':
        return counts.includes('bad')
      case 'success': {
        if (counts.includes('bad') || counts.includes('cancelled')) return false
        return counts.length === 0 || counts.includes('good')
      }
    }
  }

  /** The errors with which a task may be skipped now, and how it counts then. */
  skips(id: string): ReadonlyMap<string, Counts> {
    const allowed = new Map<string, Counts>()
    if (this.#isAtEnd(id)) {
      const isOpen = this.stateOf(id) === 'waiting' && !this.#isEndCancelled
      for (const state of isOpen ? this.#endStates : [])
        if (![state, 'always'].includes(this.#task(id).at_end!))
          allowed.set(`condition not met: the graph ended as ${state}`, 'neutral')
      return allowed
    }
    if (this.stateOf(id) !== 'waiting' || this.#isCancelled || this.#asked.has(id)) return allowed
    if (this.#dependenciesAllow(id)) {
      const { when } = this.#task(id)
      const place = this.#members.get(id)?.whenPlace ?? `${when?.$from}${when?.path}`
      if (when !== undefined && !this.#isMet(id)) allowed.set(`condition not met: ${place}`, 'neutral')
      return allowed
    }
    const dependencies = this.#dependencies(id)
    const runIf = this.#task(id).run_if ?? 'success'
    const haveAllEnded = dependencies.every((dependency) => this.#countsAs(dependency) !== undefined)
    if (runIf === 'success') {
      for (const dependency of dependencies) {
        const counts = this.#countsAs(dependency)
        if (counts === 'bad' || counts === 'cancelled') allowed.set(this.#because(dependency), counts)
      }
      if (allowed.size === 0 && haveAllEnded) allowed.set(this.#because(dependencies[0]!), 'neutral')
    } else if (runIf === 'failed' && haveAllEnded) {
      const cancelled = dependencies.find((dependency) => this.#countsAs(dependency) === 'cancelled')
      if (cancelled === undefined) allowed.set('no dependency failed', 'neutral')
      else allowed.set(this.#because(cancelled), 'cancelled')
    }
    return allowed
  }

  #because(dependency: string): string {
    const state = this.stateOf(dependency)
    return `dependency ${dependency} ${state === 'gone' ? 'deleted' : state}`
  }

  /** An approval waits for its answer: it may run, and is not skipped any more. */
  /** The parent runs, and its rules leave room for one more. What has started once is started again after a restart. */
  #mayStartChild(id: string, parent: string): boolean {
    const { max_parallel = Number.POSITIVE_INFINITY, fail_fast = false } = this.#task(parent)
    const siblings = this.#children.get(parent)!
    const isStopped = fail_fast && siblings.some((sibling) => this.stateOf(sibling) === 'failed')
    if (isStopped && !this.#startedChildren.has(id)) return false
    const running = siblings.filter((sibling) => this.stateOf(sibling) === 'running').length
    const isWaiting = this.stateOf(id) === 'waiting' && this.stateOf(parent) === 'running'
    return isWaiting && !this.#isCancelled && running < max_parallel
  }

  /** The group runs, and its rules leave room for one more element, unless that of the task has begun. */
  #mayStartMember(id: string, parent: string): boolean {
    const { max_parallel = Number.POSITIVE_INFINITY, fail_fast = false } = this.#task(parent)
    const children = this.#children.get(parent)!
    const elementOf = (child: string) => this.#members.get(child)!.element
    const begun = new Set(children.filter((child) => this.#startedChildren.has(child)).map(elementOf))
    if (this.stateOf(parent) !== 'running' || this.#isCancelled) return false
    if (begun.has(elementOf(id))) return true
    if (fail_fast && children.some((child) => this.#countsAs(child) === 'bad' && this.stateOf(child) === 'failed'))
      return false
    const open = new Set(children.filter((child) => this.#countsAs(child) === undefined).map(elementOf))
    return [...begun].filter((element) => open.has(element)).length < max_parallel
  }

  asked(id: string): void {
    if (!this.mayStart(id)) this.#fault(id, 'was asked for')
    if (this.#asked.has(id)) this.#fault(id, 'was asked for twice')
    this.#asked.add(id)
  }

  /**
   * How an approval ends that is answered, or not in time. `error` is undefined after it was approved. One with a condition
   * that cannot be tested fails without being asked for.
   */
  answered(id: string, error: string | undefined): void {
    const failsUnasked = error !== undefined && this.#cannotBeTested(id)
    if (!this.#asked.has(id) && !failsUnasked) this.#fault(id, 'was answered')
    this.started(id)
    this.ended(id, error === undefined ? 'success' : 'failed', error)
  }

  started(id: string): void {
    if (!this.mayStart(id)) this.#fault(id, 'started')
    this.#states.set(id, 'running')
    if (this.#parents.has(id)) this.#startedChildren.add(id)
    else if (this.#runsByChildren(id) && !this.#children.has(id)) this.#expand(id)
  }

  #runsByChildren(id: string): boolean {
    const { for_each, tasks } = this.#task(id)
    return for_each !== undefined || tasks !== undefined
  }

  #expand(id: string): void {
    const { for_each, elements, tasks } = this.#task(id)
    const count = elements ?? (for_each as readonly unknown[] | undefined)?.length ?? 1
    if (tasks !== undefined) {
      for (let element = 0; element < count; element++) {
        const start = for_each === undefined ? id : `${id}[${element}]`
        for (const member of tasks) this.#addMember(id, member, start, element)
      }
      this.#children.set(
        id,
        [...this.#members.keys()].filter((child) => this.#parents.get(child) === id),
      )
      return
    }
    const children = Array.from({ length: count }, (_, i) => `${id}[${i}]`)
    this.#children.set(id, children)
    for (const child of children) {
      this.#parents.set(child, id)
      this.#states.set(child, 'waiting')
    }
  }

  #addMember(parent: string, member: ModelTask, start: string, element: number): void {
    const { depends_on = [], when } = member
    const id = `${start}/${member.id}`
    const whenPlace = when === undefined ? undefined : `${when.$from}${when.path}`
    this.#members.set(id, {
      ...member,
      ...{ id, element, whenPlace, depends_on: depends_on.map((other) => `${start}/${other}`) },
      ...(when !== undefined && { when: { ...when, $from: `${start}/${when.$from}` } }),
    })
    this.#parents.set(id, parent)
    this.#states.set(id, 'waiting')
  }

  /** A task with `for_each` starts without children: the record that has its list, or decides about it, was deleted. */
  startedToFail(id: string): void {
    const source = (this.#task(id).for_each as { readonly $from?: string } | undefined)?.$from
    const isListGone = source !== undefined && this.#deleted.has(source)
    if (!this.mayStart(id) || !(isListGone || this.#cannotBeTested(id))) this.#fault(id, 'started without a list')
    this.#states.set(id, 'running')
    this.#children.set(id, [])
  }

  /** Whether a task that has children must not end so. A deleted child has no result. */
  #endsOddly(id: string, status: string, children: readonly string[]): boolean {
    if (children.some((child) => this.#countsAs(child) === undefined)) return true
    if (this.#deleted.has(id)) return false // its children are deleted with it, be it while its outcome is determined
    const isGood = children.every((child) => !this.#deleted.has(child) && this.#endsWell(child))
    return status === 'success' ? !isGood : status === 'failed' && isGood && children.length > 0
  }

  #endsWell(child: string): boolean {
    const state = this.stateOf(child)
    if (state === 'success' || !this.#members.has(child)) return state === 'success'
    return state === 'skipped' || (state === 'failed' && this.#countsAs(child) === 'good')
  }

  /** The service stopped: the attempt will be repeated. */
  interrupted(id: string): void {
    if (this.stateOf(id) !== 'running') this.#fault(id, 'was interrupted')
    this.#states.set(id, this.#deleted.has(id) ? 'gone' : 'waiting')
    this.#noteEnd()
  }

  ended(id: string, status: string, error: string | undefined): void {
    const state = this.stateOf(id)
    const children = this.#children.get(id)
    if (children !== undefined && this.#endsOddly(id, status, children))
      this.#fault(id, `ended before its children: ${status}`)
    if (status === 'success' || status === 'failed') {
      if (state !== 'running') this.#fault(id, `ended: ${status}`)
    } else if (status === 'cancelled') {
      if (state !== 'running' && state !== 'waiting') this.#fault(id, 'was cancelled')
    } else {
      const counts = this.skips(id).get(error ?? '')
      if (counts === undefined) this.#fault(id, `was skipped: ${error}`)
      this.#skippedAs.set(id, counts ?? 'bad')
    }
    this.#states.set(id, status as State)
    this.#noteEnd()
  }

  /** A running task goes on without a record. */
  deleted(id: string): void {
    this.#deleted.add(id)
    if (this.stateOf(id) === 'waiting') this.#states.set(id, 'gone')
    this.#noteEnd()
  }

  /** All that has not ended becomes cancelled: nothing starts any more, and nothing is skipped. Its end follows, unless only that is left. */
  graphCancelled(): void {
    if (this.#haveOthersEnded) this.#isEndCancelled = true
    this.#isCancelled = true
  }

  #fault(id: string, what: string): void {
    const others = this.#dependencies(id).map((dependency) => `${dependency} ${this.#countsAs(dependency)}`)
    this.faults.push(`${id} (${this.stateOf(id)}; ${others.join(', ')}) ${what}`)
  }

  /** Tasks and children that have not ended. */
  get open(): string[] {
    return [...this.#states.keys()].filter((id) => this.#countsAs(id) === undefined)
  }

  /** What the graph amounts to once nothing is open. Deleted tasks do not count. */
  get state(): string {
    const seen = this.#tasks.filter(({ id, at_end }) => at_end === undefined && !this.#deleted.has(id))
    if (seen.some(({ id, continue_on_error }) => this.stateOf(id) === 'failed' && !continue_on_error)) return 'failed'
    const isLost = ({ id }: ModelTask) =>
      this.stateOf(id) === 'cancelled' || (this.stateOf(id) === 'skipped' && this.#skippedAs.get(id) !== 'neutral')
    return seen.some(isLost) ? 'cancelled' : 'success'
  }

  /** Returns how the group ends. */
  #runMembers(children: readonly string[], outcomes: (id: string) => 'success' | 'failed'): 'success' | 'failed' {
    for (let isDone = false; !isDone; ) {
      isDone = true
      for (const child of children) {
        const [skip] = this.skips(child).keys()
        if (!this.mayStart(child) && skip === undefined) continue
        isDone = false
        if (this.mayStart(child)) this.#runChild(child, outcomes(child))
        else this.ended(child, 'skipped', skip)
      }
    }
    // fail_fast
    for (const child of children) if (this.stateOf(child) === 'waiting') this.ended(child, 'cancelled', undefined)
    return children.every((child) => this.#endsWell(child)) ? 'success' : 'failed'
  }

  #runChild(child: string, outcome: 'success' | 'failed'): void {
    if (!this.mayStart(child)) {
      this.ended(child, 'cancelled', undefined) // fail_fast
      return
    }
    this.started(child)
    this.ended(child, outcome, undefined)
  }

  /** Runs the graph by itself. `outcomes` says how each task ends if it runs. */
  static run(tasks: readonly ModelTask[], outcomes: (id: string) => 'success' | 'failed'): GraphModel {
    const model = new GraphModel(tasks)
    for (let isDone = false; !isDone; ) {
      isDone = true
      for (const id of model.open) {
        const [skip] = model.skips(id).keys()
        if (!model.mayStart(id) && skip === undefined) continue
        isDone = false
        if (model.mayStart(id)) {
          model.started(id)
          const children = model.#children.get(id) ?? []
          const isGroup = model.#task(id).tasks !== undefined
          if (!isGroup) for (const child of children) model.#runChild(child, outcomes(child))
          model.ended(id, isGroup ? model.#runMembers(children, outcomes) : outcomes(id), undefined)
        } else model.ended(id, 'skipped', skip)
      }
    }
    return model
  }
}
