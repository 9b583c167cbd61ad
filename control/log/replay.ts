/**
 * Replay: applies the journal to the graphs of the packs, or to the entries of the state file, and has graphs built from the
 * result.
 *
 * These entries come first, then the frames of the journal. A frame of a graph adds its tasks. A state of a task replaces
 * states with lower sequence numbers. If the journal does not mention a graph, the graph is built as soon as its entries are
 * read. That frees the entries, which take five times as much memory as the tasks.
 */

import type { TaskInput } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { inRanges, runSync, type Steps } from '../../shared/process/steps.ts'
import { msOf } from '../../shared/text/iso-time.ts'
import { isObject } from '../../shared/text/json.ts'
import { childId } from '../rules/child-ids.ts'
import { decodeTasks } from '../rules/decode.ts'
import type { Failure } from '../rules/failure.ts'
import { NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import { memberId } from '../rules/group-rule.ts'
import { normalizeTool } from '../rules/normalize.ts'
import { onEndTasks } from '../rules/on-end.ts'
import type { Pause } from '../rules/pause.ts'
import { Graph } from '../task/graph.ts'
import { inputFields } from '../task/known-fields.ts'
import { withoutState } from '../task/task-fields.ts'
import { entriesOfRows } from './compacted-graph.ts'
import type { GcSchedule } from './gc-schedule.ts'
import { nameOf } from './idempotency.ts'
import type { Frame } from './journal-format.ts'
import type { JournaledChange } from './journaled-change.ts'
import { decodeFanOut, isStoredFanOut, type JournaledFanOut } from './journaled-fan-out.ts'
import {
  decodeGraph,
  decodeGraphInSteps,
  graphOrdinalIn,
  type JournaledGraph,
  optionsIn,
  reusedOutcomes,
} from './journaled-graph.ts'
import { decodePatch, type JournaledPatch } from './journaled-patch.ts'
import { decodeRows, decodeStates, type JournaledChanges, type JournaledState } from './journaled-state.ts'
import type { Mentions } from './mentions.ts'
import { graphPauseNote, type NoteRow, Notes } from './notes.ts'
import type { PackedGraph } from './packs.ts'
import { patchesIn } from './recovered-graph.ts'
import { ReplayedGraphs, type ToldState } from './replayed-graphs.ts'
import { isKnownToService, type StoredTask, type Writable, withStoredWhen } from './stored-task.ts'

/** Thrown if the state file was edited: the tasks of a graph are not adjacent, or a task is there twice. */
class OutOfOrder extends Error {}

export class Replay {
  /**
   * For each graph its entries by task id, including deleted ones, in the order of the graph. Or the graph itself, if
   * no frame of the journal can change it.
   */
  readonly #graphs = new Map<number, Map<string, StoredTask> | Graph>()
  /** For each id of the service the number of the graph whose task has it. */
  readonly #owners = new Map<string, number>()
  /** The order in which the graphs of the journal were accepted. */
  readonly #ranks = new Map<number, number>()
  /** For each patched graph the order in which its new tasks got their ids. */
  readonly #rankOfAdded = new Map<number, Map<string, number>>()
  #nextRank = 0
  /** Graphs that were refused after they had been written. */
  readonly #revoked = new Set<number>()
  /** Graphs that a caller deleted or retention removed, with all of their tasks. */
  readonly #deleted = new Set<number>()
  /** Undefined: all graphs are built after the whole journal. */
  readonly #mentions: Mentions | undefined
  readonly #seen = new Set<string>()
  /** Entries of an older state file, by graph id. Their graphs get numbers after those of all others are known. */
  readonly #unnumbered = new Map<string, Map<string, StoredTask>>()
  /** The graph that the last entry belongs to. */
  #current: number | undefined
  lastSeq = 0
  lastOrdinal = 0

  /** For each graph the tasks with reused outcomes for which the journal has no number. */
  readonly #unnumberedReuse = new Map<number, Set<string>>()
  /** The state that an earlier start gave to a task and told, by graph and task. */
  readonly #told = new Map<number, Map<string, ToldState>>()
  /** Graphs that were accepted or have ended, and those for which the journal has the number of that change. */
  readonly accepted = { graphs: new Set<number>(), numbered: new Set<number>() }
  readonly ended = { graphs: new Set<number>(), numbered: new Set<number>() }
  readonly notes = new Notes()

  /** Graphs of packs that a snapshot has to write again, or that are gone. */
  readonly packed = new Map<number, PackedGraph>()

  /** What was built. Complete once `graphs` has been called. */
  readonly built: ReplayedGraphs
  readonly #collections: GcSchedule

  /** Attempts that were cut off fail with `failure`; without one they run again. */
  constructor(collections: GcSchedule, mentions?: Mentions, failure?: Failure) {
    this.built = new ReplayedGraphs({
      ...{ removed: this.#deleted, untoldReuse: this.#unnumberedReuse, told: this.#told },
      ...{ ended: this.ended.graphs, failure },
    })
    this.#collections = collections
    this.#mentions = mentions
  }

  /** Adds the next entry of the state file. Throws `OutOfOrder`, or the error that `refuse` makes. */
  addEntry(key: string, entry: StoredTask, refuse: (detail: string) => Error): void {
    if (this.#mentions !== undefined) {
      if (this.#seen.has(key)) throw new OutOfOrder()
      this.#seen.add(key)
    }
    this.collectIfDue()
    this.lastSeq = Math.max(this.lastSeq, entry.seq ?? 0)
    const ordinal = entry.graph_ordinal
    if (ordinal === undefined) {
      // Entries without a graph form one graph: in older files ids were global.
      const graphId = entry.graph_id ?? ''
      const entries = this.#unnumbered.get(graphId) ?? new Map<string, StoredTask>()
      this.#unnumbered.set(graphId, entries.set(entry.id, entry))
      return
    }
    this.lastOrdinal = Math.max(this.lastOrdinal, ordinal)
    if (ordinal !== this.#current) {
      this.#closeGraph(refuse)
      if (this.#mentions !== undefined && this.#graphs.has(ordinal)) throw new OutOfOrder()
      this.#current = ordinal
    }
    this.#entriesOf(ordinal).set(entry.id, entry)
  }

  /**
   * Adds a graph of a pack: its entries, or the graph itself if it has ended. `lastSeq` is the highest number of its changes.
   * Throws the error that `refuse` makes.
   */
  addPacked(
    place: PackedGraph,
    content: Graph | readonly StoredTask[],
    lastSeq: number,
    refuse: (detail: string) => Error,
  ): void {
    const { ordinal } = place
    this.raise(lastSeq, ordinal)
    const isBuilt = content instanceof Graph
    const ids = isBuilt ? (content.isScoped ? [] : idsInService(content)) : idsIn(content)
    if (this.#mentions?.has(ordinal, ids) !== false) {
      const entries = isBuilt ? entriesOfRows(content) : content
      this.#graphs.set(ordinal, new Map(entries.map((entry) => [entry.id, entry])))
      this.packed.set(ordinal, place)
      return
    }
    const graph = isBuilt ? content : runSync(this.built.build(ordinal, content, refuse))
    if (graph === undefined) {
      this.packed.set(ordinal, place)
      return
    }
    this.#graphs.set(ordinal, graph)
    const isAsPacked = isBuilt || content.every(({ status }) => isTerminal(status))
    if (isAsPacked) Object.assign(graph, { pack: place.pack, packBytes: place.packBytes })
    else this.packed.set(ordinal, place)
  }

  /** Adds notes of the newest pack. */
  addPackedNotes(notes: readonly NoteRow[]): void {
    this.notes.isPacked = true
    for (const note of notes) this.notes.apply(note)
  }

  /** Called for each entry that was read. */
  collectIfDue(): void {
    if (this.#collections.isDue()) Bun.gc(true)
  }

  /** All changes and graphs so far had numbers up to these. */
  raise(lastSeq: number, lastOrdinal: number): void {
    this.lastSeq = Math.max(this.lastSeq, lastSeq)
    this.lastOrdinal = Math.max(this.lastOrdinal, lastOrdinal)
  }

  /** Called after the last entry. */
  endEntries(refuse: (detail: string) => Error): void {
    this.#closeGraph(refuse)
    this.#seen.clear()
    for (const entries of this.#unnumbered.values()) this.#graphs.set(++this.lastOrdinal, entries)
    for (const [ordinal, entries] of this.#graphs) {
      if (entries instanceof Map) for (const id of idsOfService(entries)) this.#owners.set(id, ordinal)
    }
  }

  /** All entries of the current graph were read: builds it unless the journal mentions it. */
  #closeGraph(refuse: (detail: string) => Error): void {
    const ordinal = this.#current
    if (ordinal === undefined || this.#mentions === undefined) return
    const entries = this.#entriesOf(ordinal)
    if (this.#mentions.has(ordinal, idsOfService(entries))) return
    const graph = runSync(this.built.build(ordinal, [...entries.values()], refuse))
    if (graph === undefined) this.#graphs.delete(ordinal)
    else this.#graphs.set(ordinal, graph)
  }

  /** Notes revocations and deletions, which earlier frames depend on. Called for all frames before `apply`. */
  note({ kind, payload }: Frame): void {
    if (kind === 't' || kind === 'x') return
    if (kind === 'm') {
      this.#notePatch(decodePatch(payload))
      return
    }
    const graph_ordinal = graphOrdinalIn(payload)
    this.lastOrdinal = Math.max(this.lastOrdinal, graph_ordinal)
    if (kind === 'r') this.#revoked.add(graph_ordinal)
    else if (kind === 'd') this.#deleted.add(graph_ordinal)
    else this.#ranks.set(graph_ordinal, this.#nextRank++)
  }

  #notePatch({ graph_ordinal, tasks }: JournaledPatch): void {
    const ranks = this.#rankOfAdded.get(graph_ordinal) ?? new Map<string, number>()
    this.#rankOfAdded.set(graph_ordinal, ranks)
    for (const { id } of tasks) ranks.set(id!, this.#nextRank)
    this.#nextRank++
  }

  /** Applies a frame. Called for all frames in order. Returns the highest sequence number in it, or 0. */
  apply(frame: Frame, refuse: (detail: string) => Error): number {
    if (frame.kind === 'g') runSync(this.#addGraph(decodeGraph(frame.payload), refuse))
    else return runSync(this.applyInSteps(frame, refuse))
    return 0
  }

  /** As `apply`. */
  *applyInSteps(frame: Frame, refuse: (detail: string) => Error): Steps<number> {
    const { kind, payload } = frame
    if (kind === 'g') yield* this.#addGraph(yield* decodeGraphInSteps(payload), refuse)
    if (kind === 'm') {
      const patch = decodePatch(payload)
      const seq = yield* this.#applyPatch(patch, refuse)
      return patch.states === undefined ? seq : Math.max(seq, this.#applyRows(decodeRows(patch.states)))
    }
    if (kind === 'x') yield* this.#addChildren(decodeFanOut(payload), refuse)
    return kind === 't' ? this.#applyStates(frame, refuse) : 0
  }

  /** A frame has the states of a few thousand tasks at most. */
  #applyStates({ payload }: Frame, refuse: (detail: string) => Error): number {
    return this.#applyRows(changesIn(payload, refuse))
  }

  #applyRows({ states, changes, notes }: JournaledChanges): number {
    for (const note of notes) this.notes.apply(note)
    let highest = 0
    for (const state of states) {
      this.#applyState(state)
      highest = Math.max(highest, state.seq)
    }
    for (const change of changes) {
      this.#applyChange(change)
      highest = Math.max(highest, change.seq)
    }
    this.lastSeq = Math.max(this.lastSeq, highest)
    return highest
  }

  #applyChange({ kind, graph_ordinal, seq, id = '', state, pause, idempotency }: JournaledChange): void {
    if (idempotency !== undefined) this.notes.apply([null, 'key', nameOf(idempotency), idempotency])
    if (kind === 'accepted') this.accepted.numbered.add(graph_ordinal)
    else if (kind === 'ended') this.ended.numbered.add(graph_ordinal)
    else if (kind === 'retried') this.#noteRetried(graph_ordinal)
    else if (kind === 'removed') this.#deleted.add(graph_ordinal)
    else if (kind === 'reused') this.#unnumberedReuse.get(graph_ordinal)?.delete(id)
    else if (kind === 'paused' || kind === 'resumed') this.notes.apply(graphPauseNote(graph_ordinal, pause))
    else if (kind === 'deleted') this.#noteDeleted(graph_ordinal, id)
    else if (kind === 'recovered' && state !== undefined) {
      const ofGraph = this.#told.get(graph_ordinal) ?? new Map<string, ToldState>()
      this.#told.set(graph_ordinal, ofGraph.set(id, { seq, status: state.status }))
    }
  }

  /** The graph is live again: the next end has a number of its own. */
  #noteRetried(ordinal: number): void {
    this.ended.graphs.delete(ordinal)
    this.ended.numbered.delete(ordinal)
  }

  /** A start that deletes a child with its parent writes the deletion, but no state. */
  #noteDeleted(ordinal: number, id: string): void {
    const entries = this.#graphs.get(ordinal)
    const entry = entries instanceof Map ? entries.get(id) : undefined
    if (entry?.parent !== undefined) (entries as Map<string, StoredTask>).set(id, { ...entry, deleted: true })
  }

  /** A graph whose frame was removed is older than all graphs that still have one. */
  #rankOf(ordinal: number, id: string): number {
    return this.#rankOfAdded.get(ordinal)?.get(id) ?? this.#ranks.get(ordinal) ?? -1
  }

  *#addGraph(graph: JournaledGraph, refuse: (detail: string) => Error): Steps<void> {
    const {
      graph_ordinal,
      graph_id,
      trace_id,
      trace_state,
      submitted_by,
      tenant,
      created_at,
      idempotency,
      note,
      body,
    } = graph
    if (this.#revoked.has(graph_ordinal)) return
    if (idempotency !== undefined) this.notes.apply([null, 'key', nameOf(idempotency), idempotency])
    if (note !== undefined) this.notes.apply(note)
    // A task that the state file lacks, of a graph that it has, was deleted before the file was written.
    const isKnown = this.#graphs.has(graph_ordinal)
    this.accepted.graphs.add(graph_ordinal)
    const entries = this.#entriesOf(graph_ordinal)
    const graphOptions = optionsIn(body)
    const isScoped = graphOptions.scope === 'graph' || tenant !== undefined
    const options = {
      ...(trace_state !== undefined && { trace_state }),
      ...(submitted_by !== undefined && { submitted_by }),
      ...(tenant !== undefined && { tenant }),
      ...(graphOptions !== NO_GRAPH_OPTIONS && { graph: graphOptions }),
      ...(isScoped && { scope: 'graph' as const }),
    }
    const outcomes = reusedOutcomes(graph, refuse)
    if (!isKnown && outcomes.size > 0) this.#unnumberedReuse.set(graph_ordinal, new Set(outcomes.keys()))
    const added = {
      entries,
      isKnown,
      outcomes,
      rank: this.#ranks.get(graph_ordinal) ?? -1,
      identity: { graph_id, graph_ordinal, trace_id, created_at: msOf(created_at), ...options },
    }
    const submitted = yield* decodeTasks(yield* withStoredConditions(body))
    if (submitted.length === 0) throw refuse('it holds a graph without tasks') // none was ever accepted
    const inputs = graphOptions.on_end === undefined ? submitted : [...submitted, ...onEndTasks(graphOptions)]
    yield* inRanges(inputs.length, (from, to) => {
      for (let i = from; i < to; i++) this.#addTask(inputs[i]!, added, refuse)
    })
  }

  /** A task of a `patch` takes the place of an older entry. */
  #addTask(input: TaskInput, added: AddedGraph, refuse: (d: string) => Error): void {
    const { entries, isKnown, outcomes, identity, patch } = added
    const { id } = input
    const { graph_ordinal, scope } = identity
    if (!id || !input.type) throw refuse('it holds a graph with a task that has no id or type')
    const isScoped = scope === 'graph'
    const owner = isScoped ? graph_ordinal : (this.#owners.get(id) ?? graph_ordinal)
    const isReplaced = owner !== graph_ordinal && this.#rankOf(owner, id) > added.rank
    if (!entries.has(id) || patch !== undefined) {
      const { type, toolName } = normalizeTool(input.type, input.tool_name ?? undefined)
      const entry: Partial<Writable<StoredTask>> = inputFields(input) as object
      Object.assign(entry, identity)
      entry.type = type
      if (toolName !== undefined) entry.tool_name = toolName
      entry.status = 'pending'
      if (patch !== undefined) Object.assign(entry, { seq: patch.seq, added: patch.patched.revision })
      if (patch?.task_id !== undefined) Object.assign(entry, { added_by: patch.task_id })
      Object.assign(entry, outcomes?.get(id))
      if (isKnown) entry.deleted = true
      if (isReplaced) entry.replaced = true
      entries.set(id, entry as StoredTask)
    }
    if (isScoped || isReplaced) return
    if (owner !== graph_ordinal) this.#replace(id) // it took the id over, whatever happened to its own task since
    const { deleted, replaced } = entries.get(id)!
    if (deleted || replaced) this.#owners.delete(id)
    else this.#owners.set(id, graph_ordinal)
  }

  /** An entry with a higher number is newer. A graph that knows of the patch and lacks a task of it lost that since. */
  *#applyPatch(patch: JournaledPatch, refuse: (detail: string) => Error): Steps<number> {
    const { graph_ordinal, patched, seq, remove, replaced, idempotency } = patch
    this.lastSeq = Math.max(this.lastSeq, seq)
    if (this.#revoked.has(graph_ordinal) || !this.#graphs.has(graph_ordinal)) return seq
    if (idempotency !== undefined) this.notes.apply([null, 'key', nameOf(idempotency), idempotency])
    const entries = this.#entriesOf(graph_ordinal)
    const known = [...entries.values()]
    const isKnown = (patchesIn(known)?.revision ?? 0) >= patched.revision
    const { graph_id, trace_id, trace_state, submitted_by, tenant, created_at, scope } = known[0]!
    const options = known.find(({ graph }) => graph !== undefined)?.graph
    const identity = {
      ...{ graph_id: graph_id!, graph_ordinal, trace_id: trace_id!, created_at },
      ...(trace_state !== undefined && { trace_state }),
      ...(submitted_by !== undefined && { submitted_by }),
      ...(tenant !== undefined && { tenant }),
      ...(options !== undefined && { graph: options }),
      ...(scope !== undefined && { scope }),
    }
    const inputs = yield* decodeTasks(yield* withStoredConditions({ tasks: patch.tasks }))
    const gone = new Set(remove.filter((id) => (entries.get(id)?.seq ?? 0) < seq))
    const stays = new Set(replaced)
    for (const id of gone) {
      if (this.#owners.get(id) === graph_ordinal) this.#owners.delete(id)
      if (!stays.has(id)) entries.delete(id)
    }
    for (const { id, parent } of known) if (parent !== undefined && gone.has(parent)) entries.delete(id)
    yield* inRanges(inputs.length, (from, to) => {
      for (let i = from; i < to; i++) {
        const { id } = inputs[i]!
        if ((entries.get(id!)?.seq ?? 0) >= seq) continue
        this.#addTask(inputs[i]!, { entries, isKnown, identity, patch, rank: this.#rankOf(graph_ordinal, id!) }, refuse)
      }
    })
    const atEnd = options?.on_end === undefined ? [] : onEndTasks(options)
    for (const { id } of atEnd) {
      const entry = entries.get(id!)
      if (entry !== undefined && entries.delete(id!)) entries.set(id!, entry)
    }
    const [first] = entries.values()
    if (first !== undefined && !isKnown)
      entries.set(first.id, { ...first, patched, ...(options !== undefined && { graph: options }) })
    return seq
  }

  /** Adds the children of a task, as pending. Those that a state file with the fan-out lacks were deleted. */
  *#addChildren(
    { graph_ordinal, id: parent, count, items }: JournaledFanOut,
    refuse: (detail: string) => Error,
  ): Steps<void> {
    const fan_out = { count, ...(items !== undefined && { items }) }
    if (!isStoredFanOut(fan_out)) throw refuse('it holds a fan-out that is no count with its items')
    if (this.#revoked.has(graph_ordinal) || !this.#graphs.has(graph_ordinal)) return
    const entries = this.#entriesOf(graph_ordinal)
    const entry = entries.get(parent)
    if (entry === undefined) return // its record was deleted
    const isKnown = entry.child_count !== undefined
    entries.set(parent, { ...entry, fan_out })
    const { for_each, tasks, graph_id, trace_id, created_at } = entry
    const width = tasks?.length ?? 1
    yield* inRanges(isKnown ? 0 : count * width, (from, to) => {
      for (let i = from; i < to; i++) {
        const element = for_each == null ? undefined : Math.floor(i / width)
        const member = tasks?.[i % width]
        const id = member === undefined ? childId(parent, i) : memberId(parent, element, member.id!)
        if (entries.has(id)) continue
        const { type, toolName } = normalizeTool((member ?? entry).type!, (member ?? entry).tool_name ?? undefined)
        const identity = { id, type, parent, graph_id, graph_ordinal, trace_id, created_at }
        const optional = {
          ...(toolName !== undefined && { tool_name: toolName }),
          ...(element !== undefined && { index: element }),
        }
        entries.set(id, { ...identity, ...optional, status: 'pending' } as StoredTask)
      }
    })
  }

  #applyState(state: JournaledState): void {
    const { id, seq, graph_ordinal, record } = state
    if (!state.deleted && isTerminal(state.status)) this.ended.graphs.add(graph_ordinal)
    if (record === undefined && !this.#graphs.has(graph_ordinal)) return
    const entries = this.#entriesOf(graph_ordinal)
    // A task without an entry was deleted. Its outcome still decides about its dependents.
    const known = entries.get(id) ?? ({ type: 'os', id, deleted: true } as StoredTask)
    if ((known.seq ?? 0) >= seq) return
    // An earlier state, of a segment that a crash kept from being removed, may have made the entry without its record.
    const entry = record === undefined ? known : { ...known, ...record }
    entries.set(id, Object.assign(withoutState(entry), state) as StoredTask)
    if (state.deleted && this.#owners.get(id) === graph_ordinal) this.#owners.delete(id)
  }

  /** Replaces the previous task of `id`. From now on, only its graph knows it. */
  #replace(id: string): void {
    const owner = this.#owners.get(id)
    const entries = owner === undefined ? undefined : this.#entriesOf(owner)
    const entry = entries?.get(id)
    if (entries !== undefined && entry !== undefined) entries.set(id, { ...entry, replaced: true })
  }

  /** As `graphsInSteps`, without a pause. */
  graphs(refuse: (detail: string) => Error, keepsGone = false): Graph[] {
    return runSync(this.graphsInSteps(refuse, keepsGone))
  }

  /**
   * Builds all graphs. Called once, at the end. Frees the entries of each graph as soon as it is built. `keepsGone`
   * fills `built.gone`.
   */
  *graphsInSteps(refuse: (detail: string) => Error, keepsGone = false): Steps<Graph[]> {
    this.#owners.clear()
    const graphs: Graph[] = []
    const ordinals = new Map<string, number>()
    for (const [ordinal, entries] of this.#graphs) {
      const graph =
        entries instanceof Map ? yield* this.built.build(ordinal, [...entries.values()], refuse, keepsGone) : entries
      if (graph !== undefined) {
        const other = ordinals.get(graph.id)
        if (other !== undefined) {
          throw refuse(`two graphs (graph_ordinal ${other} and ${ordinal}) have the graph_id ${graph.id}`)
        }
        ordinals.set(graph.id, ordinal)
        graphs.push(graph)
      }
      this.#graphs.delete(ordinal)
    }
    this.#pause(graphs)
    return graphs
  }

  /** A graph that has ended is paused no more. */
  #pause(graphs: readonly Graph[]): void {
    const pauses = this.notes.of('graph-pause') as Map<string, Pause>
    if (pauses.size === 0) return
    const live = new Map(graphs.flatMap((graph) => (graph.live > 0 ? [[String(graph.ordinal), graph]] : [])))
    for (const [ordinal, pause] of pauses) {
      const graph = live.get(ordinal)
      if (graph === undefined) pauses.delete(ordinal)
      else graph.pause = pause
    }
  }

  #entriesOf(ordinal: number): Map<string, StoredTask> {
    const known = this.#graphs.get(ordinal)
    if (known instanceof Map) return known
    if (known !== undefined) throw new Error(`graph ${ordinal} of the state file was built before the journal was read`)
    const entries = new Map<string, StoredTask>()
    this.#graphs.set(ordinal, entries)
    return entries
  }
}

/** The ids of `entries` that belong to the service. */
const idsIn = (entries: readonly StoredTask[]): string[] =>
  entries.flatMap((entry) => (isKnownToService(entry) ? entry.id : []))

/** A graph of the journal whose tasks are being added. */
interface AddedGraph {
  readonly entries: Map<string, StoredTask>
  /** Whether the state file has the graph. */
  readonly isKnown: boolean
  readonly outcomes?: ReadonlyMap<string, object>
  /** What adds the tasks to an accepted graph. */
  readonly patch?: JournaledPatch
  /** When its tasks got their ids, among those of all graphs. */
  readonly rank: number
  /** Fields of the graph in the entry of each task. */
  readonly identity: Pick<
    StoredTask,
    'graph_id' | 'trace_id' | 'trace_state' | 'submitted_by' | 'tenant' | 'created_at' | 'graph' | 'scope'
  > & {
    readonly graph_ordinal: number
  }
}

/** As `idsIn`. */
function* idsOfService(entries: ReadonlyMap<string, StoredTask>): Generator<string> {
  for (const [id, entry] of entries) if (isKnownToService(entry)) yield id
}

/** The same for a graph that has been built and has no children. */
function* idsInService({ tasks }: Graph): Generator<string> {
  for (const task of tasks) if (!task.isReplaced) yield task.id
}

function changesIn(payload: Uint8Array, refuse: (detail: string) => Error): JournaledChanges {
  try {
    return decodeStates(new TextDecoder().decode(payload))
  } catch {
    throw refuse('it holds states of tasks in a form that this version does not know')
  }
}

/** A submitted graph with its conditions in the form that the state file can hold. */
function* withStoredConditions(body: unknown): Steps<unknown> {
  if (!isObject(body) || !Array.isArray(body.tasks)) return body
  const submitted: readonly unknown[] = body.tasks
  const tasks: unknown[] = []
  yield* inRanges(submitted.length, (from, to) => {
    for (const task of submitted.slice(from, to)) tasks.push(isObject(task) ? withStoredWhen(task) : task)
  })
  return { ...body, tasks }
}
