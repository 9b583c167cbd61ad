/** Threads of `serve` for calls that may never return: workers that run the same program (`main.ts`). */
import type { LookThread } from './path-looks.ts'

/** The work of a thread for each path. */
export type ThreadRole = 'look' | 'sweep'

/** Starts a thread that answers each path. It does not keep the process alive. */
export const startThread = <Answer>(role: ThreadRole): LookThread<Answer> =>
  new Worker(Bun.main, { ref: false, smol: true, argv: [role] })

/** The role of this thread, which `startThread` started. */
export const ownRole = (): ThreadRole => (process.argv.at(-1) === ('sweep' satisfies ThreadRole) ? 'sweep' : 'look')
