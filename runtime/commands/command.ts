/** What a client subcommand is: it returns what it prints and how it exits, or throws; `main.ts` alone prints and exits. */
import type { Settings, SettingValues } from '../../shared/flags.ts'
import type { ServiceClient } from '../../shared/http-client.ts'

export interface Answer {
  /** The response of the service. */
  readonly body: object
  readonly exitCode: 0 | 1
}

export interface Command<S extends Settings = Settings> {
  readonly summary: string
  /** What stands after the name, in help texts. */
  readonly usage: string
  readonly settings: S
  /** Whether it takes the id of a task as its argument. */
  readonly takesTaskId: boolean
  run(call: {
    readonly values: SettingValues<S>
    /** Empty where none is taken. */
    readonly taskId: string
    readonly client: ServiceClient
  }): Promise<Answer>
}

/** Keeps the types of a command's own settings while it is written. */
export const defineCommand = <S extends Settings>(command: Command<S>): Command<S> => command

export const taskPath = (taskId: string, rest = ''): string => `/api/v1/tasks/${encodeURIComponent(taskId)}${rest}`
