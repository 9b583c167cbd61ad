/** Graphs to begin with, for the form. They run on every machine and need no other service, but for those of a sandbox. */

export interface Example {
  readonly title: string
  readonly body: object
}

const sleep = (id: string, duration_ms: number, depends_on: readonly string[] = []) => ({
  ...{ id, type: 'sleep', params: { duration_ms } },
  ...(depends_on.length > 0 && { depends_on }),
})

const shell = (id: string, command: string, args: readonly string[], depends_on: readonly string[] = []) => ({
  ...{ id, type: 'shell', params: { command, args } },
  ...(depends_on.length > 0 && { depends_on }),
})

const sandboxed = (id: string, program: string, args: readonly string[], depends_on: readonly string[] = []) => ({
  ...{ id, type: 'runtime.command' },
  params: { program, args, sandbox: { profile: 'linux_sandbox' }, policy: { capability_mode: 'strict' } },
  ...(depends_on.length > 0 && { depends_on }),
})

const parts = Array.from({ length: 8 }, (_, index) => `part-${index + 1}`)

const examplesWith = (command: typeof shell | typeof sandboxed): readonly Example[] => [
  {
    title: 'Build and test',
    body: {
      name: 'build-and-test',
      labels: { example: 'yes' },
      tasks: [
        command('fetch', 'uname', ['-a']),
        sleep('compile', 3_000, ['fetch']),
        sleep('lint', 1_500, ['fetch']),
        sleep('unit-tests', 2_500, ['compile']),
        sleep('browser-tests', 4_000, ['compile']),
        command('report', 'echo', ['all is well'], ['lint', 'unit-tests', 'browser-tests']),
      ],
    },
  },
  {
    title: 'Fan out and in',
    body: {
      name: 'fan-out',
      tasks: [
        command('split', 'date', []),
        ...parts.map((id, index) => sleep(id, 600 * (index + 1), ['split'])),
        command('join', 'echo', ['joined'], parts),
      ],
    },
  },
  {
    title: 'A failure, and what it takes with it',
    body: {
      name: 'failing',
      tasks: [
        command('config', 'cat', ['/etc/hostname']),
        { ...command('deploy', 'ls', ['/no/such/directory'], ['config']), retry: 1 },
        sleep('smoke-test', 1_000, ['deploy']),
        sleep('announce', 1_000, ['smoke-test']),
        sleep('docs', 2_000, ['config']),
      ],
    },
  },
]

export const EXAMPLES = examplesWith(shell)

/** For a caller whose tasks may run in a strict sandbox only. */
export const FENCED_EXAMPLES = examplesWith(sandboxed)
