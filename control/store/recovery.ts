/**
 * What a start finds in the data directory: the state file, and the journal of what came after it.
 *
 * Both are read and checked whole before anything is touched. The journal is replayed onto the entries of the state file
 * as plain data: a frame of a graph adds its tasks, a row of a task is its newest state where its number is higher.
 * A torn tail is cut off. Any other damage stops the start.
 */
import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../shared/errors.ts'
import { parseJson } from '../../shared/json-slices.ts'
import type { ProcessIdentity } from '../../shared/processes.ts'
import { atOnce } from '../../shared/slices.ts'
import { decodeTasks } from '../graph/decode.ts'
import type { Graph } from '../graph/graph.ts'
import { normalizeTool } from '../graph/normalize.ts'
import type { Task } from '../graph/task.ts'
import type { KeptKey } from './idempotency.ts'
import { readIdempotencyKeys } from './idempotency-file.ts'
import { FIRST_SEGMENT, segmentName, segmentNumber } from './journal.ts'
import { decodeSegment, type Frame } from './journal-format.ts'
import { decodeStates, type JournaledState } from './journaled-state.ts'
import { hasSnapshot, readSnapshot, refuseAccess, refuseFile, statePath } from './snapshot.ts'
import { recoverGraph, type StoredTask } from './stored-task.ts'

/** The payload of a frame of kind `g`. `body` is the submission as it came. */
export interface JournaledGraph {
  readonly graph_ordinal: number
  readonly graph_id: string
  readonly trace_id: string
  readonly created_at: string
  readonly body: unknown
  /** The key that the submission came with, and its answer. */
  readonly idempotency?: KeptKey
}

export interface Recovered {
  readonly graphs: readonly Graph[]
  /** What the attempts that a crash cut short had started; some of it may still run. */
  readonly processes: readonly ProcessIdentity[]
  /** Cancelled tasks whose attempts another service may not have ended yet. */
  readonly toLetGo: readonly Task[]
  /** Oldest first; the later of two with one name counts. */
  readonly idempotencyKeys: readonly KeptKey[]
  /** The highest numbers given out so far. */
  readonly lastSeq: number
  readonly lastOrdinal: number
  /** Segments that are there, oldest and newest; undefined when there are none. */
  readonly segments: { readonly oldest: number; readonly newest: number } | undefined
  /** Bytes of torn tails that were cut off. */
  readonly cutBytes: number
}

/** Throws `UsageError` with file, place and remedy; then nothing was changed. */
export async function recover(dataDir: string): Promise<Recovered> {
  const idempotencyKeys = readIdempotencyKeys(dataDir)
  const replay = new Replay(await readSnapshot(dataDir), idempotencyKeys)
  const numbers = readdirSync(dataDir)
    .map(segmentNumber)
    .filter((number) => number !== undefined)
    .sort((a, b) => a - b)
  // Segments go once a state file holds what they held, and the first of all has number 1.
  if (numbers.length > 0 && numbers[0] !== FIRST_SEGMENT && !hasSnapshot(dataDir))
    throw lostSnapshot(dataDir, numbers[0]!)
  const cuts: { path: string; length: number; torn: number }[] = []
  const steps: (() => void)[] = []
  for (const number of numbers) {
    const path = join(dataDir, segmentName(number))
    const bytes = readSegment(path)
    const segment = decodeSegment(bytes)
    const refuse = refuseFile('journal', path)
    if ('damagedAt' in segment) {
      throw refuse(`it is damaged at offset ${segment.damagedAt}, before records that were on disk for sure`)
    }
    for (const frame of segment.frames) steps.push(replay.read(frame, refuse))
    if (segment.end === 'torn') cuts.push({ path, length: segment.wholeBytes, torn: bytes.length - segment.wholeBytes })
  }
  for (const step of steps) step()
  const graphs = replay.graphs(refuseFile('state file', statePath(dataDir)))
  for (const { path, length } of cuts) truncateSync(path, length)
  const { lastSeq, lastOrdinal } = replay
  const segments = numbers.length === 0 ? undefined : { oldest: numbers[0]!, newest: numbers.at(-1)! }
  const { processes, toLetGo } = replay
  return {
    graphs,
    processes,
    toLetGo,
    idempotencyKeys,
    lastSeq,
    lastOrdinal,
    segments,
    cutBytes: cuts.reduce((sum, { torn }) => sum + torn, 0),
  }
}

