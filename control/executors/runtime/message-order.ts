/**
 * Which commit each message to a runtime service must follow. docs/design.md shows this as a table.
 *
 * Other replicas and the next start of this service know only what is kept. A message that comes before its commit may be
 * one that they would never send: of two that follow an attempt, one removes or kills it.
 *
 * `RuntimeService` sends no `kill` and `RemoteRemovals` notes no `remove` before its commit. `RuntimeService.submit` takes
 * the commit as a parameter, because the attempt counts as begun from then on.
 */
import type { Purpose } from '../../log/keeper.ts'

export interface MessageOrder {
  /** As of `Keeper.kept`. Undefined: the message follows no commit. */
  readonly after: Purpose | undefined
  /** What that commit holds. */
  readonly commit: string
  /** What the message would do before it, or why it needs none. */
  readonly why: string
}

const READ = { after: undefined, commit: '', why: 'It changes nothing.' } as const

/** By the methods of `RuntimeService` that send them. */
export const MESSAGE_ORDER = {
  submit: {
    after: 'act',
    commit:
      'The place of the attempt: its id, its runtime service, the hashes of its inputs. Again before each request.',
    why: 'Nobody would find the attempt again, and it would run under another id.',
  },
  kill: {
    after: 'kill',
    commit:
      'The cancel, or the end of the task with the attempt that is still to be ended. It also bars the id for a minute.',
    why: 'Whoever takes the task over would follow it and find it killed, although nobody is told of a cancel.',
  },
  remove: {
    after: 'promise',
    commit: 'The end of the attempt, and the deletion, replacement or retirement of its task.',
    why: 'Whoever takes the task over would not find the attempt, and it would run again. The note in runtime-drops.jsonl, which a later start obeys, follows the same commit.',
  },
  stage: { after: undefined, commit: '', why: 'Content under its hash, to which only a later submission refers.' },
  ping: READ,
  dryRun: READ,
  has: READ,
  look: READ,
  queued: READ,
  resources: READ,
  waitFor: READ,
  waitForStart: READ,
  tellsStart: READ,
  openLog: READ,
  network: READ,
  openFile: READ,
  openTar: READ,
  bundleSize: READ,
  bundleDigest: READ,
  openBundle: READ,
  hasStaged: READ,
} as const satisfies Readonly<Record<string, MessageOrder>>
