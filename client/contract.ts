/** The types of what goes over the wire. Generated from the schemas of the service by `bun run docs`: do not edit. */

/** State of a task. */
export type TaskStatus = 'pending' | 'running' | 'success' | 'failed' | 'skipped' | 'cancelling' | 'cancelled'

/** State of a graph. */
export type GraphState = 'running' | 'success' | 'failed' | 'cancelled'

/** What kind of failure a task had. */
export type ErrorCode = 'unknown' | 'invalid_input' | 'launch_failed' | 'timeout' | 'cancelled' | 'memory_limit_exceeded' | 'cpu_limit_exceeded' | 'resource_limit_exceeded' | 'sandbox_setup_failed' | 'exit_nonzero' | 'denied' | 'not_found' | 'external_failure' | 'internal'

/** Waits between attempts. */
export interface Backoff {
  /** Milliseconds before the second attempt. Default 100. After the tenth attempt each wait is 10 at least. */
  readonly initial_ms?: number | null | undefined
  /** Each further wait is so many times the one before. Default 2. */
  readonly factor?: number | null | undefined
  /** Milliseconds of the longest wait. Default 10000. */
  readonly max_ms?: number | null | undefined
  /** Each wait is shorter by a random part of it, at most this one. Default 0. */
  readonly jitter?: number | null | undefined
}

/** Takes over an earlier outcome. */
export interface Cache {
  /** Must contain all that decides about the outcome, such as a digest of the inputs. */
  readonly key: string
  /** Milliseconds for which an outcome counts. Default a day. 0: the task is always executed. */
  readonly ttl_ms?: number | null | undefined
}

/** The condition of a task. */
export interface When {
  /** Id of a task that this one depends on. */
  readonly $from: string
  /** JSON Pointer into its record. Default /result. */
  readonly path?: unknown
  /** The value if the record has none. */
  readonly default?: unknown
  /** Form of the value: text, json or lines. */
  readonly as?: unknown
  /** Met if the value is equal to this one. */
  readonly equals?: unknown
  /** Met if the value is not equal to this one. */
  readonly not?: unknown
  /** Met if the value is equal to one of this list. */
  readonly in?: unknown
  /** Met if the text matches: * stands for any characters, ? for one. */
  readonly matches?: unknown
}

/** POSTs that a graph asks for. */
export interface GraphCallback {
  /** Where to POST: an http: or https: address. */
  readonly url: string
  /** What to POST. Default: graph_ended. */
  readonly events?: readonly ('graph_ended' | 'task_failed' | 'approval_asked')[] | null | undefined
}

/** A submitted task. */
export interface TaskInput {
  /** Non-empty, unique within the graph, and of at most 2048 bytes. */
  readonly id: string
  /** The executor: a category (os), a legacy type (shell, file, http ...), or approval: a task that waits until somebody approves or rejects it. */
  readonly type: string
  /** The tool of the category: shell, file, http, dns, tcp, sleep, noop. */
  readonly tool_name?: string | null | undefined
  /** Parameters of the executor. In them {"$from": task id, "path", "default", "as"} is a value of the record of a task before this one (path: JSON Pointer, default /result; as: text, json, lines), {"$param": name} a parameter of the graph, {"$literal": value} value itself. */
  readonly params?: unknown
  /** The same as params; counts where both are given. */
  readonly input?: unknown
  /** Ids of tasks of this graph that must succeed first; see run_if. */
  readonly depends_on?: readonly string[] | null | undefined
  /** When to run: success (default): once all dependencies have succeeded. failed: once all have ended, if one failed. always: once all have ended. Otherwise the task is skipped. */
  readonly run_if?: 'success' | 'failed' | 'always' | null | undefined
  /** A condition on a value of a task that this one depends on, such as {"$from": "choose", "path": "/result/stdout", "equals": "yes"}. Tested once run_if lets the task run. If it is not met, the task is skipped. */
  readonly when?: When | null | undefined
  /** true: if the task fails, its dependents run as after a success, and the graph does not count as failed. */
  readonly continue_on_error?: boolean | null | undefined
  /** A list, or {"$from": "list", "as": "lines"}: the task runs once for each element. In params, {"$item": JSON Pointer} is the element ("") or a value in it, {"$index": true} its index, both with "as": "text" as a text. The result is the list of the results. */
  readonly for_each?: readonly unknown[] | Readonly<Record<string, unknown>> | null | undefined
  /** With for_each: how many run at a time. */
  readonly max_parallel?: number | null | undefined
  /** With for_each: true cancels what has not started once one has failed. */
  readonly fail_fast?: boolean | null | undefined
  /** Further attempts after the first, at most 10000. Default 0. */
  readonly retry?: number | null | undefined
  /** Only failures with one of these codes are followed by another attempt. Absent: all failures are. */
  readonly retry_on?: readonly ErrorCode[] | null | undefined
  /** The waits between attempts. */
  readonly backoff?: Backoff | null | undefined
  /** Take over the outcome of an earlier success of the same type, tool and key instead of being executed. */
  readonly cache?: Cache | null | undefined
  /** Milliseconds for each attempt, from the start of its work; 0, negative or absent: no timeout. */
  readonly timeout?: number | null | undefined
  /** Milliseconds that each attempt may wait for a slot, and for or in a runtime service; 0, negative or absent: any time. */
  readonly queue_timeout?: number | null | undefined
  /** Variables of a shell, cli-skills or runtime task whose values the service has: {"TOKEN": "name of a secret"}. A runtime task may have {"name", "file"}: the value in a file, and its path in the variable. */
  readonly secrets?: Readonly<Record<string, string | {
    /** Name of the secret. */
    readonly name: string
    /** Path of a file in the workspace that gets the value; without "..". */
    readonly file: string
  }>> | null | undefined
  /** Kept with the task, unread. */
  readonly annotations?: Readonly<Record<string, string>> | null | undefined
  /** Names that begin with `x-` or `x_` are yours. */
  readonly [extension: `x-${string}` | `x_${string}`]: unknown
  readonly metadata?: unknown
}

