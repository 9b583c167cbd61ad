/** Graphs to begin with, for the form. They run on every machine and need no other service. */

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

const parts = Array.from({ length: 8 }, (_, index) => `part-${index + 1}`)

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Build and test',
    body: {
      name: 'build-and-test',
      labels: { example: 'yes' },
      tasks: [
        shell('fetch', 'uname', ['-a']),
        sleep('compile', 3_000, ['fetch']),
        sleep('lint', 1_500, ['fetch']),
        sleep('unit-tests', 2_500, ['compile']),
        sleep('browser-tests', 4_000, ['compile']),
        shell('report', 'echo', ['all is well'], ['lint', 'unit-tests', 'browser-tests']),
      ],
    },
  },
  {
    title: 'Fan out and in',
    body: {
      name: 'fan-out',
      tasks: [
        shell('split', 'date', []),
        ...parts.map((id, index) => sleep(id, 600 * (index + 1), ['split'])),
        shell('join', 'echo', ['joined'], parts),
      ],
    },
  },
  {
    title: 'A failure, and what it takes with it',
    body: {
      name: 'failing',
      tasks: [
        shell('config', 'cat', ['/etc/hostname']),
        { ...shell('deploy', 'ls', ['/no/such/directory'], ['config']), retry: 1 },
        sleep('smoke-test', 1_000, ['deploy']),
        sleep('announce', 1_000, ['smoke-test']),
        sleep('docs', 2_000, ['config']),
      ],
    },
  },
]
