/**
 * What it costs that the proxy ends TLS and adds a secret: requests of curl in a sandbox to one server, by a name of it that is
 * opened and by an address that passes sealed.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NetworkRules } from '../../shared/contract/runtime-request.ts'
import { MB } from '../measure.ts'
import { median } from '../statistics.ts'

const ROUNDS = 3
const REQUESTS = 40

/** Less is noise. */
const LEAST_MS = 0.01

/** Below a data directory, as the command of the server names them. */
export const OPENED_FILES = { authority: 'bench.pem', rules: 'bench-rules.toml', secrets: 'bench-secrets' } as const

/** Puts a secret, rules and a certificate for 127.0.0.1 into `dataDir`, for a server that is about to start. */
export function prepareOpened(dataDir: string): void {
  const path = (name: string) => join(dataDir, name)
  mkdirSync(path(OPENED_FILES.secrets), { mode: 0o700 })
  writeFileSync(path(`${OPENED_FILES.secrets}/token`), 'tok-0123456789abcdefghij', { mode: 0o600 })
  writeFileSync(path(OPENED_FILES.rules), '')
  chmodSync(path(OPENED_FILES.rules), 0o644)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', path('bench.key')]
  const certificate = ['-out', path(OPENED_FILES.authority), '-subj', '/CN=bench', '-days', '2']
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1']
  const { exitCode, stderr } = Bun.spawnSync(['openssl', 'req', '-x509', ...key, ...certificate, ...names])
  if (exitCode !== 0) throw new Error(`openssl: ${stderr}`)
}

interface Figures {
  /** MB/s of one stream. */
  readonly stream: number
  /** Milliseconds of a request, half within, beyond those of one that passes sealed. */
  readonly extraMs: number
}

/** `output` is what a script in a sandbox with these rules prints. */
export async function measureOpened(
  dataDir: string,
  bytes: Blob,
  output: (script: string, network: NetworkRules) => Promise<string>,
): Promise<Figures> {
  const file = (name: string) => Bun.file(join(dataDir, name))
  await using source = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0, tls: { cert: file(OPENED_FILES.authority), key: file('bench.key') } },
    fetch: ({ url }) => new Response(new URL(url).pathname === '/stream' ? bytes : 'x'),
  })
  const host = `127.0.0.1:${source.port}`
  writeFileSync(join(dataDir, OPENED_FILES.rules), `[token]\nhosts = ["${host}"]\n`)
  const allow = { opened: [{ host, headers: { 'X-Key': { secret: 'token' } } }], sealed: [host] }
  // Insecure: curl reads all that it trusts for each connection, for 40 ms.
  const curl = (paths: string[], write: string) => {
    const urls = paths.map((path) => `--output /dev/null https://${host}${path}`).join(' ')
    return `curl --insecure --silent --show-error --fail --noproxy '' --header 'Connection: close' --write-out '%{${write}}\\n' ${urls}`
  }
  const requests = Array.from({ length: REQUESTS }, () => '/')
  const extra: number[] = []
  const streams: number[] = []
  for (let i = 0; i < ROUNDS; i++) {
    const opened = await output(curl(requests, 'time_total'), { allow: allow.opened })
    const sealed = await output(curl(requests, 'time_total'), { allow: allow.sealed })
    extra.push((median(numbersIn(opened)) - median(numbersIn(sealed))) * 1_000)
    streams.push(Number(await output(curl(['/stream'], 'speed_download'), { allow: allow.opened })) / MB)
  }
  return { stream: median(streams), extraMs: Math.max(median(extra), LEAST_MS) }
}

const numbersIn = (text: string): number[] => text.trim().split('\n').map(Number)
