/** The texts of `--help`. Pure. */

import { VERSION } from '../shared/process/version.ts'
import { describeSettings, type Settings } from '../shared/settings/flags.ts'
import { commonSettings } from './common-settings.ts'

interface Described {
  readonly summary: string
  readonly usage: string
  readonly settings: Settings
}

export function helpText(commands: Readonly<Record<string, Described>>): string {
  const lines = Object.entries(commands).map(([name, { summary, usage }]) => `  ${name} ${usage}\n      ${summary}`)
  return `taskmill ${VERSION}: the client of a taskmill control service. Every subcommand prints one JSON object on
standard output (except mcp, which serves a protocol there):
{"ok": true, "data": {...}} or {"ok": false, "error": {"message", "status_code", "body"}}.
With -o table it prints text for people instead.

Usage: taskmill <subcommand> [flags]

${lines.join('\n')}
  --help, <subcommand> --help
      Show help, on standard error.
  --version
      Print the version, in the same form.

Every subcommand takes:
${describeSettings(commonSettings)}

Variables without a flag:
  SERVICE_TOKEN
      Sent as Authorization: Bearer if set.
  NO_COLOR
      No colours if set.

Exit codes: 0 success, 1 error, 2 usage error, 3 a wait timed out. ensure-running: 4 the control service is not
reachable, 5 the runtime service is not ready.`
}

export const subcommandHelp = (name: string, { summary, usage, settings }: Described): string =>
  `taskmill ${name}: ${summary}

Usage: taskmill ${name} ${usage}

Flags:
${describeSettings({ ...settings, ...commonSettings })}`