const lostSnapshot = (dataDir: string, oldest: number) =>
  new UsageError(
    `the state file ${statePath(dataDir)} is gone, and ${segmentName(oldest)} holds only what came after it: ` +
      'put it back, or move the journal files away as well to begin anew',
  )

function readSegment(path: string): Uint8Array {
  try {
    return new Uint8Array(readFileSync(path))
  } catch (error) {
    throw refuseAccess('journal', path, error)
  }
}

class Replay {
  /** Entries of each graph by task id, deleted ones too, in the order of the graph. */
  readonly #graphs = new Map<number, Map<string, StoredTask>>()
  /** The graph whose task callers see under an id. */
  readonly #owners = new Map<string, number>()
  /** The order in which the graphs of the journal were taken in. */
  readonly #ranks = new Map<number, number>()
  /** Graphs that were refused after they had been written. */
  readonly #revoked = new Set<number>()
  lastSeq = 0
  lastOrdinal = 0

  /** Known once `graphs` has been called. */
  readonly toLetGo: Task[] = []
  readonly #idempotencyKeys: KeptKey[]

  constructor(snapshot: ReadonlyMap<string, StoredTask>, idempotencyKeys: KeptKey[]) {
    this.#idempotencyKeys = idempotencyKeys
    const ordinals = new Map<string, number>()
    for (const { graph_ordinal } of snapshot.values()) this.lastOrdinal = Math.max(this.lastOrdinal, graph_ordinal ?? 0)
    for (const [id, entry] of snapshot) {
      // Entries without a graph are one graph, as ids were global in the older form.
      const key = entry.graph_id ?? ''
      const ordinal = entry.graph_ordinal ?? ordinals.get(key) ?? ++this.lastOrdinal
      ordinals.set(key, ordinal)
      this.#entriesOf(ordinal).set(id, entry)
      this.#owners.set(id, ordinal)
      this.lastSeq = Math.max(this.lastSeq, entry.seq ?? 0)
    }
  }

  /** Notes what later steps must know of the frame, and gives the step that applies it once all frames were read. */
  read({ kind, payload }: Frame, refuse: (detail: string) => Error): () => void {
    if (kind === 't') {
      return () => {
        for (const state of statesIn(payload, refuse)) this.#applyState(state)
      }
    }
    const graph = parseJson(payload) as JournaledGraph
    this.lastOrdinal = Math.max(this.lastOrdinal, graph.graph_ordinal)
    if (kind === 'r') {
      this.#revoked.add(graph.graph_ordinal)
      return () => {}
    }
    this.#ranks.set(graph.graph_ordinal, this.#ranks.size)
    return () => this.#addGraph(graph, refuse)
  }

