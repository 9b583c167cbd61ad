/** Every example that needs nothing is accepted by a real control service and ends as its description says. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { hasPlaceholders } from '../../examples/demo/graph.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { runClient } from '../support/client.ts'
import { startControl } from '../support/control.ts'

const EXAMPLES = join(dirname(dirname(import.meta.dir)), 'examples')

/** Tasks that are meant to end otherwise than `success`. */
const OTHER_ENDINGS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'retry.json': { knock: 'failed', enter: 'skipped' },
}

const files = readdirSync(EXAMPLES).filter((name) => name.endsWith('.json'))
const complete = files.filter((name) => !hasPlaceholders(readFileSync(join(EXAMPLES, name), 'utf8')))

test('only the graph of the demo is incomplete', () => {
  expect(files.filter((name) => !complete.includes(name))).toEqual(['survey.json'])
})

test('the README of the examples names each of them', () => {
  const readme = readFileSync(join(EXAMPLES, 'README.md'), 'utf8')
  expect(files.filter((name) => !readme.includes(`\`${name}\``))).toEqual([])
})

test.each(complete)('%s is accepted and ends', async (name) => {
  await using control = await startControl()
  const submitted = await runClient(['submit', '--file', join(EXAMPLES, name)], { url: control.url })
  expect(submitted.exitCode).toBe(0)
  const ids = submitted.envelope.data!.task_ids as string[]
  const { exitCode } = await runClient(['wait', ...ids, '--timeout', '30s'], { url: control.url })
  expect(exitCode).toBe(0)

  const tasks = await control.list()
  expect(tasks.every(({ status }) => isTerminal(status))).toBe(true)
  const others: Readonly<Record<string, string>> = Object.fromEntries(
    tasks.filter(({ status }) => status !== 'success').map(({ id, status }) => [id, status]),
  )
  expect(others).toEqual(OTHER_ENDINGS[name] ?? {})
  expect(readdirSync(control.cwd).filter((entry) => entry !== 'data')).toEqual([])
})

test('retry.json: the letter is read at a later attempt, and the door is knocked on three times', async () => {
  await using control = await startControl()
  const { tasks } = JSON.parse(readFileSync(join(EXAMPLES, 'retry.json'), 'utf8'))
  await control.submit(tasks)
  await control.allEnded()
  expect((await control.get('read-letter')).attempt).toBeGreaterThan(1)
  const knock = await control.get('knock')
  expect(knock.attempt).toBe(3)
  expect(knock.error).toStartWith('task failed after all retries: ')
})
