/**
 * The limits of the services, by name: docs/limits.md is made from them. Values come from the code: constants are imported,
 * defaults of flags are read from the settings. Each limit names a test that meets it; `tests/limits.test.ts` checks that
 * the test exists.
 */

import { STALL_MS } from '../adapter/follow/standard-error.ts'
import { MAX_TYPED_CHARACTERS } from '../adapter/secrets/hidden-line.ts'
import { GIVE_UP_AFTER_MS, MAX_TRIES, MAX_TRIES_OF_RECEIVER, MAX_WAITING } from '../control/callbacks/deliveries.ts'
import { controlSettings } from '../control/config.ts'
import { MAX_OUTPUT_BYTES } from '../control/executors/cli-skills.ts'
import { MAX_STDIN_BYTES } from '../control/executors/command-input.ts'
import { MAX_BODY_BYTES, MAX_REDIRECTS } from '../control/executors/os/http.ts'
import { MAX_STREAM_BYTES } from '../control/executors/os/shell.ts'
import { MAX_SLEEP_MS } from '../control/executors/os/sleep.ts'
import { MAX_CONNECT_MS } from '../control/executors/os/tcp.ts'
import { MOVE_STALL_MS } from '../control/executors/runtime/bundle-relay.ts'
import { MAX_MOVES, MAX_REMEMBERED_BUNDLES } from '../control/executors/runtime/file-moves.ts'
import { MAX_KEPT_BYTES, SILENT_LOG_MS } from '../control/executors/runtime/live-log.ts'
import { MAX_RESULT_STREAM_BYTES } from '../control/executors/runtime/outcome.ts'
import { SILENT_AFTER_MS } from '../control/executors/runtime/pulse.ts'
import { MAX_REVIEWED_CHARACTERS } from '../control/executors/runtime/request-review.ts'
import { SUBMISSION_LEASE_MS } from '../control/executors/runtime/service.ts'
import { FILE_STALL_MS } from '../control/executors/runtime/task-files.ts'
import { MAX_LISTED_SKILLS } from '../control/executors/skills.ts'
import { MAX_FOLLOWED_RECORDS } from '../control/http/audit-events.ts'
import { STREAM_BUFFER_BYTES } from '../control/http/event-stream.ts'
import { FAILED_SIGN_INS_MS, MAX_FAILED_ADDRESSES, MAX_FAILED_SIGN_INS } from '../control/http/failed-sign-ins.ts'
import { MAX_TAIL_LINES } from '../control/http/logs.ts'
import { MAX_MCP_BODY_BYTES } from '../control/http/mcp-endpoint.ts'
import { MAX_PAGE_TASKS } from '../control/http/task-query.ts'
import { MAX_WAIT_MS } from '../control/http/wait-ms.ts'
import { MAX_FIELDS } from '../control/json/body.ts'
import { MAX_JSON_DEPTH } from '../control/json/depth.ts'
import { MAX_POINTER_CHARACTERS } from '../control/json/json-pointer.ts'
import { MAX_AUDIT_FILE_BYTES, MAX_AUDIT_FILES } from '../control/log/audit-log.ts'
import { KEY_LIFETIME_MS, MAX_KEYS } from '../control/log/idempotency.ts'
import { MAX_POSITIONS } from '../control/log/positions.ts'
import { MAX_RUN_ROWS } from '../control/log/postgres/schedule-rows.ts'
import { MAX_AUDIT_RECORDS, MAX_WAITING_AUDIT_RECORDS } from '../control/log/postgres/shared-audit.ts'
import { ANSWER_WITHIN_MS } from '../control/log/postgres/unavailable.ts'
import { MAX_CONFIG_BYTES, MAX_SERVERS } from '../control/mcp-client/config.ts'
import { MAX_MESSAGE_BYTES } from '../control/mcp-client/limits.ts'
import { MAX_REMEMBERED_CALLS } from '../control/mcp-client/sent-to-server.ts'
import { MAX_FILE_TEXT_BYTES } from '../control/mcp-server/tools/get-task-file.ts'
import { MAX_RESULTS_CHARACTERS } from '../control/mcp-server/view.ts'
import { MAX_UNCERTAIN_DELETIONS } from '../control/operations/delete.ts'
import { MAX_FILE_STREAMS } from '../control/operations/task-files.ts'
import { MAX_LOG_FOLLOWERS } from '../control/operations/task-log.ts'
import { MAX_ADDRESSES } from '../control/outbound/address-guard.ts'
import { MAX_UNDELAYED_ATTEMPTS, MIN_BACKOFF_MS } from '../control/rules/backoff.ts'
import { MAX_PLACEHOLDERS } from '../control/rules/placeholders.ts'
import { MAX_COUNTED_DUES, MAX_RUNNING, MAX_UNTOLD, MAX_WAITING_DUES } from '../control/rules/schedule.ts'
import { FAILURES_PER_LOG_LINE, LOGGED_FAILURES } from '../control/scheduler/folded-failures.ts'
import { MAX_POLLS, MAX_UNMET_CHARACTERS, POLL_TIMEOUT_MS } from '../control/scheduler/polls.ts'
import { READY_QUEUE_CAPACITY } from '../control/scheduler/ready-queue.ts'
import { MAX_SCHEDULE_FILE_BYTES } from '../control/schedules/schedule-file.ts'
import { MAX_SCHEDULE_FILES } from '../control/schedules/schedule-files.ts'
import { MAX_ATTEMPT_RECORDS } from '../control/task/attempt-record.ts'
import { MAX_PROGRESS_ENTRIES } from '../control/task/change-task.ts'
import { serveSettings } from '../runtime/config.ts'
import { MAX_KEPT_CERTIFICATES } from '../runtime/egress/authority.ts'
import { MAX_NETWORK_EVENTS } from '../runtime/egress/report.ts'
import { SPARE_SESSIONS } from '../runtime/egress/task-proxy.ts'
import { MAX_NOTED_CONNECTIONS } from '../runtime/egress/use-file.ts'
import { MAX_LISTED } from '../runtime/files/directory-list.ts'
import { MAX_STOCKED } from '../runtime/files/spare-dirs.ts'
import { LOOK_TIMEOUT_MS, MAX_LOOKS } from '../runtime/host/path-looks.ts'
import { MAX_SANDBOX_PATHS } from '../runtime/host/sandbox-paths.ts'
import { MAX_QUOTAS } from '../runtime/ledger/quotas.ts'
import { MAX_LISTED_INPUTS_CHARACTERS } from '../runtime/store/status-response.ts'
import { BAR_MS, MAX_BARRED_IDS } from '../runtime/tasks/late-submissions.ts'
import { MAX_OVERTAKEN } from '../runtime/tasks/waiting-queue.ts'
import {
  MAX_APPROVAL_ANSWER_BYTES,
  MAX_APPROVAL_MESSAGE_CHARACTERS,
  MAX_APPROVERS,
  MAX_NAMED_APPROVALS,
  MAX_WHO_CHARACTERS,
  MAX_WHY_CHARACTERS,
} from '../shared/contract/approval.ts'
import { MAX_AUDIT_PAGE } from '../shared/contract/audit-limits.ts'
import { MAX_CACHE_KEY_CHARACTERS, MAX_CACHE_TTL_MS } from '../shared/contract/cache.ts'
import {
  MAX_CALLBACK_HEADER_CHARACTERS,
  MAX_CALLBACK_HEADERS,
  MAX_CALLBACK_URL_CHARACTERS,
} from '../shared/contract/callbacks.ts'
import { MAX_PATCHED_SHOWN, MAX_RETRIED_SHOWN } from '../shared/contract/events.ts'
import { MAX_DRY_RUN_ERRORS, MAX_DRY_RUN_TIME_LIMITS } from '../shared/contract/graph-dry-run.ts'
import { MAX_GROUP_CHARACTERS, MAX_GROUP_LIMIT } from '../shared/contract/graph-groups.ts'
import { MAX_CANCELLED_ENTRIES, MAX_PAGE_GRAPHS } from '../shared/contract/graphs.ts'
import { MAX_ON_END } from '../shared/contract/on-end.ts'
import { MAX_PATCH_TASKS } from '../shared/contract/patch.ts'
import { MAX_PAUSE_BODY_BYTES, MAX_PAUSE_WHY_CHARACTERS, MAX_PAUSED_TYPES } from '../shared/contract/pauses.ts'
import { MAX_RERUN_TASKS } from '../shared/contract/rerun.ts'
import { MAX_RETRY_BODY_BYTES } from '../shared/contract/retry.ts'
import { MAX_INLINE_BYTES, MAX_WALL_TIME_MS } from '../shared/contract/runtime-request.ts'
import { MAX_JITTER_MS, MAX_KEPT_RUNS, MIN_EVERY_MS } from '../shared/contract/schedule-words.ts'
import { MAX_CRON_CHARACTERS, MAX_SCHEDULE_NAME_CHARACTERS } from '../shared/contract/schedules.ts'
import { MAX_SECRET_AFFIX_CHARACTERS, MAX_SECRETS } from '../shared/contract/secrets.ts'
import { MAX_SESSION_BODY_BYTES } from '../shared/contract/session.ts'
import { MAX_SIGNAL_BYTES, MAX_WAIT_CHARACTERS, MAX_WAIT_MESSAGE_CHARACTERS } from '../shared/contract/signal.ts'
import {
  MAX_BACKOFF_FACTOR,
  MAX_BACKOFF_MS,
  MAX_GRAPH_NAME_CHARACTERS,
  MAX_LABEL_VALUE_CHARACTERS,
  MAX_LABELS,
  MAX_PARAMETERS,
  MAX_PARAMETERS_CHARACTERS,
  MAX_RETRY,
  MAX_RETRY_CODES,
  MAX_SUBMIT_WARNINGS,
  MAX_TASK_ID_BYTES,
} from '../shared/contract/submission.ts'
import { MAX_KEPT_SECRETS, MAX_SECRET_COMMANDS } from '../shared/files/secret-command.ts'
import { MAX_SECRET_RULES_BYTES } from '../shared/files/secret-rules.ts'
import { MAX_SECRET_BYTES } from '../shared/files/secrets-directory.ts'
import { SOCKET_PATH_BYTES } from '../shared/files/socket-file.ts'
import { TOKENS_LOOK_MS } from '../shared/http/known-tokens.ts'
import { START_PATIENCE_MS } from '../shared/http/listen.ts'
import { MAX_SESSIONS_OF_TOKEN, MAX_SIGN_IN_LINKS, SIGN_IN_LINK_MS } from '../shared/http/sessions.ts'
import { READ_TIMEOUT_SECONDS, WRITE_TIMEOUT_SECONDS } from '../shared/http/time-limits.ts'
import {
  MAX_TENANT_REACH,
  MAX_TENANTS,
  MAX_TOKEN_NAME_CHARACTERS,
  MAX_TOKEN_RULES,
  MAX_TOKENS,
  MAX_TOKENS_FILE_BYTES,
} from '../shared/http/token-entries.ts'
import { MAX_TRACE_STATE_CHARACTERS } from '../shared/logs/trace.ts'
import { MAX_RESERVED_PROCESSES } from '../shared/process/process-reserve.ts'
import { MAX_STRING_BYTES, MAX_STRINGS_BYTES } from '../shared/request/execution.ts'
import { MAX_INPUTS } from '../shared/request/inputs.ts'
import { MAX_RULED_PATH_CHARACTERS } from '../shared/request/request-rule.ts'
import { MAX_MAP_ENTRIES, MAX_MAP_VALUE_CHARACTERS } from '../shared/request/text.ts'
import { MAX_TASK_ID_CHARACTERS } from '../shared/request/validate.ts'
import { flagName, type Settings } from '../shared/settings/flags.ts'
import { MAX_BRIEF_CHARACTERS } from '../shared/text/brief.ts'
import { MAX_GLOB_CHARACTERS } from '../shared/text/glob.ts'
import { MAX_MASK_BYTES, MAX_MASKED_BYTES, MIN_MASKED_CHARACTERS } from '../shared/text/mask-forms.ts'
import { MAX_TAIL_BYTES } from '../shared/text/text-tail.ts'

