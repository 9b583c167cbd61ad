/** Starts the services of a compose file: `docker compose up -d`, or `docker-compose up -d` if docker lacks the plug-in. */
import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { commandLine } from '../shell-words.ts'
import { type Attempt, failed, lastLines } from './attempt.ts'
import type { Docker, Program } from './docker.ts'

/** Names of compose files. Docker would also search the parent directories, whose files the user did not ask for. */
const COMPOSE_FILES = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml']

/** `composeFile` is the variable COMPOSE_FILE, which may give other file names. */
export async function composeUp(
  docker: Docker,
  { dir, composeFile }: { readonly dir: string; readonly composeFile: string | undefined },
): Promise<Attempt> {
  const directory = resolve(dir)
  const fault = faultOfDirectory(directory, composeFile)
  if (fault !== undefined) return failed(fault, [commandLine('ls', '-la', directory)])
  const compose = await composeCommand(docker)
  if ('fault' in compose) return failed(compose.fault, ['docker compose version'])

  const { program, prefix } = compose
  const paste = (...args: string[]) => `cd ${commandLine(directory)} && ${commandLine(program, ...prefix, ...args)}`
  const up = await docker.run(program, [...prefix, 'up', '-d'], { cwd: directory })
  if (!up.isOk) return failed(`in ${directory}: ${up.fault}`, [...up.hints, paste('up', '-d')])
  return {
    isStarted: true,
    by: 'compose',
    note: `${[program, ...prefix].join(' ')} up -d in ${directory}`,
    hints: [paste('ps', '-a'), paste('logs', '--tail', '50')],
    // A compose service may exit or restart on purpose. So its log matters only after the timeout.
    async diagnose() {
      const logs = await docker.ask(program, [...prefix, 'logs', '--no-color', '--tail', '5'], { cwd: directory })
      const words = lastLines(logs.stdout)
      return words === '' ? '' : `its last log lines:\n${words}`
    },
  }
}

function faultOfDirectory(directory: string, composeFile: string | undefined): string | undefined {
  try {
    if (!statSync(directory).isDirectory()) return `the compose directory ${directory} is not a directory`
  } catch {
    return `the compose directory ${directory} does not exist`
  }
  if (composeFile || COMPOSE_FILES.some((name) => existsSync(join(directory, name)))) return undefined
  return `there is no compose file in ${directory} (${COMPOSE_FILES.join(', ')})`
}

async function composeCommand(
  docker: Docker,
): Promise<{ readonly program: Program; readonly prefix: readonly string[] } | { readonly fault: string }> {
  const plugin = await docker.ask('docker', ['compose', 'version'])
  if (plugin.isOk) return { program: 'docker', prefix: ['compose'] }
  if (docker.has('docker-compose')) return { program: 'docker-compose', prefix: [] }
  return { fault: `${plugin.fault}; docker-compose is not in PATH either` }
}