/** A graph to submit. */
export interface TaskGraph {
  /** At least one task. */
  readonly tasks: readonly TaskInput[]
  /** What people call the graph. Need not be unique. */
  readonly name?: string | null | undefined
  /** Kept with the graph, to find it by. */
  readonly labels?: Readonly<Record<string, string>> | null | undefined
  /** With "graph" the ids of the tasks belong to this graph: other graphs may use the same ids, and a task is addressed as graph_id/task_id. Absent: ids belong to the service. */
  readonly scope?: 'graph' | null | undefined
  /** Values that tasks use as {"$param": name}. A null has to be replaced by a value before the graph is submitted. */
  readonly params?: Readonly<Record<string, unknown>> | null | undefined
  /** A POST to this address when the graph has ended, or for other events. */
  readonly callback?: GraphCallback | null | undefined
  /** Names that begin with `x-` or `x_` are yours. */
  readonly [extension: `x-${string}` | `x_${string}`]: unknown
  readonly metadata?: unknown
  readonly annotations?: unknown
  readonly $schema?: string
}

/** A task that is certain to fail, and the error that it will have. */
export interface SubmitWarning {
  /** Id of the task. */
  readonly task_id: string
  /** The error that the task will have. */
  readonly message: string
}

/** The answer to a submission. */
export interface SubmitResponse {
  /** Number of tasks. */
  readonly accepted: number
  /** Ids of the tasks, in the order of the graph. */
  readonly task_ids: readonly string[]
  /** Id of the graph. */
  readonly graph_id: string
  /** Accepted tasks that are certain to fail. */
  readonly warnings?: readonly SubmitWarning[]
  /** With wait_ms: the states of the tasks. */
  readonly tasks?: readonly ({
    /** Id of the task. */
    readonly id: string
    /** A task has ended as success, failed, skipped or cancelled. */
    readonly status: TaskStatus
  })[]
  /** With wait_ms: whether all tasks have ended. */
  readonly all_terminal?: boolean
}

/** A sandbox as requested with defaults, or as in effect. */
export interface PlannedSandbox {
  /** How the task is fenced in. */
  readonly profile: 'process' | 'linux_sandbox'
  /** Working directory, relative to the workspace. */
  readonly workspace_subdir?: string
  /** Directory that is the root. */
  readonly rootfs?: string
  /** Whether rootfs is the root. */
  readonly chroot: boolean
  /** none: loopback of its own; host: that of the host; an object: rules. As the request has it, or as in effect. */
  readonly network?: 'none' | 'host' | {
    /** Hosts that the task may connect to: names, *.names, addresses, networks, or *; each may end with a port, and then with " opaque". Default none. */
    readonly allow?: readonly string[]
    /** Hosts that it may not connect to, although allow covers them. */
    readonly deny?: readonly string[]
    /** Bytes that it may send and receive together. Default: no limit. */
    readonly max_bytes?: number
    /** Connections at a time. Default 256. */
    readonly max_connections?: number
  }
  /** What the task has of its own, with linux_sandbox. A request may leave user to the host. */
  readonly namespaces?: {
    /** Whether mount is its own. */
    readonly mount: boolean
    /** Whether pid is its own. */
    readonly pid: boolean
    /** Whether uts is its own. */
    readonly uts: boolean
    /** Whether ipc is its own. */
    readonly ipc: boolean
    /** Whether net is its own. */
    readonly net: boolean
    /** Whether cgroup is its own. */
    readonly cgroup: boolean
    /** Whether user is its own. */
    readonly user?: boolean
  }
}

