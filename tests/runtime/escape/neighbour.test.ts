/**
 * Goal: attempts on another sandbox are blocked only by its user. Method: the same attempts on one with the same user, and
 * on one with another. The filter, which lets nobody trace, is off.
 */
import { expect, test } from 'bun:test'
import { defaultsOf, type EscapeOptions, worstOnNeighbour } from '../../../runtime/escape/escape.ts'
import { listed } from '../../support/escape.ts'
import { shippedLauncher } from '../../support/launchers.ts'
import { MASKS, missingSandbox, SANDBOX_UID, USUAL } from '../../support/sandboxes.ts'

const isRoot = process.getuid?.() === 0
const why = isRoot ? (missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`) : ' (skipped: needs root)'

async function verdictsWith(neighbourUid: number | undefined) {
  const options: EscapeOptions = defaultsOf({
    launcher: { command: shippedLauncher.command as [string], wrapEnvironment: (env) => env, isNative: true },
    sandbox: { features: USUAL.filter((feature) => feature !== 'seccomp'), uid: SANDBOX_UID, masks: MASKS },
    ...(neighbourUid !== undefined && { neighbourUid }),
    groupOf: () => undefined,
    hiddenDirectories: [],
    memoryFilesBytes: 1,
  })
  const known = listed().map(({ name, what }) => ({ name, verdict: 'not_applicable' as const, detail: what }))
  const made = await worstOnNeighbour(known, options, listed())
  return made.flatMap(({ name, verdict }) => (verdict === 'not_applicable' ? [] : [`${name}: ${verdict}`])).sort()
}

test.skipIf(!isRoot || missingSandbox !== undefined)(
  `a sandbox with the same user is open to another${why}`,
  async () => {
    const attempts = ['kill_neighbour', 'neighbour_files', 'trace_neighbour']
    expect(await verdictsWith(SANDBOX_UID)).toEqual(attempts.map((name) => `${name}: open`))
    expect(await verdictsWith(SANDBOX_UID - 1)).toEqual(attempts.map((name) => `${name}: blocked`))
    expect(await verdictsWith(undefined)).toEqual([])
  },
)
