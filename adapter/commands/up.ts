/** `taskmill up`: starts both services in the background, or finds those that it started before. */
import { resolve } from 'node:path'
import { UsageError } from '../../shared/contract/errors.ts'
import { VERSION } from '../../shared/process/version.ts'
import { choice, duration, flag, optionalInteger, text } from '../../shared/settings/flags.ts'
import { type Answer, EXIT } from '../envelope.ts'
import type { OwnServices } from '../own-services/record.ts'
import type { Environment } from '../own-services/state-dir.ts'
import { defineCommand } from './command.ts'
import { servicesView } from './services-view.ts'

const port = (help: string) => optionalInteger({ value: 'port', min: 1, max: 65_535, help })

export const up = defineCommand({
  summary:
    'Start both services in the background on 127.0.0.1, with a token that other subcommands find by themselves.',
  usage:
    '[--shell open] [--socket] [--schedules-dir DIR] [--secrets-dir DIR] [--secret-command COMMAND] [--foreground]',
  settings: {
    foreground: flag({ help: 'Stay until Ctrl-C, and show the log on standard error. Then both services end.' }),
    port: port('Port of the control service. Default: that of the last start, else 8080, else any free one.'),
    runtimePort: port('Port of the runtime service. Default: that of the last start, else 18080, else any free one.'),
    socket: flag({
      help: 'Listen on Unix sockets that only you can use, instead of ports. There is no dashboard then: browsers cannot open sockets.',
    }),
    shell: choice({
      variable: 'SERVICE_SHELL_POLICY',
      default: 'allowlist',
      choices: ['allowlist', 'open'],
      help: 'What shell and cli-skills tasks may start. open: any program and any script, with your rights. allowlist: harmless commands only.',
    }),
    schedulesDir: text({
      variable: 'SERVICE_SCHEDULES_DIR',
      value: 'directory',
      help: 'Directory of graph files with a field schedule: each is a schedule as long as it is there.',
    }),
    secretsDir: text({
      variable: 'SERVICE_SECRETS_DIR',
      value: 'directory',
      help: 'Directory with the secrets of tasks, a file each. Default: the one of taskmill secrets, unless systemd gives credentials.',
    }),
    secretCommand: text({
      variable: 'SERVICE_SECRET_COMMAND',
      value: 'command',
      help: 'Command that prints the secret {name} if no file has it, such as "pass show {name}".',
    }),
    timeout: duration({
      default: '30s',
      minMs: 1,
      maxMs: 3_600_000,
      help: 'Maximum wait for the services to become ready.',
    }),
  },
  maxArguments: 0,
  heedsInterruption: true,
  async run({ values, env, interruption, printNow }): Promise<Answer | undefined> {
    const { up: start } = await import('../start/up.ts')
    const { foreground: isForeground, port, runtimePort, shell, socket: isOnSocket, timeout: timeoutMs } = values
    if (isOnSocket && (port ?? runtimePort) !== undefined) throw new UsageError('with --socket there are no ports')
    const given = (directory: string) => (directory === '' ? undefined : resolve(directory))
    const { services, isStarted, foreground } = await start({
      ...{ schedulesDir: given(values.schedulesDir), secretsDir: given(values.secretsDir) },
      secretCommand: values.secretCommand,
      ...{ port, runtimePort, isShellOpen: shell === 'open', isOnSocket, timeoutMs, isForeground, env, interruption },
    })
    const answer: Answer = {
      data: { started: isStarted, ...servicesView(services, env) },
      exitCode: EXIT.success,
      warnings: [
        ...openShell(services),
        ...otherVersion(services.version),
        ...otherUrl(env.SERVICE_URL, services.url),
        ...otherToken(services, env),
      ],
    }
    if (foreground === undefined) return answer
    await printNow(answer)
    const { stayInForeground } = await import('../start/foreground.ts')
    await stayInForeground(services, foreground, { env, interruption })
    return undefined
  },
})

const openShell = ({ shell }: OwnServices): string[] =>
  shell === 'open'
    ? ['shell and cli-skills tasks may start any program with your rights: whoever has the token can do what you can']
    : []

const otherVersion = (version: string): string[] =>
  version === VERSION
    ? []
    : [`the services run version ${version}, and this client is ${VERSION}: taskmill down, then taskmill up`]

const otherToken = ({ token }: OwnServices, { SERVICE_TOKEN: given }: Environment): string[] =>
  !given || given === token
    ? []
    : ['SERVICE_TOKEN is another token than that of these services: unset it, or they refuse the calls of this client']

const otherUrl = (given: string | undefined, url: string): string[] =>
  given === undefined || given === '' || given.replace(/\/+$/, '') === url
    ? []
    : [`SERVICE_URL is ${given}: unset it, or other subcommands call that service instead of ${url}`]