/** Which limits are enforced. */
export interface ResourceEnforcement {
  /** Milliseconds until the task is ended. */
  readonly wall_time_ms: number
  /** Seconds of CPU time, where asked for. */
  readonly cpu_time_sec?: number
  /** Whether cpu_time_sec holds, by RLIMIT_CPU. */
  readonly cpu_time_enforced: boolean
  /** Bytes of memory, where asked for. */
  readonly memory_bytes?: number
  /** Whether memory_bytes holds: by a memory cgroup, else as address space by RLIMIT_AS. */
  readonly memory_enforced: boolean
  /** Processes and threads, where asked for, or where the service limits sandboxes. */
  readonly pids_max?: number
  /** Whether pids_max holds, by a pids cgroup. */
  readonly pids_enforced: boolean
  /** Bytes in the workspace, where asked for, or where the service limits tasks. The launcher watches them. */
  readonly disk_bytes?: number
  /** Whether a cgroup enforces one of these. */
  readonly cgroup_enforced: boolean
  /** Whether an end for want of memory is told apart, as memory_limit_exceeded. */
  readonly oom_detection: boolean
}

/** How the runtime service runs a task. */
export interface ExecutionPlan {
  /** What held for this task. */
  readonly capability_mode: 'adaptive' | 'strict'
  readonly requested_sandbox: PlannedSandbox
  readonly effective_sandbox: PlannedSandbox
  readonly resource_enforcement: ResourceEnforcement
  /** Whether anything that was asked for is missing. */
  readonly degraded: boolean
  /** A sentence for each thing that is missing. */
  readonly fallback_reasons: readonly string[]
  /** What is as asked for and still may surprise. */
  readonly capability_warnings: readonly string[]
}

/** A fault of a graph. */
export interface GraphFault {
  /** The error that a submission with this fault alone would get, or with fails the task. */
  readonly message: string
  /** Id of the task with the fault. */
  readonly task_id?: string
  /** A submission is accepted, with a warning, but the task is certain to fail, and the graph with it. */
  readonly fails?: true
}

/** The answer of a dry run. */
export interface GraphDryRun {
  /** Whether a submission would be accepted, and the graph can succeed as far as is known. */
  readonly valid: boolean
  /** The faults of the graph, in the order of the checks. */
  readonly errors: readonly GraphFault[]
  /** Tasks that fail if they run, but need not succeed for the graph to succeed. */
  readonly warnings: readonly SubmitWarning[]
  /** Ids of the tasks; the tasks of a wave depend on tasks of earlier waves only. Empty if ids or dependencies have a fault. */
  readonly waves: readonly (readonly string[])[]
  /** The longest chain of dependent tasks, by their number. Empty as waves are. */
  readonly critical_path: readonly string[]
  /** For runtime tasks: what the runtime service would do. At most 100 tasks. */
  readonly runtime: Readonly<Record<string, {
    readonly execution_plan?: ExecutionPlan
    /** Why there is no plan: the refusal of the runtime service, or why it did not answer. */
    readonly error?: string
  }>>
  /** There are more errors, or more runtime tasks. */
  readonly truncated?: true
}

/** Why a task does not execute. Absent while it executes, and once it has ended. */
export interface Waiting {
  /** dependencies: other tasks must end first, most in success. concurrency: no slot is free. backoff: another attempt follows. runtime: the runtime service has it queued, or is away. approval: somebody has to approve or reject it. storage: control cannot write, as on a full disk. */
  readonly reason: 'dependencies' | 'concurrency' | 'backoff' | 'runtime' | 'approval' | 'storage'
  /** Ids of dependencies that have not ended, at most 10. */
  readonly tasks?: readonly string[]
  /** When the backoff ends, or the time for an approval. */
  readonly until?: string
  /** More in words; of an approval the beginning of its message. */
  readonly detail?: string
}

