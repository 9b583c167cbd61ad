/**
 * The types of what goes over the wire, derived from the schemas of the service. The npm package has them written out, with
 * the descriptions of the schemas (`scripts/release/contract-types.ts`), so that programs need no schema library.
 */
import type { Static, TSchema } from '@sinclair/typebox'
import type { Immutable } from '../shared/contract/answer-schema.ts'
import type * as approval from '../shared/contract/approval.ts'
import type * as cache from '../shared/contract/cache.ts'
import type * as callbacks from '../shared/contract/callbacks.ts'
import type * as control from '../shared/contract/control.ts'
import type * as errorCodes from '../shared/contract/error-codes.ts'
import type * as events from '../shared/contract/events.ts'
import type * as dryRun from '../shared/contract/graph-dry-run.ts'
import type * as graphState from '../shared/contract/graph-state.ts'
import type * as graphs from '../shared/contract/graphs.ts'
import type * as patch from '../shared/contract/patch.ts'
import type * as pauses from '../shared/contract/pauses.ts'
import type * as rerun from '../shared/contract/rerun.ts'
import type * as retry from '../shared/contract/retry.ts'
import type * as runtime from '../shared/contract/runtime.ts'
import type * as schedules from '../shared/contract/schedules.ts'
import type * as submission from '../shared/contract/submission.ts'
import type * as taskFiles from '../shared/contract/task-files.ts'
import type * as taskStatus from '../shared/contract/task-status.ts'
import type * as waiting from '../shared/contract/waiting.ts'

type OneOf<T extends readonly unknown[]> = T[number]

/** What the service sends. */
type Sent<S extends TSchema> = Immutable<Static<S>>

/** What the service takes: an optional field may be undefined as well as absent. */
type Taken<S extends TSchema> = OrUndefined<Static<S>>

type OrUndefined<T> = T extends readonly (infer E)[]
  ? readonly OrUndefined<E>[]
  : T extends object
    ? { readonly [K in keyof T]: OrUndefined<T[K]> | (T extends Record<K, unknown> ? never : undefined) }
    : T

/** The data of each kind of event. */
type Payloads<T extends Readonly<Record<string, { readonly payload: TSchema }>>> = {
  readonly [K in keyof T]: EventHeader & Sent<T[K]['payload']>
}

/** State of a task. */
export type TaskStatus = OneOf<typeof taskStatus.TASK_STATUSES>

/** State of a graph. */
export type GraphState = OneOf<typeof graphState.GRAPH_STATES>
export type WaitingKind = OneOf<typeof graphState.WAITING_KINDS>

/** What kind of failure a task had. */
export type ErrorCode = OneOf<typeof errorCodes.ERROR_CODES>

/** Waits between attempts. */
export type Backoff = Taken<typeof submission.Backoff>

/** Takes over an earlier outcome. */
export type Cache = Taken<typeof cache.Cache>

/** The condition of a task. */
export type When = Taken<typeof submission.When>

/** POSTs that a graph asks for. */
export type GraphCallback = Taken<typeof callbacks.GraphCallback>

/** What a graph does at its end. */
export type OnEndEntry = Taken<typeof submission.OnEndEntry>

interface OwnNames {
  /** Names that begin with `x-` or `x_` are yours. */
  readonly [extension: `x-${string}` | `x_${string}`]: unknown
  readonly metadata?: unknown
}

/** A task of a group. */
export type MemberInput = Taken<typeof submission.MemberInput> &
  OwnNames & { readonly id: string; readonly type: string }

type AnyTaskInput = Taken<typeof submission.TaskInput> & OwnNames & { readonly id: string }

/** A submitted task. A group has tasks in place of a type. */
export type TaskInput =
  | (AnyTaskInput & { readonly type: string })
  | (AnyTaskInput & { readonly tasks: readonly MemberInput[] })

/** A graph to submit. */
export type TaskGraph = Omit<Taken<typeof submission.TaskGraph>, 'tasks'> &
  OwnNames & { readonly tasks: readonly TaskInput[]; readonly annotations?: unknown; readonly $schema?: string }

/** A task that is certain to fail, and the error that it will have. */
export type SubmitWarning = Sent<typeof submission.SubmitWarning>

/** The answer to a submission. */
export type SubmitResponse = Sent<typeof submission.SubmitResponse>

/** A sandbox as requested with defaults, or as in effect. */
export type PlannedSandbox = Sent<typeof runtime.PlannedSandbox>

/** Which limits are enforced. */
export type ResourceEnforcement = Sent<typeof runtime.ResourceEnforcement>

/** How the runtime service runs a task. */
export type ExecutionPlan = Sent<typeof runtime.ExecutionPlan>

/** A fault of a graph. */
export type GraphFault = Sent<typeof dryRun.GraphFault>

