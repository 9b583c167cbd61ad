/** Debian's nginx and Caddy before a service, as ordinary processes on free ports. Gone at the end of the block. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { mustSandbox } from './must-sandbox.ts'
import { testEnvironment } from './service.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

/** The name of the proxy in the documentation. */
export const PROXY_NAME = 'taskmill.example.com'

type ProxyKind = 'nginx' | 'caddy'

const PATH = `${process.env.PATH}:/usr/sbin`

/** Why a proxy cannot be started on this machine. Undefined if both can. */
export const withoutProxies = mustSandbox(
  ['nginx', 'caddy'].every((name) => Bun.which(name, { PATH }) !== null)
    ? undefined
    : 'nginx or caddy is missing (apt-get install nginx-light caddy)',
)

interface ReverseProxy extends AsyncDisposable {
  readonly port: number
}

/** The blocks for `kind` in the documentation, in their order. */
export const documentedBlocks = (kind: ProxyKind): readonly string[] =>
  [...readFileSync('docs/operations.md', 'utf8').matchAll(new RegExp(`^\`\`\`${kind}\n(.*?)^\`\`\``, 'gms'))].map(
    ([, block]) => block!,
  )

/** Starts a proxy with a block of the documentation, in which its address and that of the service are others. */
export async function startProxy(kind: ProxyKind, block: string, serviceUrl: string): Promise<ReverseProxy> {
  const temp = tempDir()
  const port = await freePort()
  const config = join(temp.path, 'config')
  const own = block
    .replaceAll('127.0.0.1:8080', new URL(serviceUrl).host)
    .replace('listen 80;', `listen 127.0.0.1:${port};`)
  writeFileSync(config, kind === 'nginx' ? nginxConfig(temp.path, own) : caddyConfig(port, own))
  const argv =
    kind === 'nginx'
      ? ['nginx', '-e', 'stderr', '-p', temp.path, '-c', config]
      : ['caddy', 'run', '--adapter', 'caddyfile', '--config', config]
  const log = join(temp.path, 'log')
  const proxy = Bun.spawn([Bun.which(argv[0]!, { PATH })!, ...argv.slice(1)], {
    ...{ cwd: temp.path, env: testEnvironment({ HOME: temp.path }), stdin: 'ignore' },
    ...{ stdout: Bun.file(log), stderr: Bun.file(log) },
  })
  const dispose = async () => {
    // The master of nginx ends its worker. Caddy would wait for open streams.
    proxy.kill(kind === 'nginx' ? 'SIGTERM' : 'SIGKILL')
    await proxy.exited
    temp[Symbol.dispose]()
  }
  try {
    await until(
      () => {
        if (proxy.exitCode !== null) throw new Error(`${kind} did not start: ${readFileSync(log, 'utf8')}`)
        return fetch(`http://127.0.0.1:${port}/`, { headers: { host: PROXY_NAME } }).then(
          () => true,
          () => false,
        )
      },
      (isListening) => isListening,
    )
  } catch (error) {
    await dispose()
    throw error
  }
  return { port, [Symbol.asyncDispose]: dispose }
}

const nginxConfig = (dir: string, block: string): string => `daemon off;
user root;
worker_processes 1;
pid ${dir}/pid;
error_log stderr;
events {}
http {
  access_log off;
${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `  ${name}_temp_path ${dir}/${name};`).join('\n')}
${block}
}
`

const caddyConfig = (port: number, block: string): string => `{
  admin off
}
${block.replace(PROXY_NAME, `http://${PROXY_NAME}:${port}`)}
`