/** Where an outcome comes from that was taken over. */
export interface ReusedFrom {
  /** Id of the graph in which the task was executed. */
  readonly graph_id: string
  /** Id of the task there. */
  readonly task_id: string
}

/** Why a task did not succeed. */
export interface RuntimeError {
  /** What kind of failure. */
  readonly code: ErrorCode
  /** What happened, in words. */
  readonly message: string
  /** Whether another attempt may succeed. */
  readonly retryable?: boolean
  /** Where the failure comes from, such as runtime. */
  readonly source?: string
  /** More for programs. */
  readonly details?: unknown
}

/** The last attempt of a task. */
export interface RuntimeRecord {
  /** State of the attempt. */
  readonly status: 'accepted' | 'running' | 'success' | 'failed' | 'cancelled' | 'cancelling'
  /** Id of the attempt where it executes. */
  readonly handle_id?: string
  /** Number of the attempt, from 1. */
  readonly attempt: number
  /** When the attempt started. */
  readonly started_at?: string
  /** When the task ended. */
  readonly finished_at?: string
  /** Milliseconds of the attempt. */
  readonly duration_ms?: number
  readonly error?: RuntimeError
}

/** What a task reported. */
export interface ProgressEntry {
  /** When it was reported. */
  readonly timestamp: string
  /** What was reported. */
  readonly message?: string
  /** More for programs. */
  readonly data?: unknown
}

/** The end of an attempt. */
export interface AttemptRecord {
  /** Number of the attempt, from 1. */
  readonly attempt: number
  /** When it started. */
  readonly started_at?: string
  /** When it ended. Absent if the service was killed. */
  readonly finished_at?: string
  /** The cause, as in the error of the task. Absent after success. */
  readonly error?: string
  /** What kind of failure. Absent after success. */
  readonly code?: ErrorCode
  /** Name of the runtime service that had it. Absent if none had it. */
  readonly placed_on?: string
  /** Exit code of its program. */
  readonly exit_code?: number
  /** The last lines of its output, at most 2 KiB. */
  readonly tail?: string
}

/** A task. */
export interface TaskRecord {
  /** Id of the task. */
  readonly id: string
  /** The executor. */
  readonly type: string
  /** The tool of the executor. */
  readonly tool_name?: string
  /** Equal to type. */
  readonly execution_category: string
  /** As submitted. Values of env are "***". */
  readonly params?: unknown
  /** As submitted. Values of env are "***". */
  readonly input?: unknown
  /** What the executor got in place of an input with placeholders ($from, $param, $literal), from the start of the first attempt on. Values of env are "***". Above 64 KiB {"$digest": "sha256:...", "length": bytes of its JSON}. */
  readonly resolved_input?: unknown
  /** Ids of tasks of its graph that must succeed first; see run_if. */
  readonly depends_on?: readonly string[]
  /** As submitted. Absent: success. */
  readonly run_if?: 'success' | 'failed' | 'always'
  /** As submitted. */
  readonly when?: unknown
  /** As submitted. true: a failure of the task counts as a success for its dependents. */
  readonly continue_on_error?: boolean
  /** As submitted. The task runs once for each element of this list. */
  readonly for_each?: unknown
  /** As submitted. Children that may run at a time. */
  readonly max_parallel?: number
  /** As submitted. true: the failure of a child cancels those that have not started. */
  readonly fail_fast?: boolean
  /** Further attempts after the first. */
  readonly retry: number
  /** As submitted. Absent: all. */
  readonly retry_on?: readonly ErrorCode[]
  readonly backoff?: Backoff
  readonly cache?: Cache
  /** Milliseconds for each attempt; 0 or less: no limit. */
  readonly timeout?: number
  /** Milliseconds that each attempt may wait before its work starts; 0 or less: no limit. */
  readonly queue_timeout?: number
  /** As submitted: names, never values. */
  readonly secrets?: Readonly<Record<string, string | {
    /** Name of the secret. */
    readonly name: string
    /** Path of a file in the workspace that gets the value; without "..". */
    readonly file: string
  }>>
  /** As submitted. */
  readonly annotations?: Readonly<Record<string, string>>
  /** Id of its graph. */
  readonly graph_id: string
  /** Of a child: id of the task with for_each. */
  readonly parent?: string
  /** Of a child: index of its element, from 0. */
  readonly index?: number
  /** Of a task with for_each that has started: number of its children. */
  readonly child_count?: number
  /** Another graph has taken the id. This record is read below its graph. */
  readonly replaced?: true
  /** The task was not executed: a rerun, or its cache, took over this outcome. */
  readonly reused_from?: ReusedFrom
  /** A task has ended as success, failed, skipped or cancelled. */
  readonly status: TaskStatus
  /** State of its run. Exists once the task has started. */
  readonly run_status?: 'accepted' | 'running' | 'success' | 'failed' | 'cancelled'
  /** Number of the last attempt, from 1. */
  readonly attempt?: number
  /** Id of the last attempt where it executes, such as in the runtime service. */
  readonly handle_id?: string
  /** Name of the runtime service that has the last attempt, or had it. */
  readonly placed_on?: string
  /** What the tool returned. */
  readonly result?: unknown
  /** Why the task did not succeed. */
  readonly error?: string
  readonly runtime?: RuntimeRecord
  /** The last 100 reports, the newest last. */
  readonly progress?: readonly ProgressEntry[]
  /** The last ten attempts, the newest last. Exists once an attempt other than the last has ended. */
  readonly attempts?: readonly AttemptRecord[]
  /** Why it does not execute. Absent while it executes, and once it has ended. */
  readonly waiting?: Waiting
  /** When the graph was accepted. */
  readonly created_at: string
  /** When the state of the task changed last. */
  readonly updated_at: string
  /** When the first attempt started. */
  readonly started_at?: string
  /** When the task ended. */
  readonly finished_at?: string
}