/** The limits of the two clocks of an attempt. */
export type TimeLimits = Sent<typeof dryRun.TimeLimits>

/** The answer of a dry run. */
export type GraphDryRun = Sent<typeof dryRun.GraphDryRun>

/** Why a task does not execute. Absent while it executes, and once it has ended. */
export type Waiting = Sent<typeof waiting.Waiting>

/** Where an outcome comes from that was taken over. */
export type ReusedFrom = Sent<typeof control.ReusedFrom>

/** Why a task did not succeed. */
export type RuntimeError = Sent<typeof control.RuntimeError>

/** The last attempt of a task. */
export type RuntimeRecord = Sent<typeof control.RuntimeRecord>

/** What a task reported. */
export type ProgressEntry = Sent<typeof control.ProgressEntry>

/** The end of an attempt. */
export type AttemptRecord = Sent<typeof control.AttemptRecord>

/** A task. */
export type TaskRecord = Sent<typeof control.TaskRecord>

/** An answer to an approval. */
export type ApprovalAnswer = Taken<typeof approval.ApprovalAnswer>

/** The result of an approval that was answered. */
export type ApprovalResult = Sent<typeof approval.ApprovalResult>

/** A directory in the workspace of a task. */
export type TaskFileListing = Sent<typeof taskFiles.TaskFileListing>

/** What a cancel did to a task. */
export type CancelledTask = Sent<typeof control.CancelledTask>

/** The answer to the cancel of a task. */
export type CancelResponse = Sent<typeof control.CancelResponse>

/** Tasks per state; zeros are left out. */
export type GraphCounts = Sent<typeof graphs.GraphCounts>

/** A graph in a list. */
export type GraphSummary = Sent<typeof graphs.GraphSummary>

/** A task in the answer about its graph. */
export type GraphTask = Sent<typeof graphs.GraphTask>

/** Why a graph failed. */
export type RootCause = Sent<typeof graphs.RootCause>

/** A graph with its tasks. */
export type GraphDetails = Sent<typeof graphs.GraphDetails>

/** The answer to the cancel of a graph. */
export type CancelGraphResponse = Sent<typeof graphs.CancelGraphResponse>

/** What runs again. */
export type RerunRequest = Taken<typeof rerun.RerunRequest>

/** The answer to a rerun. */
export type RerunResponse = Sent<typeof rerun.RerunResponse>

/** The answer to a retry. */
export type RetryResponse = Sent<typeof retry.RetryResponse>

/** Other tasks for a live graph. */
export type GraphPatch = Omit<Taken<typeof patch.PatchRequest>, 'add' | 'replace'> & {
  readonly add?: readonly TaskInput[] | undefined
  readonly replace?: readonly TaskInput[] | undefined
}

/** The answer to a patch. */
export type PatchResponse = Sent<typeof patch.PatchResponse>

/** Why a graph is paused. */
export type PauseReason = Taken<typeof pauses.GraphPauseRequest>

/** What is paused, and why. Without a type: the whole service. */
export type PauseRequest = Taken<typeof pauses.PauseRequest>

/** The type whose pause ends. Without a type: that of the whole service. */
export type ResumeRequest = Taken<typeof pauses.ResumeRequest>

/** Whether a graph is paused now. */
export type GraphPauseAnswer = Sent<typeof pauses.GraphPauseAnswer>

/** Whether a type or the service is paused now. */
export type PauseAnswer = Sent<typeof pauses.PauseAnswer>

/** A pause in a list. */
export type ListedPause = Sent<typeof pauses.ListedPause>

/** A schedule to put: when, and which graph. */
export type ScheduleRequest = Taken<typeof schedules.ScheduleFields> & { readonly graph: TaskGraph }

/** A graph that a schedule has submitted. */
export type ScheduleRun = Sent<typeof schedules.ScheduleRun>

/** A schedule in a list. */
export type ScheduleSummary = Sent<typeof schedules.ScheduleSummary>

/** A schedule. */
export type Schedule = Sent<typeof schedules.Schedule>

/** The graph that a schedule has submitted now. */
export type ScheduleTriggered = Sent<typeof schedules.ScheduleTriggered>

/** Whether the service lives, and accepts graphs. */
export type HealthResponse = Sent<typeof control.HealthResponse>

/** The fields of every event. */
export type EventHeader = Sent<typeof events.EventHeader>

/** The newest state of a task, in events. */
export type TaskEventState = Sent<typeof events.TaskEventState>

/** The data of each kind of event. */
export type EventData = Payloads<typeof events.EVENT_KINDS>

export type EventKind = keyof EventData

/** An event, with its kind. */
export type ServiceEvent = { [K in EventKind]: { readonly event: K } & EventData[K] }[EventKind]
