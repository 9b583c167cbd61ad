/** What the results of dynamic tasks add: found wherever a tool can say it, and nowhere else. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { addedTasks, placedFault } from '../../../control/rules/added-tasks.ts'
import { runSync } from '../../../shared/process/steps.ts'

const found = (result: unknown) => runSync(addedTasks(result))

/** What tools return around the object `said`. */
const FORMS: Readonly<Record<string, (said: unknown) => unknown>> = {
  'an executor of its own': (said) => said,
  'an MCP server': (said) => ({ server: 's', tool: 't', content: [], structuredContent: said }),
  'an MCP server in text': (said) => ({ server: 's', content: [{ type: 'text', text: JSON.stringify(said) }] }),
  'a command': (said) => ({ stdout: `${JSON.stringify(said, null, 2)}\n`, stderr: 'x "add_tasks" x', exit_code: 0 }),
  'a skill': (said) => ({ command: 'c', output: JSON.stringify(said), exit_code: 0 }),
  'an HTTP answer': (said) => ({ status_code: 200, body: JSON.stringify(said), headers: {} }),
  'a file': (said) => ({ content: JSON.stringify(said) }),
}

test.each(Object.entries(FORMS))('%s: any value of add_tasks is found, beside anything', (_, form) => {
  const value = fc.jsonValue().filter((json) => json !== null && !JSON.stringify(json).includes('"__proto__"'))
  fc.assert(
    fc.property(value, fc.dictionary(fc.constantFrom('a', 'note'), fc.jsonValue()), (tasks, others) => {
      const said = JSON.parse(JSON.stringify({ ...others, add_tasks: tasks }))
      expect(found(form(said))).toEqual({ tasks: said.add_tasks })
    }),
  )
})

test.each([
  [null],
  ['"add_tasks"'],
  [{ ok: true, message: '' }],
  [{ stdout: 'no plan\n' }],
  [{ stdout: '{"add_tasks": null}' }],
  [{ add_tasks: null }],
  [{ stdout: '["add_tasks"]' }],
  [{ stdout: '{"plan": {"add_tasks": []}}' }],
  [{ stderr: '{"add_tasks": []}' }],
])('%j adds nothing', (result) => expect(found(result)).toBeUndefined())

test.each([
  [{ stdout: 'plan: {"add_tasks": []}' }, /^stdout is not JSON: .*[^)]$/],
  [{ stdout: '{"add_tasks": [', truncated: true }, /^stdout is not JSON: .* \(it was cut off\)$/],
  [{ body: `{"add_tasks": ${'['.repeat(5_000)}` }, /^body is nested deeper than/],
])('a text that mentions add_tasks and is no JSON is a fault: %j', (result, fault) => {
  expect(found(result)).toEqual({ fault: expect.stringMatching(fault) })
})

test.each([
  ['invalid JSON: tasks[7].depends_on: expected array', undefined, 'add_tasks/2/depends_on: expected array'],
  ['invalid JSON: tasks[5].tasks[0].id: expected string', undefined, 'add_tasks/0/tasks/0/id: expected string'],
  ['invalid JSON: tasks[6]: expected object, got null', undefined, 'add_tasks/1: expected object, got null'],
  ['unknown task type: nothing', 3, 'add_tasks/3: unknown task type: nothing'],
  ['cycle detected in task graph: a -> b -> a', undefined, 'add_tasks: cycle detected in task graph: a -> b -> a'],
])('%s is told at its place', (message, index, text) => expect(placedFault(message, 5, index)).toBe(text))
