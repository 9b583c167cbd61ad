/** The temporary directory of one run, and what lies in it. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Workspace extends Disposable {
  /** Where the tasks read and write. */
  readonly work: string
  /** Where control keeps its state. */
  readonly data: string
  /** The graph as it is submitted. */
  readonly graph: string
}

export function makeWorkspace(): Workspace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'taskmill-demo-')))
  const work = join(root, 'work')
  mkdirSync(work)
  return {
    work,
    data: join(root, 'data'),
    graph: join(root, 'graph.json'),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}
