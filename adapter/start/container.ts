/**
 * Starts the runtime service as a container of an image.
 *
 * The container's name contains the port, so the next call finds it, running or stopped. A stopped one is started again
 * with its data. The port is published on loopback only. Inside the container the service has to listen on all addresses,
 * which a variable tells it.
 */
import type { StartAddress } from '../../shared/http/start-address.ts'
import { commandLine } from '../shell-words.ts'
import { type Attempt, failed, lastLines } from './attempt.ts'
import type { Docker } from './docker.ts'

/** The port inside the container: the runtime's default. */
const INNER_PORT = 18080

export async function startContainer(
  docker: Docker,
  { image, address }: { readonly image: string; readonly address: StartAddress },
): Promise<Attempt> {
  const name = containerName(address)
  const found = await inspect(docker, name)
  if (found.state === 'unknown') return failed(found.fault, found.hints)
  if (found.state !== 'none' && found.image !== image) {
    return failed(`the container ${name} is there, but of the image ${found.image} instead of ${image}`, [
      commandLine('docker', 'rm', '-f', name),
      runLine(image, address),
    ])
  }
  const hints = [commandLine('docker', 'logs', '--tail', '50', name), commandLine('docker', 'ps', '-a')]
  if (found.state === 'running') {
    return { isStarted: true, note: `the container ${name} runs already`, hints, ...lookAfter(docker, name) }
  }
  const args = found.state === 'none' ? runArguments(image, address) : ['start', name]
  const run = await docker.run('docker', args)
  if (!run.isOk) {
    // A container that was created but did not start is empty, and would block the name for another image.
    if (found.state === 'none' && (await inspect(docker, name)).state === 'created')
      await docker.run('docker', ['rm', name])
    return failed(run.fault, [...run.hints, commandLine('docker', ...args)])
  }
  const what = found.state === 'none' ? `docker run -d of ${image}` : `docker start of its stopped container`
  return { isStarted: true, by: 'container', note: `${what}, container ${name}`, hints, ...lookAfter(docker, name) }
}

export const containerName = ({ hostname, port }: StartAddress): string =>
  hostname === '127.0.0.1'
    ? `taskmill-runtime-${port}`
    : `taskmill-runtime-${hostname.replace(/[^\w.]+/g, '_')}-${port}`

/** The command line that starts the container. */
export const runLine = (image: string, address: StartAddress): string =>
  commandLine('docker', ...runArguments(image, address))

function runArguments(image: string, address: StartAddress): string[] {
  const published = `${address.listen}:${INNER_PORT}`
  const listenEverywhere = `SERVICE_RUNTIME_LISTEN_ADDR=0.0.0.0:${INNER_PORT}`
  return ['run', '-d', '--name', containerName(address), '-p', published, '-e', listenEverywhere, image]
}

type Found =
  | { readonly state: 'none' }
  | { readonly state: 'running' | 'created' | 'stopped'; readonly image: string }
  | { readonly state: 'unknown'; readonly fault: string; readonly hints: readonly string[] }

async function inspect(docker: Docker, name: string): Promise<Found> {
  const format = '{{.State.Status}} {{.Config.Image}}'
  const run = await docker.ask('docker', ['container', 'inspect', '--format', format, name])
  const match = /^(\w+) (\S+)\s*$/.exec(run.stdout)
  if (run.isOk && match !== null) {
    const status = match[1]!
    const image = match[2]!
    const isUp = status === 'running' || status === 'restarting'
    return { state: isUp ? 'running' : status === 'created' ? 'created' : 'stopped', image }
  }
  if (run.isOk || /no such container/i.test(run.fault)) return { state: 'none' }
  return { state: 'unknown', fault: run.fault, hints: run.hints }
}

/** Watches for the end of the container with `docker wait`, which prints its exit code. */
function lookAfter(docker: Docker, name: string): { ended: Promise<string>; release(): void } {
  const watch = new AbortController()
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  const wait = async () => {
    const { isOk, stdout } = await docker.run('docker', ['wait', name], { limit: watch.signal })
    const exitCode = stdout.trim()
    if (!isOk || !/^\d+$/.test(exitCode)) return // docker does not know: the time limit decides
    const logs = await docker.ask('docker', ['logs', '--tail', '5', name])
    resolve(exitReportOf(name, exitCode, lastLines(`${logs.stdout}\n${logs.stderr}`)))
  }
  void wait()
  return { ended, release: () => watch.abort() }
}

const exitReportOf = (name: string, exitCode: string, words: string) =>
  `the container ${name} ended with exit code ${exitCode}, ${words === '' ? 'and its log is empty' : `its last log lines:\n${words}`}`
