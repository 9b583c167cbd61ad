/** The temporary directory of one run and its contents. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Workspace extends Disposable {
  /** Where the tasks of control read and write. */
  readonly work: string
  /** Where control keeps its state. */
  readonly controlData: string
  /** Where the runtime keeps its own, and the workspaces of its tasks. */
  readonly runtimeData: string
  /** Where the graph `name` lies as it is submitted. */
  graph(name: string): string
}

export function makeWorkspace(): Workspace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'taskmill-demo-')))
  chmodSync(root, 0o711) // a task that the runtime runs as another user must get through to its own directory
  const work = join(root, 'work')
  mkdirSync(work)
  return {
    work,
    controlData: join(root, 'control'),
    runtimeData: join(root, 'runtime'),
    graph: (name) => join(root, name),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}
