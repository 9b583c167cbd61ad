/** What a subcommand is: it returns its answer or throws; `main.ts` alone prints and exits. */
import type { Settings, SettingValues } from '../../shared/flags.ts'
import type { ServiceClient } from '../../shared/http-client.ts'
import type { Answer } from '../envelope.ts'

export interface Command<S extends Settings = Settings> {
  readonly summary: string
  /** What stands after the name, in help texts. */
  readonly usage: string
  readonly settings: S
  /** Whether arguments that are no flags are taken; else one is a usage error. */
  readonly takesArguments: boolean
  /** Its standard output belongs to a protocol: nothing of ours is printed there once it runs. */
  readonly speaksProtocol?: true
  /** Undefined: there is nothing to print. */
  run(call: {
    readonly values: SettingValues<S>
    readonly positionals: readonly string[]
    readonly client: ServiceClient
    readonly env: Readonly<Record<string, string | undefined>>
  }): Promise<Answer | undefined>
}

/** Keeps the types of a command's own settings while it is written. */
export const defineCommand = <S extends Settings>(command: Command<S>): Command<S> => command
