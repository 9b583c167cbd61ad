import { expect, test } from 'bun:test'
import { startTaskmill } from 'taskmill/testing'

test('the report is made before it is read', async () => {
  await using mill = await startTaskmill()
  const graph = await mill.client.run({
    scope: 'graph',
    tasks: [
      { id: 'make', type: 'file', params: { action: 'write', path: 'report.txt', content: 'all is well\n' } },
      { id: 'read', type: 'shell', params: { command: 'cat', args: ['report.txt'] }, depends_on: ['make'] },
    ],
  })
  expect(graph.state).toBe('success')
  expect((await mill.client.log({ ...graph, id: 'read' })).text).toBe('all is well\n')
})

test('an answer outlasts a crash of the service', async () => {
  await using mill = await startTaskmill()
  const tasks = [{ id: 'sure', type: 'approval', params: { message: 'Deploy?' } }]
  const graph = await mill.client.submit({ scope: 'graph', tasks })
  await mill.restart()
  await mill.client.approve({ ...graph, id: 'sure' }, { who: 'ada' })
  expect((await mill.client.wait(graph)).state).toBe('success')
})