export interface Limit {
  /** The thing that has a limit. */
  readonly of: string
  /** The flag, or the constant in the code. */
  readonly name: string
  readonly value: string
  /** What happens beyond it. */
  readonly beyond: string
  /** A file below tests/, and a text in it. */
  readonly test: readonly [file: string, text: string]
}

type Row = readonly [of: string, name: string, value: string, beyond: string, file: string, text: string]

const limits = (rows: readonly Row[]): Limit[] =>
  rows.map(([of, name, value, beyond, file, text]) => ({ of, name, value, beyond, test: [file, text] }))

/** The name and default of a flag. */
function flagged<S extends Settings>(settings: S, key: keyof S & string): readonly [name: string, value: string] {
  const { default: value, value: unit } = settings[key]!
  return [`\`--${flagName(key)}\``, shown(String(value), unit)]
}

function shown(value: string, unit: string | undefined): string {
  if (!/^\d+$/.test(value)) return value // a duration with its unit
  const number = Number(value)
  if (unit === 'bytes') return bytes(number)
  if (unit === 'milliseconds') return duration(number)
  return unit === 'seconds' ? duration(number * 1_000) : count(number)
}

const control = (key: keyof typeof controlSettings & string) => flagged(controlSettings, key)
const runtime = (key: keyof typeof serveSettings & string) => flagged(serveSettings, key)

/** The name of a constant, with its value in words. */
const constant = (name: string, value: string): readonly [name: string, value: string] => [`\`${name}\``, value]

const count = (value: number, unit = ''): string => `${value.toLocaleString('en-US')}${unit === '' ? '' : ` ${unit}`}`
const characters = (value: number): string => count(value, 'characters')

function bytes(value: number): string {
  const [size, unit] = (
    [
      [1024 ** 3, 'GiB'],
      [1024 ** 2, 'MiB'],
      [1024, 'KiB'],
    ] as const
  ).find(([one]) => value % one === 0) ?? [1, 'bytes']
  return count(value / size, unit)
}

function duration(ms: number): string {
  const [size, unit] = (
    [
      [86_400_000, 'days'],
      [3_600_000, 'h'],
      [60_000, 'min'],
      [1_000, 's'],
    ] as const
  ).find(([one]) => ms % one === 0 && ms / one >= (one === 86_400_000 ? 2 : 1)) ?? [1, 'ms']
  return count(ms / size, unit)
}

