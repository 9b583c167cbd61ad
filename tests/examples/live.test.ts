/** What docs/live.md and docs/schedules.md show runs, in the order in which it is shown. Method: a shell runs the lines as they are. */
import { expect, test } from 'bun:test'
import { cpSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { type Control, startControl } from '../support/control.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const ROOT = join(import.meta.dir, '../..')

/** The lines of the blocks of a page, from the heading `from` to the next one of its level, that are for a shell. */
function shellLines(page: string, from = ''): string[] {
  const section = page.slice(page.indexOf(`\n## ${from}\n`) + 1)
  const text = from === '' ? page : section.slice(0, section.indexOf('\n## '))
  const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!)
  return blocks.flatMap((block) => block.trim().split('\n'))
}

/** Expects each file that a block of the page names in its first line to hold the rest of the block. */
function expectShown(page: string, path: string, name = path): void {
  expect(page).toContain(`\`\`\`yaml\n# ${name}\n${readFileSync(join(ROOT, path), 'utf8')}\`\`\``)
}

async function run(line: string, control: Control) {
  const env = testEnvironment({
    ...{ SERVICE_URL: control.url, XDG_STATE_HOME: '/nonexistent' },
    PATH: `${dirname(await builtProgram('taskmill'))}:${process.env.PATH}`,
  })
  const child = Bun.spawn(['sh', '-c', line], {
    ...{ cwd: control.cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

test('a graph is held back, changed and retried', async () => {
  const page = readFileSync(join(ROOT, 'docs/live.md'), 'utf8')
  for (const name of ['release.yaml', 'with-mirror.yaml']) expectShown(page, `examples/live/${name}`)
  using dir = tempDir()
  symlinkSync(join(ROOT, 'examples'), join(dir.path, 'examples'))
  await using control = await startControl({ cwd: dir.path })
  let graphId = ''
  const printed = new Map<string, string>()
  for (const line of shellLines(page)) {
    const { exitCode, stdout, stderr } = await run(line.replaceAll('GRAPH_ID', graphId), control)
    const said = /# exit code (\d)/.exec(line)?.[1] ?? '0'
    expect([line, exitCode, exitCode === Number(said) ? '' : stdout + stderr]).toEqual([line, Number(said), ''])
    if (line.startsWith('taskmill submit')) graphId = JSON.parse(stdout).data.graph_id
    printed.set(line.replace(/ +#.*$/, ''), stdout)
  }
  expect(printed.get('taskmill graphs --paused -o table')).toContain('release')
  expect(JSON.parse(printed.get('taskmill pauses')!).data.pauses).toMatchObject([{ why: 'a new image' }])
  const dry = printed.get('taskmill patch GRAPH_ID examples/live/with-mirror.yaml --dry-run')!
  expect(JSON.parse(dry).data.waves).toEqual([['build'], ['ok'], ['notes', 'mirror'], ['announce']])
  const graph = (await (await control.fetch(`/graphs/${graphId}`)).json()) as object
  expect(graph).toMatchObject({ state: 'success', revision: 1, task_count: 5 })
})

test('a directory of graph files is a set of schedules', async () => {
  const page = readFileSync(join(ROOT, 'docs/schedules.md'), 'utf8')
  expectShown(page, 'examples/schedules/nightly.yaml', 'schedules/nightly.yaml')
  using dir = tempDir()
  cpSync(join(ROOT, 'examples/schedules'), join(dir.path, 'schedules'), { recursive: true })
  await using control = await startControl({ cwd: dir.path, flags: ['--schedules-dir', join(dir.path, 'schedules')] })
  await until(
    async () => (await (await control.fetch('/schedules')).json()) as unknown[],
    (found) => found.length === 1,
  )
  const lines = shellLines(page, 'Schedules in files').filter((line) => !line.includes('taskmill up'))
  expect(lines).toHaveLength(4)
  for (const line of lines) {
    const { exitCode, stdout } = await run(line, control)
    expect([line, exitCode]).toEqual([line, 0])
    expect([line, stdout]).toEqual([line, expect.stringMatching(/nightly|"ok":true/)])
  }
})
