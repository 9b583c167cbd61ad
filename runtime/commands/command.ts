/** A client subcommand. It returns its output and exit code, or throws. Only `command-line.ts` prints and exits. */

import type { ServiceClient } from '../../shared/http/client.ts'
import type { Settings, SettingValues } from '../../shared/settings/flags.ts'

export interface Answer {
  /** The response of the service. */
  readonly body: object
  readonly exitCode: 0 | 1
}

export interface Command<S extends Settings = Settings> {
  readonly summary: string
  /** Arguments after the subcommand, for help texts. */
  readonly usage: string
  readonly settings: S
  /** Whether the subcommand takes a task id as its argument. */
  readonly takesTaskId: boolean
  run(call: {
    readonly values: SettingValues<S>
    /** Empty if the subcommand takes no task id. */
    readonly taskId: string
    readonly client: ServiceClient
  }): Promise<Answer>
}

/** Infers the types of `values` from the settings of the command. */
export const defineCommand = <S extends Settings>(command: Command<S>): Command<S> => command

export const taskPath = (taskId: string, rest = ''): string => `/api/v1/tasks/${encodeURIComponent(taskId)}${rest}`