/** Heading to limits. */
// biome-ignore format: a line for each limit
export const LIMITS: Readonly<Record<string, readonly Limit[]>> = {
  'Requests to control': limits([
    ['Bytes of a body, and of the graph of an action', ...control('maxBodyBytes'), '413', 'contract/submit.test.ts', 'a body of exactly --max-body-bytes is not'],
    ['Bytes of a message to `/mcp`', ...constant('MAX_MCP_BODY_BYTES', bytes(MAX_MCP_BODY_BYTES)), '413', 'contract/mcp-endpoint.test.ts', 'a body that is too large is 413'],
    ['Bytes of the path of a Unix socket to listen on', ...constant('MAX_SOCKET_PATH_BYTES', `${SOCKET_PATH_BYTES.linux}, on macOS ${SOCKET_PATH_BYTES.others}`), 'The start is refused.', 'contract/unix-socket.test.ts', 'takes the place of one that was killed, and of nobody else'],
    ['Time for which a request waits for the end of the start', ...constant('START_PATIENCE_MS', duration(START_PATIENCE_MS)), '503', 'contract/readiness.test.ts', 'a service that starts answers 503 until'],
    ['Time for receiving a request', ...constant('READ_TIMEOUT_SECONDS', `${READ_TIMEOUT_SECONDS} s`), 'The connection is closed. Bun counts in steps of 4 s.', 'contract/time-limits.long.test.ts', 'read: 15 s for the whole request'],
    ['Time for sending an answer', ...constant('WRITE_TIMEOUT_SECONDS', `${WRITE_TIMEOUT_SECONDS} s`), 'The connection is closed.', 'contract/time-limits.long.test.ts', 'one that does not read its answer'],
    ['Fields beside `tasks`, and fields of one task', ...constant('MAX_FIELDS', count(MAX_FIELDS)), '400', 'control/rules/decode.test.ts', 'MAX_FIELDS'],
    ['Bytes of the id of a task', ...constant('MAX_TASK_ID_BYTES', count(MAX_TASK_ID_BYTES)), '400', 'contract/submit.test.ts', 'MAX_TASK_ID_BYTES'],
    ['Levels of nesting of `params` and `input`, also with the values of references', ...constant('MAX_JSON_DEPTH', count(MAX_JSON_DEPTH)), '400', 'control/rules/decode.test.ts', 'MAX_JSON_DEPTH'],
    ['Bytes of a tokens file', ...constant('MAX_TOKENS_FILE_BYTES', bytes(MAX_TOKENS_FILE_BYTES)), 'The start is refused; later, the earlier tokens stay.', 'shared/http/known-tokens.test.ts', 'MAX_TOKENS_FILE_BYTES'],
    ['Tokens of callers', ...constant('MAX_TOKENS', count(MAX_TOKENS)), 'The same', 'shared/http/token-entries.test.ts', 'MAX_TOKENS + 1'],
    ['Characters of the name of a token', ...constant('MAX_TOKEN_NAME_CHARACTERS', count(MAX_TOKEN_NAME_CHARACTERS)), 'The same', 'shared/http/token-entries.test.ts', 'MAX_TOKEN_NAME_CHARACTERS'],
    ['Types, and labels, of a token', ...constant('MAX_TOKEN_RULES', count(MAX_TOKEN_RULES)), 'The same', 'shared/http/token-entries.test.ts', 'MAX_TOKEN_RULES'],
    ['Tenants in a tokens file', ...constant('MAX_TENANTS', count(MAX_TENANTS)), 'The same', 'shared/http/token-entries.test.ts', 'MAX_TENANTS + 1'],
    ['Hosts that a tenant reaches beside public ones', ...constant('MAX_TENANT_REACH', count(MAX_TENANT_REACH)), 'The same', 'shared/http/token-entries.test.ts', 'MAX_TENANT_REACH + 1'],
    ['Time for which a browser stays signed in', ...control('sessionTtl'), '401: the page asks for a token.', 'contract/sessions.test.ts', 'a session lasts as long as --session-ttl says'],
    ['Sessions of a token', ...constant('MAX_SESSIONS_OF_TOKEN', count(MAX_SESSIONS_OF_TOKEN)), 'The oldest ends.', 'shared/http/sessions.test.ts', 'beyond MAX_SESSIONS_OF_TOKEN'],
    ['Links that sign in, which nobody has used', ...constant('MAX_SIGN_IN_LINKS', count(MAX_SIGN_IN_LINKS)), 'The oldest becomes void.', 'shared/http/sessions.test.ts', 'beyond MAX_SIGN_IN_LINKS'],
    ['Time for which such a link works', ...constant('SIGN_IN_LINK_MS', duration(SIGN_IN_LINK_MS)), '401', 'shared/http/sessions.test.ts', 'SIGN_IN_LINK_MS'],
    ['Failed attempts to sign in, of an address', ...constant('MAX_FAILED_SIGN_INS', count(MAX_FAILED_SIGN_INS)), '429, until the time is over', 'contract/sessions.test.ts', 'whoever fails to sign in too often'],
    ['Time for which they count', ...constant('FAILED_SIGN_INS_MS', duration(FAILED_SIGN_INS_MS)), 'They are forgotten.', 'control/http/failed-sign-ins.test.ts', 'FAILED_SIGN_INS_MS'],
    ['Addresses with failed attempts', ...constant('MAX_FAILED_ADDRESSES', count(MAX_FAILED_ADDRESSES)), 'The oldest is forgotten.', 'control/http/failed-sign-ins.test.ts', 'beyond MAX_FAILED_ADDRESSES'],
    ['Bytes of the body of a request to sign in', ...constant('MAX_SESSION_BODY_BYTES', bytes(MAX_SESSION_BODY_BYTES)), '413', 'contract/sessions.test.ts', 'MAX_SESSION_BODY_BYTES'],
    ['Time until a change of the tokens file is noticed', ...constant('TOKENS_LOOK_MS', duration(TOKENS_LOOK_MS)), 'Expired tokens are refused at once.', 'contract/caller-tokens.test.ts', 'revokes: streams'],
    ['Graphs of a token in a minute', '`graphs_per_minute`', 'none', '429', 'control/operations/caller-quotas.test.ts', 'graphs_per_minute'],
    ['Live tasks of a token', '`live_tasks`', 'none', '429; 413 for a graph with more', 'control/operations/caller-quotas.test.ts', 'live_tasks'],
    ['Bytes of a file of the audit log', ...constant('MAX_AUDIT_FILE_BYTES', bytes(MAX_AUDIT_FILE_BYTES)), 'The next file begins.', 'control/log/audit-log.test.ts', 'maxFileBytes'],
    ['Files of the audit log', ...constant('MAX_AUDIT_FILES', count(MAX_AUDIT_FILES)), 'The oldest is removed.', 'control/log/audit-log.test.ts', 'MAX_AUDIT_FILES'],
    ['Records of the audit log of all replicas', ...constant('MAX_AUDIT_RECORDS', count(MAX_AUDIT_RECORDS)), 'The oldest are removed.', 'control/log/postgres/shared-audit.test.ts', 'maxRecords'],
    ['Records of the audit log that wait for the database', ...constant('MAX_WAITING_AUDIT_RECORDS', count(MAX_WAITING_AUDIT_RECORDS)), 'Further ones are lost. The next record counts them.', 'control/log/postgres/shared-audit.test.ts', 'MAX_WAITING_AUDIT_RECORDS'],
    ['Records that a stream of the audit log reads at a time', ...constant('MAX_FOLLOWED_RECORDS', count(MAX_FOLLOWED_RECORDS)), 'The stream ends with `lagging`.', 'control/http/audit-events.test.ts', 'MAX_FOLLOWED_RECORDS'],
    ['Records of a page of the audit log', ...constant('MAX_AUDIT_PAGE', count(MAX_AUDIT_PAGE)), '400', 'contract/audit.test.ts', '1_001'],
    ['`wait_ms`', ...constant('MAX_WAIT_MS', duration(MAX_WAIT_MS)), '400', 'contract/graphs.test.ts', 'is refused for wait_ms=%s'],
    ['Tasks of a page', ...constant('MAX_PAGE_TASKS', count(MAX_PAGE_TASKS)), '400', 'contract/list-tasks.test.ts', '1001'],
    ['Graphs of a page', ...constant('MAX_PAGE_GRAPHS', count(MAX_PAGE_GRAPHS)), '400', 'contract/graphs.test.ts', '1001'],
    ['Lines of the tail of a log', ...constant('MAX_TAIL_LINES', count(MAX_TAIL_LINES)), '400', 'contract/logs.test.ts', 'tail=100001'],
    ['Idempotency keys that are kept', ...constant('MAX_KEYS', count(MAX_KEYS)), 'The oldest are forgotten.', 'control/log/idempotency.test.ts', 'MAX_KEYS'],
    ['Age of an idempotency key', ...constant('KEY_LIFETIME_MS', duration(KEY_LIFETIME_MS)), 'It is forgotten.', 'control/log/idempotency.test.ts', 'KEY_LIFETIME_MS'],
    ['Entries in the answer of a cancel', ...constant('MAX_CANCELLED_ENTRIES', count(MAX_CANCELLED_ENTRIES)), '`truncated`', 'contract/graphs-cancel-delete.test.ts', 'MAX_CANCELLED_ENTRIES'],
    ['Characters of a task in brief that went well', ...constant('MAX_BRIEF_CHARACTERS', characters(MAX_BRIEF_CHARACTERS)), 'Its output loses the beginning.', 'shared/text/brief.test.ts', 'MAX_BRIEF_CHARACTERS'],
    ['Characters of results in an answer of an MCP tool', ...constant('MAX_RESULTS_CHARACTERS', characters(MAX_RESULTS_CHARACTERS)), 'A pointer to the rest', 'control/mcp-server/view.test.ts', 'MAX_RESULTS_CHARACTERS'],
  ]),
  'Graphs and tasks': limits([
    ['Stored tasks', ...control('maxStoredTasks'), 'The oldest ended graphs are removed; 503 if live graphs leave no room; 413 for a graph with more', 'control/task/retention.test.ts', '--max-stored-tasks'],
    ['Tasks of a graph', ...control('maxGraphTasks'), '413. A dynamic task that would add more fails.', 'contract/dynamic-tasks.test.ts', '--max-graph-tasks'],
    ['Bytes of stored results and inputs', ...control('maxStoredBytes'), 'The oldest ended graphs are removed.', 'control/task/retention.test.ts', 'maxStoredBytes'],
    ['Bytes of the results and inputs of a graph', ...control('maxGraphResultBytes'), 'The task fails.', 'contract/graph-bytes.test.ts', '--max-graph-result-bytes'],
    ['Age of an ended graph', ...control('retention'), 'It is removed.', 'control/task/retention.test.ts', 'lets go of a graph that ended a retention ago'],
    ['Attempts at the same time', ...control('maxConcurrency'), 'Tasks wait.', 'contract/scheduling.test.ts', '--max-concurrency 2 runs two at once and never three'],
    ['Ready tasks in the queue', ...constant('READY_QUEUE_CAPACITY', count(READY_QUEUE_CAPACITY)), 'More stay pending, and enter in order.', 'control/scheduler/ready-queue.test.ts', 'READY_QUEUE_CAPACITY'],
    ['Characters of the name of a graph', ...constant('MAX_GRAPH_NAME_CHARACTERS', count(MAX_GRAPH_NAME_CHARACTERS)), '400', 'contract/limits.test.ts', 'MAX_GRAPH_NAME_CHARACTERS'],
    ['Characters of the group of a graph', ...constant('MAX_GROUP_CHARACTERS', count(MAX_GROUP_CHARACTERS)), '400', 'contract/limits.test.ts', 'MAX_GROUP_CHARACTERS'],
    ['Graphs of a group at the same time', ...constant('MAX_GROUP_LIMIT', count(MAX_GROUP_LIMIT)), '400', 'contract/limits.test.ts', 'MAX_GROUP_LIMIT'],
    ['Labels', ...constant('MAX_LABELS', count(MAX_LABELS)), '400', 'contract/limits.test.ts', 'MAX_LABELS'],
    ['Characters of the value of a label', ...constant('MAX_LABEL_VALUE_CHARACTERS', count(MAX_LABEL_VALUE_CHARACTERS)), '400', 'contract/limits.test.ts', 'MAX_LABEL_VALUE_CHARACTERS'],
    ['Entries of `on_end`', ...constant('MAX_ON_END', count(MAX_ON_END)), '400', 'contract/on-end.test.ts', 'MAX_ON_END'],
    ['Parameters of a graph', ...constant('MAX_PARAMETERS', count(MAX_PARAMETERS)), '400', 'contract/limits.test.ts', 'MAX_PARAMETERS'],
    ['Characters of all parameters as JSON', ...constant('MAX_PARAMETERS_CHARACTERS', count(MAX_PARAMETERS_CHARACTERS)), '400', 'contract/limits.test.ts', 'MAX_PARAMETERS_CHARACTERS'],
    ['Placeholders of a task', ...constant('MAX_PLACEHOLDERS', count(MAX_PLACEHOLDERS)), '400', 'control/rules/placeholders.test.ts', 'MAX_PLACEHOLDERS'],
    ['Bytes of a referenced value as JSON', ...control('maxReferenceBytes'), 'The task fails.', 'contract/references.test.ts', '--max-reference-bytes'],
    ['Characters of a JSON Pointer', ...constant('MAX_POINTER_CHARACTERS', count(MAX_POINTER_CHARACTERS)), '400', 'control/json/json-pointer.test.ts', 'MAX_POINTER_CHARACTERS'],
    ['Characters of a pattern of `matches`', ...constant('MAX_GLOB_CHARACTERS', count(MAX_GLOB_CHARACTERS)), '400', 'control/rules/when.test.ts', 'MAX_GLOB_CHARACTERS'],
    ['Elements of `for_each`', ...control('maxFanOut'), 'The task fails.', 'contract/for-each.test.ts', '--max-fan-out'],
    ['`retry` of a task', ...constant('MAX_RETRY', count(MAX_RETRY)), '400', 'contract/limits.test.ts', 'MAX_RETRY,'],
    ['Failed attempts of a task with a log line each', ...constant('LOGGED_FAILURES', count(LOGGED_FAILURES)), `Then one line for each ${FAILURES_PER_LOG_LINE} failures (\`FAILURES_PER_LOG_LINE\`).`, 'control/scheduler/retries.test.ts', 'LOGGED_FAILURES'],
    ['Attempts without a wait (`backoff.initial_ms` of 0)', ...constant('MAX_UNDELAYED_ATTEMPTS', count(MAX_UNDELAYED_ATTEMPTS)), `Each further wait is ${MIN_BACKOFF_MS} ms at least (\`MIN_BACKOFF_MS\`).`, 'control/rules/backoff.test.ts', 'MAX_UNDELAYED_ATTEMPTS'],
    ['Codes in `retry_on`', ...constant('MAX_RETRY_CODES', count(MAX_RETRY_CODES)), '400', 'contract/limits.test.ts', 'MAX_RETRY_CODES'],
    ['A wait of `backoff`', ...constant('MAX_BACKOFF_MS', duration(MAX_BACKOFF_MS)), '400', 'contract/limits.test.ts', 'MAX_BACKOFF_MS'],
    ['`factor` of `backoff`', ...constant('MAX_BACKOFF_FACTOR', count(MAX_BACKOFF_FACTOR)), '400', 'contract/limits.test.ts', 'MAX_BACKOFF_FACTOR'],
    ['Attempts in a record', ...constant('MAX_ATTEMPT_RECORDS', count(MAX_ATTEMPT_RECORDS)), 'The last ones are kept.', 'control/task/attempt-record.test.ts', 'MAX_ATTEMPT_RECORDS'],
    ['`tail` of an attempt', ...constant('MAX_TAIL_BYTES', bytes(MAX_TAIL_BYTES)), 'The end is kept.', 'shared/text/text-tail.test.ts', 'MAX_TAIL_BYTES'],
    ['Entries of `progress`', ...constant('MAX_PROGRESS_ENTRIES', count(MAX_PROGRESS_ENTRIES)), 'The last ones are kept.', 'control/task/task-store.test.ts', 'keeps the last hundred reports of progress'],
    ['Characters of the `key` of a `cache`', ...constant('MAX_CACHE_KEY_CHARACTERS', count(MAX_CACHE_KEY_CHARACTERS)), '400', 'contract/limits.test.ts', 'MAX_CACHE_KEY_CHARACTERS'],
    ['`ttl_ms` of a `cache`', ...constant('MAX_CACHE_TTL_MS', duration(MAX_CACHE_TTL_MS)), '400', 'contract/cache.test.ts', 'MAX_CACHE_TTL_MS'],
    ['Keys with an outcome', ...control('maxCachedOutcomes'), 'The oldest are forgotten.', 'contract/cache.test.ts', 'are bounded, and the oldest go first'],
    ['Secrets of a task', ...constant('MAX_SECRETS', count(MAX_SECRETS)), '400', 'contract/limits.test.ts', 'MAX_SECRETS'],
    ['Characters of `prefix` and of `suffix` of a `$secret`', ...constant('MAX_SECRET_AFFIX_CHARACTERS', count(MAX_SECRET_AFFIX_CHARACTERS)), '400', 'control/rules/secret-places.test.ts', 'MAX_SECRET_AFFIX_CHARACTERS'],
    ['Calls of an MCP server whose secrets are masked in what it says later', ...constant('MAX_REMEMBERED_CALLS', count(MAX_REMEMBERED_CALLS)), 'The oldest are forgotten.', 'control/mcp-client/sent-to-server.test.ts', 'MAX_REMEMBERED_CALLS'],
    ['Bytes of a secret', ...constant('MAX_SECRET_BYTES', bytes(MAX_SECRET_BYTES)), 'The task fails.', 'shared/files/secrets-directory.test.ts', 'MAX_SECRET_BYTES'],
    ['Secrets of `--secret-command` in memory, and of one task', ...constant('MAX_KEPT_SECRETS', count(MAX_KEPT_SECRETS)), 'The oldest are forgotten. The task fails.', 'shared/files/secret-command.test.ts', 'MAX_KEPT_SECRETS'],
    ['Commands of `--secret-command` at a time', ...constant('MAX_SECRET_COMMANDS', count(MAX_SECRET_COMMANDS)), 'Further names wait.', 'shared/files/secret-command.test.ts', 'MAX_SECRET_COMMANDS'],
    ['Characters of a secret that is typed at a prompt', ...constant('MAX_TYPED_CHARACTERS', count(MAX_TYPED_CHARACTERS)), 'Refused: give it on standard input.', 'adapter/secrets/hidden-line.test.ts', 'MAX_TYPED_CHARACTERS'],
    ['Bytes of the file of `--secrets-rules`', ...constant('MAX_SECRET_RULES_BYTES', bytes(MAX_SECRET_RULES_BYTES)), 'The earlier rules stay in force.', 'shared/files/secret-rules.test.ts', 'MAX_SECRET_RULES_BYTES'],
    ['Characters of a secret, or of a line of it, that are masked', ...constant('MIN_MASKED_CHARACTERS', count(MIN_MASKED_CHARACTERS)), 'Shorter ones are printed.', 'shared/text/mask-forms.test.ts', 'MIN_MASKED_CHARACTERS'],
    ['Bytes of a secret that is masked', ...constant('MAX_MASKED_BYTES', bytes(MAX_MASKED_BYTES)), 'A larger one is not masked.', 'shared/text/mask-forms.test.ts', 'MAX_MASKED_BYTES'],
    ['Bytes of all forms of the secrets of a task that are masked', ...constant('MAX_MASK_BYTES', bytes(MAX_MASK_BYTES)), 'The task fails.', 'shared/text/mask-forms.test.ts', 'MAX_MASK_BYTES'],
    ['Ids in `from` of a rerun', ...constant('MAX_RERUN_TASKS', count(MAX_RERUN_TASKS)), '400', 'contract/limits.test.ts', 'MAX_RERUN_TASKS'],
    ['Bytes of the body of a retry', ...constant('MAX_RETRY_BODY_BYTES', bytes(MAX_RETRY_BODY_BYTES)), '413', 'contract/retry.test.ts', 'MAX_RETRY_BODY_BYTES'],
    ['Ids of tasks in the answer to a retry, and in its event', ...constant('MAX_RETRIED_SHOWN', count(MAX_RETRIED_SHOWN)), 'The first ones are named.', 'contract/retry.test.ts', 'MAX_RETRIED_SHOWN'],
    ['Tasks in each list of a patch', ...constant('MAX_PATCH_TASKS', count(MAX_PATCH_TASKS)), '400', 'contract/patch-graph.test.ts', 'MAX_PATCH_TASKS'],
    ['Ids in each list of the answer to a patch, and of its event', ...constant('MAX_PATCHED_SHOWN', count(MAX_PATCHED_SHOWN)), 'The first ones are named.', 'contract/patch-graph.test.ts', 'MAX_PATCHED_SHOWN'],
    ['Errors of a dry run', ...constant('MAX_DRY_RUN_ERRORS', count(MAX_DRY_RUN_ERRORS)), 'The first ones are named.', 'contract/limits.test.ts', 'MAX_DRY_RUN_ERRORS'],
    ['Tasks of a dry run with time limits', ...constant('MAX_DRY_RUN_TIME_LIMITS', count(MAX_DRY_RUN_TIME_LIMITS)), 'The first ones are named.', 'contract/limits.test.ts', 'MAX_DRY_RUN_TIME_LIMITS'],
    ['Warnings of a submission', ...constant('MAX_SUBMIT_WARNINGS', count(MAX_SUBMIT_WARNINGS)), 'The first ones are named.', 'contract/unknown-fields.test.ts', 'MAX_SUBMIT_WARNINGS'],
    ['Characters of a runtime task that are checked at submission', ...constant('MAX_REVIEWED_CHARACTERS', count(MAX_REVIEWED_CHARACTERS)), 'Faults show when it runs.', 'control/executors/runtime/request-review.test.ts', 'MAX_REVIEWED_CHARACTERS'],
    ['Characters of the `message` of an approval', ...constant('MAX_APPROVAL_MESSAGE_CHARACTERS', count(MAX_APPROVAL_MESSAGE_CHARACTERS)), 'The task fails.', 'contract/approval.test.ts', 'MAX_APPROVAL_MESSAGE_CHARACTERS'],
    ['Characters of a `tracestate`', ...constant('MAX_TRACE_STATE_CHARACTERS', count(MAX_TRACE_STATE_CHARACTERS)), 'It is dropped.', 'contract/trace-context.test.ts', 'is dropped, and the traceparent kept'],
    ['Characters of `who`', ...constant('MAX_WHO_CHARACTERS', count(MAX_WHO_CHARACTERS)), '400', 'contract/approval.test.ts', 'MAX_WHO_CHARACTERS'],
    ['Characters of `why`', ...constant('MAX_WHY_CHARACTERS', count(MAX_WHY_CHARACTERS)), '400', 'contract/approval.test.ts', 'MAX_WHY_CHARACTERS'],
    ['Approvals that the answer of a wait names', ...constant('MAX_NAMED_APPROVALS', count(MAX_NAMED_APPROVALS)), 'The first ones.', 'contract/approval.test.ts', 'MAX_NAMED_APPROVALS'],
    ['Characters of the `message` of a wait', ...constant('MAX_WAIT_MESSAGE_CHARACTERS', count(MAX_WAIT_MESSAGE_CHARACTERS)), 'The task fails.', 'contract/waits.test.ts', 'MAX_WAIT_MESSAGE_CHARACTERS'],
    ['Characters of the parameters of a wait', ...constant('MAX_WAIT_CHARACTERS', count(MAX_WAIT_CHARACTERS)), 'The task fails.', 'contract/waits.test.ts', 'MAX_WAIT_CHARACTERS'],
    ['Deletions whose 404 waits for the disk', ...constant('MAX_UNCERTAIN_DELETIONS', count(MAX_UNCERTAIN_DELETIONS)), 'The 404 of older ones does not wait.', 'control/operations/promises.test.ts', 'MAX_UNCERTAIN_DELETIONS'],
    ['Time in which a pipe for standard error of the client takes nothing', ...constant('STALL_MS', duration(STALL_MS)), 'Lines are dropped, and counted.', 'adapter/follow/patient-texts.test.ts', 'STALL_MS'],
    ['Requests of waits for answers at the same time', ...constant('MAX_POLLS', count(MAX_POLLS)), 'Others wait.', 'control/scheduler/polls.test.ts', 'MAX_POLLS'],
    ['Time of one such request', ...constant('POLL_TIMEOUT_MS', duration(POLL_TIMEOUT_MS)), 'The next one follows.', 'control/scheduler/polls.test.ts', 'POLL_TIMEOUT_MS'],
    ['Characters of why an answer is not as expected', ...constant('MAX_UNMET_CHARACTERS', count(MAX_UNMET_CHARACTERS)), 'It is cut off.', 'control/scheduler/polls.test.ts', 'MAX_UNMET_CHARACTERS'],
    ['Bytes of the value of a signal', ...constant('MAX_SIGNAL_BYTES', bytes(MAX_SIGNAL_BYTES)), '413', 'contract/waits.test.ts', 'MAX_SIGNAL_BYTES'],
    ['Names in `by` of an approval', ...constant('MAX_APPROVERS', count(MAX_APPROVERS)), 'The task fails.', 'contract/caller-tokens.test.ts', 'Array(33)'],
    ['Bytes of an answer to an approval', ...constant('MAX_APPROVAL_ANSWER_BYTES', bytes(MAX_APPROVAL_ANSWER_BYTES)), '413', 'contract/approval.test.ts', 'MAX_APPROVAL_ANSWER_BYTES'],
    ['Moves of files between runtime services at the same time', ...constant('MAX_MOVES', count(MAX_MOVES)), 'Others wait.', 'control/executors/runtime/file-moves.test.ts', 'MAX_MOVES'],
    ['Time without a byte of such a move', ...constant('MOVE_STALL_MS', duration(MOVE_STALL_MS)), 'It begins again.', 'control/executors/runtime/file-moves.test.ts', 'a move without a byte is broken off'],
    ['Hashes of files that are remembered for moves', ...constant('MAX_REMEMBERED_BUNDLES', count(MAX_REMEMBERED_BUNDLES)), 'The oldest are forgotten.', 'control/executors/runtime/file-moves.test.ts', 'MAX_REMEMBERED_BUNDLES'],
  ]),
  Pauses: limits([
    ['Characters of `why`', ...constant('MAX_PAUSE_WHY_CHARACTERS', count(MAX_PAUSE_WHY_CHARACTERS)), '400', 'contract/pauses.test.ts', 'MAX_PAUSE_WHY_CHARACTERS'],
    ['Types that are paused at a time', ...constant('MAX_PAUSED_TYPES', count(MAX_PAUSED_TYPES)), '409', 'contract/pauses.test.ts', 'MAX_PAUSED_TYPES'],
    ['Bytes of the body of a request', ...constant('MAX_PAUSE_BODY_BYTES', bytes(MAX_PAUSE_BODY_BYTES)), '413', 'contract/pauses.test.ts', 'MAX_PAUSE_BODY_BYTES'],
  ]),
  Schedules: limits([
    ['Schedules', ...control('maxSchedules'), '409', 'contract/schedules.test.ts', '--max-schedules'],
    ['Characters of the name of a schedule', ...constant('MAX_SCHEDULE_NAME_CHARACTERS', count(MAX_SCHEDULE_NAME_CHARACTERS)), '400', 'contract/schedules.test.ts', 'name: expected 1 to 128'],
    ['Characters of `cron`', ...constant('MAX_CRON_CHARACTERS', count(MAX_CRON_CHARACTERS)), '400', 'contract/schedules.test.ts', 'MAX_CRON_CHARACTERS'],
    ['Shortest `every`', ...constant('MIN_EVERY_MS', duration(MIN_EVERY_MS)), '400', 'contract/schedules.test.ts', 'every: expected integer of milliseconds'],
    ['Longest `jitter`', ...constant('MAX_JITTER_MS', duration(MAX_JITTER_MS)), '400', 'contract/schedules.test.ts', 'MAX_JITTER_MS'],
    ['Graphs that `keep` may name', ...constant('MAX_KEPT_RUNS', count(MAX_KEPT_RUNS)), '400', 'contract/schedules.test.ts', 'MAX_KEPT_RUNS'],
    ['Graphs of a schedule that run at a time', ...constant('MAX_RUNNING', count(MAX_RUNNING)), 'The due time is skipped.', 'control/rules/schedule.test.ts', 'MAX_RUNNING'],
    ['Due times of a schedule that wait, or are caught up', ...constant('MAX_WAITING_DUES', count(MAX_WAITING_DUES)), 'Others are missed.', 'control/rules/schedule.test.ts', 'MAX_WAITING_DUES'],
    ['Failures of a schedule that are still to be told', ...constant('MAX_UNTOLD', count(MAX_UNTOLD)), 'Older ones are not told.', 'control/rules/schedule.test.ts', 'MAX_UNTOLD'],
    ['Files of schedules', ...constant('MAX_SCHEDULE_FILES', count(MAX_SCHEDULE_FILES)), 'Those after it are not read.', 'contract/schedule-files.long.test.ts', 'MAX_SCHEDULE_FILES'],
    ['Bytes of a file of a schedule', ...constant('MAX_SCHEDULE_FILE_BYTES', bytes(MAX_SCHEDULE_FILE_BYTES)), 'It is not read, and its schedule stays.', 'contract/schedule-files.test.ts', 'MAX_SCHEDULE_FILE_BYTES'],
    ['Missed due times that one look counts', ...constant('MAX_COUNTED_DUES', count(MAX_COUNTED_DUES)), 'Others are not counted.', 'control/rules/schedule.test.ts', 'MAX_COUNTED_DUES'],
    ['Rows of graphs that a schedule has submitted, with `--database`', ...constant('MAX_RUN_ROWS', count(MAX_RUN_ROWS)), 'The oldest are removed.', 'control/log/postgres/schedule-rows.test.ts', 'MAX_RUN_ROWS'],
  ]),
  'Watching, logs and callbacks': limits([
    ['Open event streams', ...control('maxEventStreams'), '503', 'contract/events.test.ts', 'a stream too many gets 503'],
    ['Bytes of events that wait for a client', ...constant('STREAM_BUFFER_BYTES', bytes(STREAM_BUFFER_BYTES)), 'After `--slow-client-timeout` the stream ends with `lagging`.', 'contract/event-clients.long.test.ts', 'a client that reads nothing is told that it lags and cut'],
    ['Positions in the id of an event of several replicas', ...constant('MAX_POSITIONS', count(MAX_POSITIONS)), '400', 'control/log/positions.test.ts', 'MAX_POSITIONS'],
    ['Time for which a client may read nothing', ...control('slowClientTimeout'), 'It is cut off.', 'contract/logs.test.ts', 'one who reads nothing for --slow-client-timeout is cut off'],
    ['Past events', ...control('eventHistory'), 'A stream resumed from an older one begins with the present state.', 'contract/events.test.ts', 'that is gone gives a reset with the present state'],
    ['Logs that are followed', ...constant('MAX_LOG_FOLLOWERS', count(MAX_LOG_FOLLOWERS)), '503', 'control/operations/task-log.test.ts', 'MAX_LOG_FOLLOWERS'],
    ['Files of tasks that are read', ...constant('MAX_FILE_STREAMS', count(MAX_FILE_STREAMS)), '503', 'control/operations/task-files.test.ts', 'MAX_FILE_STREAMS'],
    ['Bytes of a file in an answer of `get_task_file`', ...constant('MAX_FILE_TEXT_BYTES', bytes(MAX_FILE_TEXT_BYTES)), 'A link is in its place.', 'contract/task-files.test.ts', 'MAX_FILE_TEXT_BYTES'],
    ['Silence of a runtime service while a file is read', ...constant('FILE_STALL_MS', duration(FILE_STALL_MS)), 'The answer breaks off.', 'control/executors/runtime/task-files.test.ts', 'FILE_STALL_MS'],
    ['Bytes of the live log of a runtime task in memory', ...constant('MAX_KEPT_BYTES', bytes(MAX_KEPT_BYTES)), 'The end is kept.', 'control/executors/runtime/live-log.test.ts', 'MAX_KEPT_BYTES'],
    ['Silence of the connection of a followed log of a runtime task', ...constant('SILENT_LOG_MS', duration(SILENT_LOG_MS)), 'The log is read anew from there on.', 'control/executors/runtime/remote-logs.test.ts', 'has died without a word'],
    ['Headers of a callback', ...constant('MAX_CALLBACK_HEADERS', count(MAX_CALLBACK_HEADERS)), '400', 'control/rules/callback-headers.test.ts', 'MAX_CALLBACK_HEADERS'],
    ['Characters of a header of a callback', ...constant('MAX_CALLBACK_HEADER_CHARACTERS', count(MAX_CALLBACK_HEADER_CHARACTERS)), '400', 'control/rules/callback-headers.test.ts', 'MAX_CALLBACK_HEADER_CHARACTERS'],
    ['Characters of the `url` of a callback', ...constant('MAX_CALLBACK_URL_CHARACTERS', count(MAX_CALLBACK_URL_CHARACTERS)), '400', 'contract/limits.test.ts', 'MAX_CALLBACK_URL_CHARACTERS'],
    ['Wait for a database that does not answer', ...constant('ANSWER_WITHIN_MS', duration(ANSWER_WITHIN_MS)), '503', 'contract/database-away.long.test.ts', 'ANSWER_WITHIN_MS'],
    ['Callbacks that wait', ...constant('MAX_WAITING', count(MAX_WAITING)), 'The oldest are given up.', 'control/callbacks/deliveries.test.ts', 'for more than may wait, the oldest are given up'],
    ['Age of a callback', ...constant('GIVE_UP_AFTER_MS', duration(GIVE_UP_AFTER_MS)), 'It is given up.', 'control/callbacks/deliveries.test.ts', 'GIVE_UP_AFTER_MS'],
    ['Tries of callbacks at the same time', ...constant('MAX_TRIES', count(MAX_TRIES)), 'They wait.', 'control/callbacks/deliveries.test.ts', 'MAX_TRIES'],
    ['Tries at the same time to one receiver', ...constant('MAX_TRIES_OF_RECEIVER', count(MAX_TRIES_OF_RECEIVER)), 'They wait.', 'contract/callbacks.test.ts', 'a receiver that hangs holds up no other'],
  ]),
  'Tools of control': limits([
    ['Bytes of each stream of a shell task', ...constant('MAX_STREAM_BYTES', bytes(MAX_STREAM_BYTES)), 'The beginning is kept.', 'contract/executors-shell.test.ts', 'exactly 1 MiB is not cut'],
    ['Bytes of the output of a cli-skills task', ...constant('MAX_OUTPUT_BYTES', bytes(MAX_OUTPUT_BYTES)), 'The beginning is kept.', 'contract/executors-cli-skills.test.ts', '1024 * 1024'],
    ['Processes of the user that local commands and MCP servers leave to the service (`ulimit -u`)', ...constant('MAX_RESERVED_PROCESSES', count(MAX_RESERVED_PROCESSES)), 'A fork fails.', 'shared/process/process-reserve.test.ts', 'MAX_RESERVED_PROCESSES'],
    ['Bytes of `stdin`', ...constant('MAX_STDIN_BYTES', bytes(MAX_STDIN_BYTES)), 'The task fails.', 'contract/executors-cli-skills.test.ts', 'of up to 1 MiB is passed on; more is refused'],
    ['Bytes of the body of an http task', ...constant('MAX_BODY_BYTES', bytes(MAX_BODY_BYTES)), 'The beginning is kept.', 'contract/executors-http.test.ts', 'of 1,048,576 bytes is whole'],
    ['Redirects of an http task', ...constant('MAX_REDIRECTS', count(MAX_REDIRECTS)), 'The task fails.', 'contract/executors-http.test.ts', 'the eleventh fails'],
    ['Addresses of a name that are looked at', ...constant('MAX_ADDRESSES', count(MAX_ADDRESSES)), 'The others are not tried.', 'control/outbound/pinned-fetch.test.ts', 'MAX_ADDRESSES'],
    ['`duration_ms` of a sleep task', ...constant('MAX_SLEEP_MS', duration(MAX_SLEEP_MS)), 'The task fails.', 'contract/executors-sleep-noop.test.ts', '600_001'],
    ['`timeout_ms` of a tcp task', ...constant('MAX_CONNECT_MS', duration(MAX_CONNECT_MS)), 'The task fails.', 'contract/executors-dns-tcp.test.ts', '60_001'],
    ['Bytes of a message of an MCP server', ...constant('MAX_MESSAGE_BYTES', bytes(MAX_MESSAGE_BYTES)), 'The call fails.', 'contract/executors-mcp-odd-servers.long.test.ts', 'so does an answer that is larger than a message may be'],
    ['MCP servers', ...constant('MAX_SERVERS', count(MAX_SERVERS)), 'The start is refused.', 'control/mcp-client/config.test.ts', 'MAX_SERVERS'],
    ['Bytes of `--mcp-config`', ...constant('MAX_CONFIG_BYTES', bytes(MAX_CONFIG_BYTES)), 'The start is refused.', 'control/mcp-client/config.test.ts', 'MAX_CONFIG_BYTES'],
    ['Skills that are listed', ...constant('MAX_LISTED_SKILLS', count(MAX_LISTED_SKILLS)), 'The first ones are listed; all run.', 'control/executors/skills.test.ts', 'MAX_LISTED_SKILLS'],
    ['Bytes of each stream of a runtime task in its result', ...constant('MAX_RESULT_STREAM_BYTES', bytes(MAX_RESULT_STREAM_BYTES)), 'The rest is in the log.', 'control/executors/runtime/outcome.test.ts', 'MAX_RESULT_STREAM_BYTES'],
    ['Time for which the runtime service may be away', ...control('runtimeAwayTimeout'), 'Its attempts fail.', 'contract/runtime-tasks-restart.long.test.ts', 'a runtime service that stays away fails the attempt'],
    ['Silence of the runtime service', ...constant('SILENT_AFTER_MS', duration(SILENT_AFTER_MS)), 'It counts as away.', 'contract/runtime-silent.long.test.ts', 'its attempts say so'],
    ['Time after a submission in which the runtime service accepts it', ...constant('SUBMISSION_LEASE_MS', duration(SUBMISSION_LEASE_MS)), 'It is refused, and sent again.', 'control/executors/runtime/service.test.ts', 'SUBMISSION_LEASE_MS'],
  ]),
  'The runtime service': limits([
    ['Bytes of a body', ...runtime('maxBodyBytes'), '413', 'contract/runtime-errors.test.ts', 'above --max-body-bytes, not at it'],
    ['Tasks that run', ...runtime('maxRunningTasks'), 'They wait.', 'runtime/ledger/ledger.test.ts', '--max-running-tasks'],
    ['Tasks that wait', ...runtime('maxQueuedTasks'), '429', 'contract/runtime-dry-run.test.ts', 'a queue that is full'],
    ['Barred ids', ...constant('MAX_BARRED_IDS', count(MAX_BARRED_IDS)), 'Further kills bar nothing, and say so.', 'runtime/tasks/late-submissions.test.ts', 'MAX_BARRED_IDS'],
    ['Time for which an id is barred', ...constant('BAR_MS', duration(BAR_MS)), 'It may be submitted.', 'runtime/tasks/late-submissions.test.ts', 'BAR_MS'],
    ['Tasks that may overtake one that waits', ...constant('MAX_OVERTAKEN', count(MAX_OVERTAKEN)), 'Its turn comes.', 'runtime/tasks/waiting-queue.test.ts', 'MAX_OVERTAKEN'],
    ['Quotas of tenants', ...constant('MAX_QUOTAS', count(MAX_QUOTAS)), 'The start is refused.', 'runtime/ledger/quotas.test.ts', 'MAX_QUOTAS'],
    ['Characters of a task id', ...constant('MAX_TASK_ID_CHARACTERS', count(MAX_TASK_ID_CHARACTERS)), '400', 'shared/request/validate.test.ts', 'MAX_TASK_ID_CHARACTERS'],
    ['`wall_time_ms`', ...constant('MAX_WALL_TIME_MS', duration(MAX_WALL_TIME_MS)), '400', 'shared/request/validate.test.ts', 'MAX_WALL_TIME_MS'],
    ['Bytes of an argument or a variable', ...constant('MAX_STRING_BYTES', count(MAX_STRING_BYTES)), '400', 'shared/request/validate.test.ts', 'MAX_STRING_BYTES'],
    ['Bytes of all arguments and variables', ...constant('MAX_STRINGS_BYTES', count(MAX_STRINGS_BYTES)), '400', 'shared/request/validate.test.ts', 'MAX_STRINGS_BYTES'],
    ['Entries of `metadata` and `labels`', ...constant('MAX_MAP_ENTRIES', count(MAX_MAP_ENTRIES)), '400', 'shared/request/validate.test.ts', 'MAX_MAP_ENTRIES'],
    ['Characters of one of their values', ...constant('MAX_MAP_VALUE_CHARACTERS', count(MAX_MAP_VALUE_CHARACTERS)), '400', 'shared/request/validate.test.ts', 'MAX_MAP_VALUE_CHARACTERS'],
    ['`stdout_max_bytes`, `stderr_max_bytes`', ...constant('MAX_INLINE_BYTES', bytes(MAX_INLINE_BYTES)), '400', 'shared/request/validate.test.ts', 'MAX_INLINE_BYTES'],
    ['Bytes of each output of a task', ...runtime('maxOutputBytes'), 'The task is ended.', 'contract/runtime-output.test.ts', 'past --max-output-bytes a task is ended'],
    ['Processes of a sandbox without `pids_max`', ...runtime('sandboxPidsMax'), 'A fork fails.', 'contract/runtime-machine-full.test.ts', 'has the processes of --sandbox-pids-max and no more'],
    ['Bytes that a task without `disk_bytes` may allocate in its workspace', '`--task-disk-bytes`', 'none', 'The task is ended.', 'contract/runtime-disk-bytes.test.ts', '--task-disk-bytes limits tasks that ask for nothing'],
    ['Processes of the user that are kept for the service (`ulimit -u`)', ...constant('MAX_RESERVED_PROCESSES', count(MAX_RESERVED_PROCESSES)), 'A fork fails.', 'shared/process/process-reserve.test.ts', 'MAX_RESERVED_PROCESSES'],
    ['Time for which a launch is retried', ...runtime('launchRetryMs'), 'The task fails.', 'contract/runtime-machine-full.test.ts', 'is not tried again for longer than --launch-retry-ms'],
    ['Directories that are made ahead for tasks', ...constant('MAX_STOCKED', count(MAX_STOCKED)), 'More are made when a task needs one.', 'runtime/files/spare-dirs.test.ts', 'a few are made ahead, and no more'],
    ['Inputs of a task', ...constant('MAX_INPUTS', count(MAX_INPUTS)), '400', 'contract/runtime-inputs.long.test.ts', 'MAX_INPUTS'],
    ['Characters of the inputs of a task in a list, as JSON', ...constant('MAX_LISTED_INPUTS_CHARACTERS', count(MAX_LISTED_INPUTS_CHARACTERS)), 'The list leaves them out.', 'contract/runtime-inputs.long.test.ts', 'only the status of the task lists them'],
    ['Files that a task with outputs keeps', ...runtime('maxKeptFiles'), 'The task fails.', 'contract/runtime-outputs.test.ts', '--max-kept-files'],
    ['Bytes that a task with outputs keeps', ...runtime('maxKeptBytes'), 'The task fails.', 'contract/runtime-outputs.test.ts', '--max-kept-bytes'],
    ['Files and directories of all inputs', ...runtime('maxInputFiles'), 'The task fails.', 'contract/runtime-inputs.long.test.ts', '--max-input-files'],
    ['Bytes of all inputs', ...runtime('maxInputBytes'), 'The task fails.', 'contract/runtime-inputs.long.test.ts', '--max-input-bytes'],
    ['Bytes of all staged files of other runtime services', ...runtime('maxStagedBytes'), '429', 'contract/runtime-bundles.test.ts', 'past --max-staged-bytes a bundle is refused'],
    ['Time that a staged file is kept after its last use', ...runtime('stagedRetentionSecs'), 'It is removed.', 'contract/runtime-bundles.test.ts', 'unused ones go in time'],
    ['Connections of all tasks with rules', ...runtime('maxEgressConnections'), 'They are refused.', 'runtime/egress/limits.long.test.ts', 'a task that takes all it gets leaves the others their own places'],
    ['Part of them that is divided among `--max-running-tasks`', ...constant('DIVIDED_PART', '1/2'), 'The rest is for all.', 'runtime/egress/places.test.ts', 'DIVIDED_PART'],
    ['Connections of a task without a place', ...constant('SPARE_SESSIONS', count(SPARE_SESSIONS)), 'They are closed.', 'runtime/egress/limits.long.test.ts', 'SPARE_SESSIONS'],
    ['Open connections that are kept for a restart', ...constant('MAX_NOTED_CONNECTIONS', count(MAX_NOTED_CONNECTIONS)), 'They are counted.', 'runtime/egress/use-file.test.ts', 'MAX_NOTED_CONNECTIONS'],
    ['Certificates of hosts whose TLS the proxy ends', ...constant('MAX_KEPT_CERTIFICATES', count(MAX_KEPT_CERTIFICATES)), 'The oldest is made anew.', 'runtime/egress/authority.test.ts', 'MAX_KEPT_CERTIFICATES'],
    ['Characters of a path under a rule with paths', ...constant('MAX_RULED_PATH_CHARACTERS', count(MAX_RULED_PATH_CHARACTERS)), 'It gets 403.', 'shared/request/request-rule.test.ts', 'MAX_RULED_PATH_CHARACTERS'],
    ['Events of a task about allowed connections, and about refused ones', ...constant('MAX_NETWORK_EVENTS', count(MAX_NETWORK_EVENTS)), 'They are counted.', 'contract/runtime-egress.test.ts', 'MAX_NETWORK_EVENTS'],
    ['Entries of a directory in an answer', ...constant('MAX_LISTED', count(MAX_LISTED)), '`truncated`', 'contract/runtime-task-files.test.ts', 'with very many entries is cut off'],
    ['Time for a look at a `rootfs`', ...constant('LOOK_TIMEOUT_MS', duration(LOOK_TIMEOUT_MS)), '400', 'contract/runtime-hung-rootfs.test.ts', 'LOOK_TIMEOUT_MS'],
    ['Looks that hang at the same time', ...constant('MAX_LOOKS', count(MAX_LOOKS)), '400', 'runtime/host/path-looks.test.ts', 'MAX_LOOKS'],
    ['Paths that are hidden from sandboxes', ...constant('MAX_SANDBOX_PATHS', count(MAX_SANDBOX_PATHS)), 'The start is refused.', 'runtime/host/sandbox-paths.test.ts', 'MAX_SANDBOX_PATHS'],
    ['Age of an ended task', ...runtime('resultRetentionSecs'), 'It is removed.', 'contract/runtime-files.test.ts', 'an ended task and its files go after that time'],
  ]),
}