/** An answer to an approval. */
export interface ApprovalAnswer {
  /** Who answers, as the record will name them. The service does not check it. */
  readonly who: string
  /** The reason, for the record. */
  readonly why?: string | null | undefined
}

/** The result of an approval that was answered. */
export interface ApprovalResult {
  /** false: rejected. */
  readonly approved: boolean
  /** Who answered. */
  readonly who: string
  /** The reason, if one was given. */
  readonly why?: string
  /** When the answer arrived. */
  readonly at: string
}

/** What a cancel did to a task. */
export interface CancelledTask {
  /** Id of the task. */
  readonly task_id: string
  /** A task has ended as success, failed, skipped or cancelled. */
  readonly status: TaskStatus
  readonly runtime: {
    /** State of its run: cancelling, cancelled, or the end that it had before. */
    readonly status: string
    readonly error?: {
      /** Why it did not succeed. */
      readonly code: ErrorCode
    }
  }
  /** Absent if the task had ended before. */
  readonly event?: {
    readonly type: 'task_cancel_requested'
    /** Id of the task. */
    readonly task_id: string
  }
}

/** The answer to the cancel of a task. */
export interface CancelResponse {
  /** The named task, then the changed tasks downstream. */
  readonly tasks: readonly CancelledTask[]
}

/** Tasks per state; zeros are left out. */
export interface GraphCounts {
  /** Tasks that have not started. */
  readonly pending?: number
  /** Tasks that have started, including those between two attempts. */
  readonly running?: number
  /** Tasks that succeeded. */
  readonly success?: number
  /** Tasks without attempts left. */
  readonly failed?: number
  /** Tasks that lost a dependency, or did not have to run. */
  readonly skipped?: number
  /** Tasks whose attempt is being ended. */
  readonly cancelling?: number
  /** Tasks that were cancelled. */
  readonly cancelled?: number
}

/** A graph in a list. */
export interface GraphSummary {
  /** Id of the graph. */
  readonly graph_id: string
  /** The name that was submitted with it. */
  readonly name?: string
  /** The labels that were submitted with it. */
  readonly labels?: Readonly<Record<string, string>>
  /** The ids of its tasks belong to it. Absent: to the service. */
  readonly scope?: 'graph'
  /** running until all tasks have ended. Then failed if a task failed, else cancelled if one was cancelled or skipped, else success. Failures with continue_on_error, and tasks that did not have to run, do not count. */
  readonly state: GraphState
  /** Tasks that were not deleted. */
  readonly task_count: number
  /** Tasks per state; zeros are left out. */
  readonly counts: GraphCounts
  /** Of the tasks that have not ended: how many wait for what, zeros left out. Absent if none does. */
  readonly waiting?: {
    /** Tasks that wait until somebody approves or rejects them. */
    readonly approval?: number
    /** Tasks whose pause between two attempts is not over. */
    readonly backoff?: number
  }
  /** When it was accepted. */
  readonly created_at: string
  /** When its first task started. */
  readonly started_at?: string
  /** When its last task ended. */
  readonly finished_at?: string
  /** Milliseconds from started_at to finished_at. */
  readonly duration_ms?: number
  /** Trace id of its submission, which its log lines carry. */
  readonly trace_id: string
}

