/** The interface of subcommands. A subcommand returns its answer or throws. Only `command-line.ts` prints and exits. */

import type { ServiceClient } from '../../shared/http/client.ts'
import type { Settings, SettingValues } from '../../shared/settings/flags.ts'
import type { CalledService } from '../called-service.ts'
import type { Answer } from '../envelope.ts'

export interface Command<S extends Settings = Settings> {
  readonly summary: string
  /** The text after the name in help texts. */
  readonly usage: string
  readonly settings: S
  /** More positional arguments are a usage error. */
  readonly maxArguments: number
  /** Whether the command writes to standard output itself, so that `command-line.ts` prints nothing there. */
  readonly ownsOutput?: true
  /** Whether it heeds `interruption`. Other commands end at once. */
  readonly heedsInterruption?: true
  /** Returns undefined if there is nothing to print. */
  run(call: {
    readonly values: SettingValues<S>
    readonly positionals: readonly string[]
    /** The settings that a flag or a variable gives. */
    readonly given: ReadonlySet<string>
    readonly client: ServiceClient
    readonly env: Readonly<Record<string, string | undefined>>
    /** The service that `client` calls. */
    readonly service: CalledService
    /** Looks for that service again: `taskmill up` may have started it meanwhile. */
    readonly findService: () => CalledService
    /** Prints an answer while the command continues. It returns undefined then. */
    readonly printNow: (answer: Answer) => Promise<void>
    /** Aborted with `Interrupted` when the client is told to stop. */
    readonly interruption: AbortSignal
  }): Promise<Answer | undefined>
}

export type Commands = Readonly<Record<string, Command>>

/** Infers the types of a command's settings. */
export const defineCommand = <S extends Settings>(command: Command<S>): Command<S> => command
