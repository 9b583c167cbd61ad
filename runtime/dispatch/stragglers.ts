/**
 * Ends what a task left behind whose launcher is dead. A living launcher does that itself, and better: it is the parent
 * of every orphan; without it the fork server is, if it is still there that forked the launcher. Two traces remain besides: the
 * task's cgroup, and the mark in the environment of its processes.
 */
import { carriesMark, lookForMarks, type Marked } from '../../shared/processes.ts'
import { signalIf } from '../launcher/pidfd.ts'
import { TASK_MARK } from '../launcher/task-mark.ts'

/** Milliseconds between two looks, which all share who look: while killed processes end, and while others begin. */
const LOOK_MS = 5
const STARTING_LOOK_MS = 25

/** Milliseconds after which what was killed and is still there cannot be killed: it hangs in the kernel. */
const HOPELESS_MS = 5_000

/** Milliseconds that the start of a program may take: until then one without an environment may be one of the task's. */
const STARTING_MS = 1_000

/** The mark of a task: tasks of other services on this machine may have the same id. */
export const markOf = (serviceId: string, taskId: string): string => `${serviceId}:${taskId}`

/** Kills the processes that carry `mark` until there are none; false when some would not go. */
export async function endMarked(mark: string): Promise<boolean> {
  const start = performance.now()
  for (;;) {
    const { byValue, bare } = await look()
    const marked = byValue.get(mark) ?? []
    const passedMs = performance.now() - start
    if (marked.length === 0 && (bare.length === 0 || passedMs > STARTING_MS)) return true
    if (marked.length > 0 && passedMs > HOPELESS_MS) return false
    for (const pid of marked) killNow(pid, mark)
    if (marked.length === 0) await Bun.sleep(STARTING_LOOK_MS)
  }
}

let coming: Promise<Marked> | undefined
let lastLookAt = Number.NEGATIVE_INFINITY

/** The next look: after many tasks were lost at once, one for each of them would hold up everything else. */
function look(): Promise<Marked> {
  coming ??= Bun.sleep(Math.max(0, lastLookAt + LOOK_MS - performance.now())).then(() => {
    coming = undefined
    const found = lookForMarks(TASK_MARK)
    lastLookAt = performance.now()
    return found
  })
  return coming
}

/** Looked at once more: it took a while to find them all, and a launcher may have another task by now. */
function killNow(pid: number, mark: string): void {
  try {
    signalIf(() => carriesMark(pid, `${TASK_MARK}=${mark}\0`), pid, { name: 'SIGKILL', value: 0 })
  } catch {
    // ended just now, or another user's
  }
}