  /** A graph of the state file whose frame is gone is older than any that still has one. */
  #rankOf(ordinal: number): number {
    return this.#ranks.get(ordinal) ?? -1
  }

  #addGraph(graph: JournaledGraph, refuse: (detail: string) => Error): void {
    const { graph_ordinal, graph_id, trace_id, created_at, idempotency, body } = graph
    if (this.#revoked.has(graph_ordinal)) return
    if (idempotency !== undefined) this.#idempotencyKeys.push(idempotency)
    // What the state file lacks of a graph that it knows was deleted or replaced before it was written.
    const isKnown = this.#graphs.has(graph_ordinal)
    const entries = this.#entriesOf(graph_ordinal)
    for (const input of atOnce(decodeTasks(body))) {
      const { id } = input
      if (!id || !input.type) throw refuse('it holds a graph with a task that has no id or type')
      const owner = this.#owners.get(id) ?? graph_ordinal
      const isReplaced = owner !== graph_ordinal && this.#rankOf(owner) > this.#rankOf(graph_ordinal)
      if (!entries.has(id)) {
        const { type, toolName } = normalizeTool(input.type, input.tool_name ?? undefined)
        const tool = toolName === undefined ? {} : { tool_name: toolName }
        const entry = { ...input, type, ...tool, graph_id, graph_ordinal, trace_id, created_at, status: 'pending' }
        entries.set(id, { ...entry, ...((isKnown || isReplaced) && { deleted: true }) } as StoredTask)
      }
      if (isReplaced) continue
      if (owner !== graph_ordinal) this.#hide(id) // it took the id over, whatever became of its own task since
      if (entries.get(id)!.deleted) this.#owners.delete(id)
      else this.#owners.set(id, graph_ordinal)
    }
  }

  #applyState(state: JournaledState): void {
    const { id, seq, graph_ordinal, ...changed } = state
    this.lastSeq = Math.max(this.lastSeq, seq)
    const entries = this.#graphs.get(graph_ordinal)
    if (entries === undefined) return
    // A task that its graph does not show was deleted or replaced; what became of it still decides about others.
    const entry = entries.get(id) ?? ({ id, type: 'os', deleted: true } as StoredTask)
    if ((entry.seq ?? 0) >= seq) return
    entries.set(id, { ...withoutState(entry), ...changed, seq } as StoredTask)
    if (state.deleted && this.#owners.get(id) === graph_ordinal) this.#owners.delete(id)
  }

  /** What was under `id` is replaced: its outcome still decides about others of its graph. */
  #hide(id: string): void {
    const entries = this.#graphs.get(this.#owners.get(id) ?? 0)
    const entry = entries?.get(id)
    if (entries !== undefined && entry !== undefined) entries.set(id, { ...entry, deleted: true })
  }

  get processes(): ProcessIdentity[] {
    const entries = [...this.#graphs.values()].flatMap((graph) => [...graph.values()])
    return entries.map((entry) => entry.process).filter((process) => process !== undefined)
  }

  graphs(refuse: (detail: string) => Error): Graph[] {
    return [...this.#graphs].flatMap(([ordinal, entries]) => {
      const all = [...entries.values()]
      const isGone = all.every((entry) => entry.deleted)
      if (isGone && !all.some(isToLetGo)) return []
      const graph = recoverGraph(ordinal, all, refuse)
      this.toLetGo.push(...graph.tasks.filter((_, position) => all[position] && isToLetGo(all[position])))
      return isGone ? [] : [graph]
    })
  }

  #entriesOf(ordinal: number): Map<string, StoredTask> {
    let entries = this.#graphs.get(ordinal)
    if (entries === undefined) {
      entries = new Map()
      this.#graphs.set(ordinal, entries)
    }
    return entries
  }
}

function statesIn(payload: Uint8Array, refuse: (detail: string) => Error): JournaledState[] {
  try {
    return decodeStates(new TextDecoder().decode(payload))
  } catch {
    throw refuse('it holds states of tasks in a form that this version does not know')
  }
}

/** Whether its attempt was being ended elsewhere. */
const isToLetGo = ({ status, handle_id }: StoredTask) => status === 'cancelling' && handle_id !== undefined

/** What of an entry never changes. A state replaces all of the rest, also by leaving things out. */
function withoutState(entry: StoredTask): Partial<StoredTask> {
  const { status, run_status, attempt, interrupted_attempts, process, handle_id, handle_taken, ...rest } = entry
  const { result, result_file, error, runtime, progress, updated_at, started_at, finished_at, ...identity } = rest
  return identity
}
