/** Rules with a fault each, and the tests that have to notice it. `scripts/mutate.ts` tries them. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = dirname(import.meta.dir)

export interface Mutant {
  readonly rule: string
  readonly file: string
  /** Stands once in the file. */
  readonly text: string
  readonly instead: string
  /** Files or folders below `tests/`. */
  readonly tests: readonly string[]
}

export const MUTANTS: readonly Mutant[] = [
  {
    rule: 'a backoff has an upper bound',
    file: 'control/rules/backoff.ts',
    text: '** (n - 2), maxMs)',
    instead: '** (n - 2), Number.MAX_VALUE)',
    tests: ['control/rules/backoff.test.ts'],
  },
  {
    rule: 'the second attempt waits for the first length of the backoff',
    file: 'control/rules/backoff.ts',
    text: '** (n - 2), maxMs)',
    instead: '** (n - 1), maxMs)',
    tests: ['contract/retries.test.ts'],
  },
  {
    rule: 'a task with `retry: n` has n + 1 attempts',
    file: 'control/scheduler/outcomes.ts',
    text: 'task.options.retry + 1 - task.usedAttempts',
    instead: 'task.options.retry - task.usedAttempts',
    tests: ['contract/retries.test.ts'],
  },
  {
    rule: 'a failure that `retry_on` leaves out is final',
    file: 'control/rules/retry-rule.ts',
    text: 'options.retry_on?.includes(code) ?? true',
    instead: 'true',
    tests: ['contract/retries.test.ts'],
  },
  {
    rule: 'a task cannot depend on itself',
    file: 'control/rules/validate.ts',
    text: 'if (position !== undefined && position !== of) return position',
    instead: 'if (position !== undefined) return position',
    tests: ['control/rules/validate.test.ts'],
  },
  {
    rule: 'ids are unique in a graph',
    file: 'control/rules/validate.ts',
    text: 'if (!repeated.has(id)) report(',
    instead: 'if (repeated.has(id)) report(',
    tests: ['control/rules/validate.test.ts'],
  },
  {
    rule: 'tasks that depend on a failed one are skipped',
    file: 'control/scheduler/outcomes.ts',
    text: '    else this.endedTasks.add(task, report)\n',
    instead: '',
    tests: ['contract/scheduling.test.ts'],
  },
  {
    rule: 'a task waits for all its dependencies',
    file: 'control/scheduler/outcomes.ts',
    text: 'if (--graph.missing[dependent.position]! > 0) continue',
    instead: 'if (--graph.missing[dependent.position]! > 1) continue',
    tests: ['contract/scheduling.test.ts'],
  },
  {
    rule: 'no more attempts run than there are slots',
    file: 'control/scheduler/slots.ts',
    text: 'return this.#taken < this.#count && this.#resuming.size === 0',
    instead: 'return this.#taken <= this.#count && this.#resuming.size === 0',
    tests: ['contract/scheduling.test.ts'],
  },
  {
    rule: '`run_if: failed` runs after a failure',
    file: 'control/rules/conditions.ts',
    text: "if (runIf === 'always' || has('bad')) return 'run'",
    instead: "if (runIf === 'always') return 'run'",
    tests: ['contract/graph-rules.test.ts'],
  },
  {
    rule: 'a key with another body is refused',
    file: 'control/log/idempotency.ts',
    text: 'if (known.hash !== sent.hash) throw',
    instead: 'if (known.hash === sent.key) throw',
    tests: ['contract/idempotency.test.ts'],
  },
  {
    rule: 'a frame of the journal counts only with its checksum',
    file: 'control/log/journal-format.ts',
    text: '  if (checksumOf(payload) !== header[1]) return undefined\n',
    instead: '',
    tests: ['contract/durability.test.ts'],
  },
  {
    rule: 'damage before what is on disk is no torn end',
    file: 'control/log/journal-format.ts',
    text: 'return syncedBehind(bytes, at, synced) > at ?',
    instead: 'return syncedBehind(bytes, at, synced) > bytes.length ?',
    tests: ['contract/durability.test.ts'],
  },
  {
    rule: 'who waits for a failed sync is told',
    file: 'control/log/group-commit.ts',
    text: 'for (const { reject } of [...served, ...this.#waiting, ...others]) reject(error)',
    instead: 'for (const { resolve } of [...served, ...this.#waiting, ...others]) resolve()',
    tests: ['control/log/journal.test.ts', 'control/log/persistence.test.ts'],
  },
  {
    rule: 'the keeper keeps graphs for the whole retention',
    file: 'control/task/retention.ts',
    text: 'if (graph.endedAt! + retentionMs > now) return',
    instead: 'if (graph.endedAt! > now) return',
    tests: ['control/task/retention.test.ts', 'contract/retention.test.ts'],
  },
  {
    rule: 'a strange host is refused',
    file: 'shared/http/guard.ts',
    text: "if (isAddress(name) || !name.includes('.')) return true",
    instead: 'if (name.length > 0) return true',
    tests: ['contract/guard.test.ts'],
  },
  {
    rule: 'a route asks for its right',
    file: 'shared/http/service.ts',
    text: 'if (caller !== undefined) rights.ensure(',
    instead: 'if (caller === null) rights.ensure(',
    tests: ['contract/caller-tokens.test.ts'],
  },
  {
    rule: 'a route without a right is for the token of the service',
    file: 'shared/http/route-rights.ts',
    text: "?.right ?? 'service')",
    instead: "?.right ?? 'any')",
    tests: ['control/http/route-rights.test.ts'],
  },
  {
    rule: 'who submits does not approve',
    file: 'control/operations/answer-approval.ts',
    text: 'if (task.graph.submittedBy === name && approve_own !== true)',
    instead: 'if (task.graph.submittedBy === name && approve_own === false)',
    tests: ['contract/caller-tokens.test.ts'],
  },
  {
    rule: 'a revoked token ends what it reads',
    file: 'shared/http/known-tokens.ts',
    text: 'if (this.#known.get(key) !== known) known.end()',
    instead: 'if (this.#known.get(key) === known) known.end()',
    tests: ['shared/http/known-tokens.test.ts'],
  },
  {
    rule: 'a layer without a fitting rule refuses a name',
    file: 'shared/egress/rules.ts',
    text: "if (allow !== undefined && rule === undefined) return refused({ kind: 'unlisted' })",
    instead: "if (allow === undefined && rule !== undefined) return refused({ kind: 'unlisted' })",
    tests: ['shared/egress/rules.test.ts'],
  },
  {
    rule: 'a limit is above 0',
    file: 'shared/request/limits.ts',
    text: 'if (value <= 0) throw',
    instead: 'if (value < 0) throw',
    tests: ['contract/runtime-submit.test.ts'],
  },
  {
    rule: 'a task may reserve all that is left',
    file: 'runtime/ledger/amounts.ts',
    text: "return pids > 0 && pids > limits.pids - reserved.pids ? 'pids' : null",
    instead: "return pids > 0 && pids >= limits.pids - reserved.pids ? 'pids' : null",
    tests: ['runtime/ledger'],
  },
  {
    rule: 'an ended task gives its reservation back',
    file: 'runtime/ledger/ledger.ts',
    text: '    this.#reserved = minus(this.#reserved, amounts)\n',
    instead: '',
    tests: ['contract/runtime-resources.test.ts'],
  },
  {
    rule: 'a strict task is refused what the host lacks',
    file: 'runtime/plan/shortages.ts',
    text: 'if (!this.#isStrict) return',
    instead: 'if (this.#isStrict) return',
    tests: ['contract/runtime-plan.test.ts'],
  },
  {
    rule: 'a task with an owner is killed by that owner',
    file: 'runtime/tasks/owner.ts',
    text: 'if (wanted === null || wanted === owner) return',
    instead: 'if (wanted === null || owner !== null) return',
    tests: ['contract/runtime-kill.test.ts'],
  },
  {
    rule: 'a token with cancel_own kills only what it submitted',
    file: 'runtime/tasks/owner.ts',
    text: '&& wanted !== by.grant.name',
    instead: '&& wanted === null',
    tests: ['contract/runtime-callers.test.ts'],
  },
  {
    rule: 'a killed task is cancelled, whatever its exit code',
    file: 'runtime/launch/classification.ts',
    text: "  if (reason === 'kill') return { code: 'cancelled', message: 'task was cancelled' }\n",
    instead: '',
    tests: ['contract/runtime-kill.test.ts'],
  },
  {
    rule: 'a task that prints too much has failed',
    file: 'runtime/launch/classification.ts',
    text: 'Math.max(stdout_bytes, stderr_bytes) > max_output_bytes',
    instead: 'Math.max(stdout_bytes, stderr_bytes) > 2 * max_output_bytes',
    tests: ['runtime/launch/classification.test.ts'],
  },
  {
    rule: 'a sandbox sees the host read-only',
    file: 'runtime/launch/sandbox-view.ts',
    text: "    ['freeze', '/'],\n",
    instead: '',
    tests: ['runtime/launch/sandbox-view.test.ts'],
  },
  {
    rule: 'a sandbox does not see hidden paths',
    file: 'runtime/launch/sandbox-view.ts',
    text: "if (kind === 'mask') return !isCovered",
    instead: "if (kind === 'mask') return isCovered",
    tests: ['runtime/sandbox/view.test.ts'],
  },
  {
    rule: 'inline output ends at its limit',
    file: 'shared/streams/bounded-output.ts',
    text: 'this.#isTruncated ||= part.length < chunk.length',
    instead: 'this.#isTruncated ||= part.length > chunk.length',
    tests: ['shared/streams/bounded-output.test.ts'],
  },
  {
    rule: 'a tar of files that changed after the walk ends with a fault',
    file: 'runtime/files/bundle.ts',
    text: '!== part.outline.marks[steps++]',
    instead: '=== Number(!steps++)',
    tests: ['runtime/files/bundle.test.ts'],
  },
  {
    rule: 'a tar of a file that changes while it is read ends with a fault',
    file: 'runtime/files/bundle.ts',
    text: '!== step.version',
    instead: '=== versionIn(step)',
    tests: ['runtime/files/bundle.test.ts'],
  },
  {
    rule: 'the tar of a directory is continued, not begun anew',
    file: 'shared/streams/resumed-file.ts',
    text: 'part.etag !== etag || part.offset !== offset',
    instead: 'part.isTar || part.etag !== etag || part.offset !== offset',
    tests: ['shared/streams/saved-file.test.ts'],
  },
  {
    rule: '`wait` that runs out of time exits with 3',
    file: 'adapter/commands/wait.ts',
    text: '(all_terminal ? EXIT.success : EXIT.waitTimedOut)',
    instead: '(all_terminal ? EXIT.success : EXIT.error)',
    tests: ['contract/client.test.ts'],
  },
  {
    rule: '`wait --fail` exits with 1 after a failure',
    file: 'adapter/commands/wait.ts',
    text: 'values.fail && hasFailed ? EXIT.error',
    instead: 'values.fail && !hasFailed ? EXIT.error',
    tests: ['contract/client-graphs.test.ts'],
  },
  {
    rule: 'a list of children is written behind the ends that led to it',
    file: 'control/log/persistence.ts',
    text: "this.flushOrThrow()\n    try {\n      await this.#options.journal.append('x', payload)",
    instead: "try {\n      await this.#options.journal.append('x', payload)",
    tests: ['control/log/cut-journal.test.ts'],
  },
  {
    rule: 'a wait with a time takes signals only if it says so',
    file: 'control/task/wait.ts',
    text: 'signal ?? (until == null && http == null)',
    instead: 'signal ?? true',
    tests: ['contract/waits.test.ts'],
  },
  {
    rule: 'a wait ends by the first of its times',
    file: 'control/task/asked-end.ts',
    text: 'due <= expiry',
    instead: 'due >= expiry',
    tests: ['control/scheduler/asked-tasks.test.ts'],
  },
  {
    rule: 'an attempt goes elsewhere only once no earlier submission can be accepted',
    file: 'control/executors/runtime/remote-attempt.ts',
    text: 'earlierMs + SUBMISSION_LEASE_MS - performance.now()',
    instead: '0',
    tests: ['contract/runtime-pool.test.ts'],
  },
  {
    rule: 'what may be the beginning of a secret is held back',
    file: 'shared/streams/masker.ts',
    text: 'this.#held.length - this.#texts.depth(node)',
    instead: 'this.#held.length',
    tests: ['shared/streams/masker.test.ts'],
  },
  {
    rule: 'a secret that ends a longer beginning is masked',
    file: 'shared/streams/masker.ts',
    text: 'this.#longest[child] ||= this.#longest[fail]!',
    instead: 'this.#longest[child] ||= 0',
    tests: ['shared/streams/masker.test.ts'],
  },
  {
    rule: 'a cached outcome with a printed secret answers no task that masks it',
    file: 'shared/request/secrets.ts',
    text: "isMasked(use) ? '' : ' as it is'",
    instead: "isMasked(use) ? '' : ''",
    tests: ['contract/masked-output.test.ts'],
  },
  {
    rule: 'a secret of some tenants goes to no task without one',
    file: 'shared/files/secret-rules.ts',
    text: '(tenant !== undefined && tenants.includes(tenant))',
    instead: '(tenant === undefined || tenants.includes(tenant))',
    tests: ['shared/files/secret-rules.test.ts'],
  },
  {
    rule: 'a change of the rules of secrets right after another one is noticed',
    file: 'shared/files/secret-rules.ts',
    text: 'const SETTLED_MS = 1_000',
    instead: 'const SETTLED_MS = 0',
    tests: ['shared/files/secret-rules.test.ts'],
  },
  {
    rule: 'a tool of another set is not run',
    file: 'control/mcp-server/handler.ts',
    text: 'if (tool === undefined || !toolsets.includes(set!)) {',
    instead: 'if (tool === undefined) {',
    tests: ['contract/mcp-endpoint.test.ts'],
  },
]

/** Why a fault cannot be tried; empty if it can. */
export function faultOf({ rule, file, text, tests }: Mutant): string[] {
  const count = existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8').split(text).length - 1 : 0
  const missing = tests.filter((path) => !existsSync(join(ROOT, 'tests', path)))
  return [
    ...(count === 1 ? [] : [`${rule}: its text stands ${count} times in ${file}`]),
    ...missing.map((path) => `${rule}: there is no tests/${path}`),
  ]
}
