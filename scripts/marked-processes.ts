/** Processes that a run of tests has started. `testEnvironment` of `tests/support/service.ts` hands its mark on. */
import { readFileSync } from 'node:fs'
import { allPids } from '../shared/process/processes.ts'

/** Pid and command line of each process with the mark `run`. None on macOS, whose processes do not show their environment. */
export function* markedProcesses(run: string): Generator<readonly [pid: number, command: string]> {
  for (const pid of allPids()) {
    if (pid === process.pid) continue
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`TASKMILL_TEST_RUN=${run}`)) continue
      yield [pid, readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')]
    } catch {
      // gone, or not ours to look at
    }
  }
}
