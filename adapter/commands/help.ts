/** `taskmill help`: the text of `--help`, as data. */
import { helpText, subcommandHelp } from '../help.ts'
import { type Command, type Commands, defineCommand } from './command.ts'
import { knownCommand } from './known-command.ts'

/** `commands` are all subcommands, this one included. */
export const helpOn = (commands: () => Commands): Command =>
  defineCommand({
    summary: 'Print this text, or that of a subcommand, as {"help": "..."}.',
    usage: '[SUBCOMMAND]',
    settings: {},
    maxArguments: 1,
    async run({ positionals: [name] }) {
      const help = name === undefined ? helpText(commands()) : subcommandHelp(name, knownCommand(name, commands()))
      return { data: { help }, exitCode: 0, table: async () => help.split('\n') }
    },
  })