/** A task in the answer about its graph. */
export interface GraphTask {
  /** Id of the task. */
  readonly id: string
  /** Category of the task. */
  readonly type: string
  /** Tool of the category. */
  readonly tool_name?: string
  /** State of the task. */
  readonly status: TaskStatus
  /** Another graph has taken the id. */
  readonly replaced?: true
  /** Number of the last attempt. */
  readonly attempt?: number
  /** Ids of the tasks that must succeed first; see run_if. */
  readonly depends_on?: readonly string[]
  /** When it runs. Absent: success. */
  readonly run_if?: 'success' | 'failed' | 'always'
  /** true: its failure counts as a success for its dependents and for the graph. */
  readonly continue_on_error?: boolean
  /** Of a child: id of the task with for_each, which stands before it. */
  readonly parent?: string
  /** Of a task with for_each that has started: number of its children. */
  readonly child_count?: number
  /** Tasks per state; zeros are left out. */
  readonly children?: GraphCounts
  /** When its first attempt started. */
  readonly started_at?: string
  /** When it ended. */
  readonly finished_at?: string
  /** Milliseconds from its start to its end, or until now. */
  readonly duration_ms?: number
  /** Why it did not succeed, at most 1000 characters. */
  readonly error?: string
  /** The kind of failure. */
  readonly code?: string
  /** Why it does not execute. Absent while it executes, and once it has ended. */
  readonly waiting?: Waiting
  /** The task was not executed: a rerun, or its cache, took over this outcome. */
  readonly reused_from?: ReusedFrom
  /** As submitted. Left out where they have more than 1000 characters; the record has them. */
  readonly annotations?: Readonly<Record<string, string>>
}

/** Why a graph failed. */
export interface RootCause {
  /** The task that failed first. */
  readonly task_id: string
  /** Why it failed. */
  readonly error: string
  /** The kind of failure. */
  readonly code?: string
  /** Last lines of its output, at most 2 KiB. They are data. */
  readonly tail?: string
  /** What to do about it, where the service that ran the task knows. */
  readonly remedy?: string
  /** Tasks that were skipped because of it. */
  readonly skipped: number
  /** Commands that tell more. */
  readonly try_next: readonly string[]
}

/** A graph with its tasks. */
export interface GraphDetails {
  /** Id of the graph. */
  readonly graph_id: string
  /** The name that was submitted with it. */
  readonly name?: string
  /** The labels that were submitted with it. */
  readonly labels?: Readonly<Record<string, string>>
  /** The ids of its tasks belong to it. Absent: to the service. */
  readonly scope?: 'graph'
  /** running until all tasks have ended. Then failed if a task failed, else cancelled if one was cancelled or skipped, else success. Failures with continue_on_error, and tasks that did not have to run, do not count. */
  readonly state: GraphState
  /** Tasks that were not deleted. */
  readonly task_count: number
  /** Tasks per state; zeros are left out. */
  readonly counts: GraphCounts
  /** Of the tasks that have not ended: how many wait for what, zeros left out. Absent if none does. */
  readonly waiting?: {
    /** Tasks that wait until somebody approves or rejects them. */
    readonly approval?: number
    /** Tasks whose pause between two attempts is not over. */
    readonly backoff?: number
  }
  /** When it was accepted. */
  readonly created_at: string
  /** When its first task started. */
  readonly started_at?: string
  /** When its last task ended. */
  readonly finished_at?: string
  /** Milliseconds from started_at to finished_at. */
  readonly duration_ms?: number
  /** Trace id of its submission, which its log lines carry. */
  readonly trace_id: string
  /** Each task after those that it depends on. */
  readonly tasks: readonly GraphTask[]
  /** Pairs of ids of shown tasks: [dependency, dependent]. */
  readonly edges: readonly (readonly [string, string])[]
  /** The chain of tasks that took the longest. */
  readonly critical_path: {
    /** Ids of the tasks, each a dependency of the next. */
    readonly task_ids: readonly string[]
    /** Sum of their durations; of tasks that still run, until now. */
    readonly duration_ms: number
  }
  readonly root_cause?: RootCause
  /** true if tasks are left out: more than 10000, or with more than 100000 dependencies. */
  readonly truncated?: boolean
}

