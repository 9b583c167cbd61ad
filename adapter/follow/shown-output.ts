/**
 * Shows the output of tasks on standard error: each line after the id of its task, or, for a CI server, the lines of each
 * task that has ended as a group.
 */
import { cut } from '../../shared/text/live-view/palette.ts'
import type { TaskProgress } from '../../shared/text/live-view/progress.ts'
import type { LiveView } from '../../shared/text/live-view/screen.ts'
import { visibleLine } from '../../shared/text/visible-text.ts'
import type { OutputSink } from './graph-output.ts'
import { OutputLines } from './output-lines.ts'
import type { StandardError } from './standard-error.ts'
import type { OutputStreamName } from './task-output.ts'

/** A longer id is cut. */
const MAX_ID_COLUMNS = 40

export interface OutputScreen extends Pick<StandardError, 'paint' | 'drained'> {
  readonly view: Pick<LiveView, 'above'>
}

/** Lines of several tasks, mixed as they come. */
export function prefixedOutput({ view, paint, drained }: OutputScreen, taskId: string): OutputSink {
  const lines = { stdout: new OutputLines(), stderr: new OutputLines() }
  const name = cut(visibleLine(taskId), MAX_ID_COLUMNS)
  const prefixes = { stdout: paint('cyan', `${name} |`), stderr: paint('yellow', `${name} |`) }
  const write = async (stream: OutputStreamName, found: readonly string[]) => {
    if (found.length === 0) return
    view.above(found.map((line) => `${prefixes[stream]} ${line}\n`).join(''))
    await drained()
  }
  return {
    show: (chunk, stream) => write(stream, lines[stream].push(chunk)),
    async end(_, fault) {
      await write('stdout', lines.stdout.end())
      await write('stderr', lines.stderr.end())
      if (fault !== undefined) await write('stderr', [`taskmill: cannot read the output: ${visibleLine(fault)}`])
    },
  }
}

/** The same lines between two that make them a group. Only one task at a time may have one. */
export class OutputGroups {
  readonly #screen: OutputScreen
  #isOpen = false

  constructor(screen: OutputScreen) {
    this.#screen = screen
  }

  /** What is written now becomes a part of the group. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  begin({ id, phase }: Pick<TaskProgress, 'id' | 'phase'>): OutputSink {
    const { view } = this.#screen
    const above = (text: string) => {
      const head = this.#isOpen ? '' : `::group::${visibleLine(`${id} (${phase})`).replaceAll('%', '%25')}\n`
      this.#isOpen = true
      view.above(`${head}${text}`)
    }
    const { show, end } = prefixedOutput({ ...this.#screen, view: { above } }, id)
    return {
      show,
      end: async (output, fault) => {
        await end(output, fault)
        if (this.#isOpen) view.above('::endgroup::\n')
        this.#isOpen = false
      },
    }
  }
}
