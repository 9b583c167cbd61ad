/** What `early.ts` does for the script of the page: it asks for what the page reads first, and sees when its frame is painted. */

/** The address of a path of the service, from the address of the page: a proxy may serve both below a path. */
export const addressOf = (path: string): string => `.${path}`

/** Graphs of one page of the list. */
const PAGE_SIZE = 100

/** The first page of the list of graphs. */
export const LIST_PATH = `/graphs?limit=${PAGE_SIZE}`

/** Who is signed in. */
export const SESSION_PATH = '/session'

export const graphPath = (graphId: string): string => `/graphs/${encodeURIComponent(graphId)}`

/** The newest graphs of a name, of a tenant if one is given. */
export const runsPath = ({ name, tenant }: { name: string; tenant?: string | undefined }, most: number): string =>
  `/graphs?${new URLSearchParams({ name, ...(tenant !== undefined && { tenant }), limit: String(most) })}`

/** Milliseconds after which the page no longer waits for its first frame. */
const PAINT_WITHIN_MS = 200

interface EarlyWork {
  readonly answers: Map<string, Promise<Response>>
  readonly framePainted: Promise<void>
}

/** Both scripts of the page see it. */
const shared = globalThis as { taskmillEarly?: EarlyWork }

/** Shows the fault of a script that does not arrive or fails before the page has started. */
export function watchStart(): void {
  const onFault = (event: Event) => {
    if (event.target instanceof Element && event.target.localName !== 'script') return
    document.querySelector('.start-fault')?.classList.add('now')
  }
  addEventListener('error', onFault, true) // a script that did not arrive: its event does not bubble
  addEventListener('unhandledrejection', onFault)
}

export function beginEarly(paths: readonly string[]): void {
  const answers = paths.map((path): [string, Promise<Response>] => {
    const answer = fetch(addressOf(path))
    answer.catch(() => {}) // the caller of takeEarly handles the error
    return [path, answer]
  })
  shared.taskmillEarly = { answers: new Map(answers), framePainted: firstFrame() }
}

/** A page that is hidden has no frames. */
const firstFrame = (): Promise<void> =>
  new Promise((resolve) => {
    if (document.visibilityState === 'hidden') resolve()
    setTimeout(resolve, PAINT_WITHIN_MS)
    const onFrame = () => {
      if (document.querySelector('main') === null) requestAnimationFrame(onFrame)
      else setTimeout(resolve) // the frame is the work of this turn
    }
    requestAnimationFrame(onFrame)
  })

/** Takes the early answer for `path`: a second call finds none. Undefined if there is none. */
export function takeEarly(path: string): Promise<Response> | undefined {
  const answer = shared.taskmillEarly?.answers.get(path)
  shared.taskmillEarly?.answers.delete(path)
  return answer
}

export const framePainted = (): Promise<void> => shared.taskmillEarly?.framePainted ?? Promise.resolve()

/** Nobody gets the answers that are left: they grow old. */
export function endEarly(): void {
  delete shared.taskmillEarly
}