/** The answer to the cancel of a graph. */
export interface CancelGraphResponse {
  /** Id of the graph. */
  readonly graph_id: string
  /** State of the graph now. */
  readonly state: GraphState
  /** The tasks that changed: those that were cancelled, then those that are skipped; at most 1000. */
  readonly tasks: readonly CancelledTask[]
  /** true if there are more. */
  readonly truncated?: boolean
}

/** What runs again. */
export interface RerunRequest {
  /** Ids of tasks that run again, with everything downstream. What did not succeed runs again in any case. Default "failed": nothing else. */
  readonly from?: 'failed' | readonly string[] | null | undefined
  /** New values for parameters of the graph. Tasks whose outcomes are reused keep what they had. */
  readonly params?: Readonly<Record<string, unknown>> | null | undefined
}

/** The answer to a rerun. */
export interface RerunResponse {
  /** Number of tasks. */
  readonly accepted: number
  /** Ids of the tasks, in the order of the graph. */
  readonly task_ids: readonly string[]
  /** Id of the graph. */
  readonly graph_id: string
  /** Ids of the tasks that are not executed again. They have the outcomes of the source. */
  readonly reused: readonly string[]
  /** Accepted tasks that are certain to fail. */
  readonly warnings?: readonly SubmitWarning[]
}

/** Whether the service lives, and accepts graphs. */
export interface HealthResponse {
  readonly status: 'ok'
  /** Version of the interface. */
  readonly version: 'v1.0.0'
  /** Time since the start, such as 3m12s. */
  readonly uptime: string
  /** Present while the service accepts no graphs. */
  readonly ready?: false
  /** Why the service accepts no graphs. */
  readonly reason?: string
  /** This service among those that share a database. Absent without --database. */
  readonly replica?: {
    /** Number of the replica. A later start has a higher one. */
    readonly id: number
    /** Rises when the replica loses its lease. */
    readonly epoch: number
    /** Milliseconds for which no other replica can become active. */
    readonly lease_ms_left: number
    /** Graphs that it has. */
    readonly graphs: number
    /** Why the other replicas cannot reach it at the address that it has registered. Absent if they can. */
    readonly address_fault?: string
  }
}

/** The fields of every event. */
export interface EventHeader {
  /** Number of the event. Numbers rise and are never given twice, but are not consecutive. */
  readonly seq: number
  /** Number of the event before it in this stream; of the first event after a resume, the number that was resumed from. Absent in the first event of a new stream and in reset. With a database, in the stream of the service: of the event before it of the same replica. */
  readonly previous?: number
  /** When it happened. */
  readonly at: string
}

/** The newest state of a task, in events. */
export interface TaskEventState {
  /** Id of the task. */
  readonly task_id: string
  /** Category of the task. */
  readonly type: string
  /** Tool of the category. */
  readonly tool_name?: string
  /** State of the task. */
  readonly status: TaskStatus
  /** As in the record of the task. Absent until it has started. */
  readonly run_status?: string
  /** Number of the last attempt. Absent before the first one. */
  readonly attempt?: number
  /** When its first attempt started. */
  readonly started_at?: string
  /** When it ended. */
  readonly finished_at?: string
  /** Milliseconds from started_at to finished_at. */
  readonly duration_ms?: number
  /** Why it did not succeed, or why its last attempt failed; at most 1000 characters. */
  readonly error?: string
  /** The kind of failure, as runtime.error.code of the record. */
  readonly code?: string
  /** The newest entry of progress: {timestamp, message, data}. */
  readonly progress?: unknown
  /** Why it does not execute. Absent while it executes, and once it has ended. */
  readonly waiting?: Waiting
  /** The task was not executed: a rerun, or its cache, took over this outcome. */
  readonly reused_from?: ReusedFrom
  /** Of a child of a task with for_each: id of that task. */
  readonly parent?: string
  /** Of a task with for_each that has started: number of its children. All are pending at first. */
  readonly child_count?: number
  /** graph if the ids of the tasks belong to the graph. */
  readonly scope?: string
}

/** The data of each kind of event. */
export interface EventData {
  /** A graph was submitted. */
  readonly graph_accepted: EventHeader & {
    /** Id of the graph. */
    readonly graph_id: string
    /** The name that was submitted with the graph. */
    readonly name?: string
    /** Labels of the graph. */
    readonly labels?: Readonly<Record<string, string>>
    /** graph if the ids of the tasks belong to the graph. */
    readonly scope?: string
    /** Tasks of the graph. All are pending; of those that a rerun did not execute again, task_changed follows. */
    readonly task_count: number
  }
  /** A task changed: it started, reported progress, failed an attempt, waits for an approval from now on, is being cancelled, or ended, or its outcome was reused. Changes within a few milliseconds are one event. */
  readonly task_changed: EventHeader & {
    /** Id of the graph. */
    readonly graph_id: string
    /** Id of the task. */
    readonly task_id: string
    /** Category of the task. */
    readonly type: string
    /** Tool of the category. */
    readonly tool_name?: string
    /** State of the task. */
    readonly status: TaskStatus
    /** As in the record of the task. Absent until it has started. */
    readonly run_status?: string
    /** Number of the last attempt. Absent before the first one. */
    readonly attempt?: number
    /** When its first attempt started. */
    readonly started_at?: string
    /** When it ended. */
    readonly finished_at?: string
    /** Milliseconds from started_at to finished_at. */
    readonly duration_ms?: number
    /** Why it did not succeed, or why its last attempt failed; at most 1000 characters. */
    readonly error?: string
    /** The kind of failure, as runtime.error.code of the record. */
    readonly code?: string
    /** The newest entry of progress: {timestamp, message, data}. */
    readonly progress?: unknown
    /** Why it does not execute. Absent while it executes, and once it has ended. */
    readonly waiting?: Waiting
    /** The task was not executed: a rerun, or its cache, took over this outcome. */
    readonly reused_from?: ReusedFrom
    /** Of a child of a task with for_each: id of that task. */
    readonly parent?: string
    /** Of a task with for_each that has started: number of its children. All are pending at first. */
    readonly child_count?: number
    /** graph if the ids of the tasks belong to the graph. */
    readonly scope?: string
  }
  /** The runtime service has a running task in its queue, or is away, or (without waiting) no longer so. Only while somebody watches, at most once a second for a task, and not kept: seq and id are those of the event before it. */
  readonly task_waiting: EventHeader & {
    /** Id of the graph. */
    readonly graph_id: string
    /** Id of the task. */
    readonly task_id: string
    /** Why it does not execute. Absent while it executes, and once it has ended. */
    readonly waiting?: Waiting
    /** graph if the ids of the tasks belong to the graph. */
    readonly scope?: string
  }
  /** The record of a task was deleted. */
  readonly task_deleted: EventHeader & {
    /** Id of the graph. */
    readonly graph_id: string
    /** Id of the task. */
    readonly task_id: string
  }
  /** The last task of a graph ended, or was deleted. Comes after the event of that task. */
  readonly graph_ended: EventHeader & {
    /** Id of the graph. */
    readonly graph_id: string
    /** The name that was submitted with the graph. */
    readonly name?: string
    /** failed if a task failed, else cancelled if one was cancelled or skipped, else success; running until all tasks have ended. Failures with continue_on_error, and tasks that did not have to run, do not count. */
    readonly state: GraphState
    /** Tasks per status; zeros are left out. */
    readonly counts: Readonly<Record<string, number>>
  }
  /** A graph was deleted, or removed because it ended long ago. The last event of its graph. */
  readonly graph_removed: EventHeader & {
    /** Id of the graph. */
    readonly graph_id: string
  }
  /** First event of a stream whose past is gone: the number to resume from is older than all kept events, or unknown. Carries the present state; what follows is newer. */
  readonly reset: EventHeader & {
    /** Why the stream cannot be resumed. */
    readonly reason: string
    /** Id of the graph. */
    readonly graph_id?: string
    /** Stream of a task: its state, as in task_changed. */
    readonly task?: TaskEventState
    /** Stream of a graph: its summary, as in GET /graphs. */
    readonly graph?: GraphSummary
    /** Stream of a graph: the states of its tasks, as in task_changed; at most 10000. */
    readonly tasks?: readonly TaskEventState[]
    /** Stream of the service: summaries of the newest graphs, as in GET /graphs; at most 1000. */
    readonly graphs?: readonly GraphSummary[]
    /** true if tasks or graphs are left out. */
    readonly truncated?: boolean
  }
  /** The client read too slowly for its buffer. The stream ends after it; resume with the id of the last event. */
  readonly lagging: EventHeader
}

export type EventKind = keyof EventData

/** An event, with its kind. */
export type ServiceEvent = { [K in EventKind]: { readonly event: K } & EventData[K] }[EventKind]
