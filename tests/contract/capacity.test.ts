/** Goal: GET /runtime tells how much executes, how much may, and whether the runtime service is there. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { CapacityResponse } from '../../shared/contract/capacity.ts'
import { checkedAnswer } from '../support/answer-check.ts'
import { type Control, startControl } from '../support/control.ts'
import { startPair } from '../support/pair.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

setDefaultTimeout(120_000)

const capacityOf = async (control: Control): Promise<CapacityResponse> => {
  const response = await control.fetch('/runtime')
  expect(response.status).toBe(200)
  return checkedAnswer<CapacityResponse>(CapacityResponse, await response.json())
}

test('slots in use, and tasks that wait for one', async () => {
  await using control = await startControl({ flags: ['--max-concurrency', '2'] })
  using gate = new Gate()
  expect((await capacityOf(control)).slots).toEqual({ used: 0, count: 2, queued: 0 })
  await control.submit(['a', 'b', 'c'].map((id) => gate.task(id)))
  await control.reached('b', 'running')
  expect((await capacityOf(control)).slots).toEqual({ used: 2, count: 2, queued: 1 })
  gate.open()
  await control.allEnded()
  expect((await capacityOf(control)).slots).toEqual({ used: 0, count: 2, queued: 0 })
})

test('capacity and reservations of the runtime service, and since when it is away', async () => {
  await using pair = await startPair()
  const { control } = pair
  const runtimeNow = async () => (await capacityOf(control)).runtime
  const idle = await until(runtimeNow, ({ state }) => state === 'ready')
  expect(idle).toMatchObject({ state: 'ready', reserved: { task_slots: 0 }, queued: 0 })
  expect(idle.capacity!.task_slots).toBeGreaterThan(0)
  expect(idle.away_since).toBeUndefined()
  const input = { execution: { kind: 'command', program: '/bin/sleep', args: ['600'] }, limits: { memory_bytes: 1e8 } }
  await control.submit([{ id: 'held', type: 'runtime', input }])
  const busy = await until(runtimeNow, ({ reserved }) => reserved?.task_slots === 1)
  expect(busy.reserved!.memory_bytes).toBe(1e8)
  await control.fetch('/tasks/held/cancel', { method: 'POST' })
  await control.ended('held')
  await pair.stopRuntime('SIGKILL')
  const before = Date.now()
  const away = await until(runtimeNow, ({ state }) => state === 'away')
  expect(Date.parse(away.away_since!)).toBeGreaterThan(before - 120_000)
  expect(away.reason).toContain(pair.runtimeUrl)
  expect(away.capacity).toBeUndefined()
  await pair.startRuntime()
  const back = await until(runtimeNow, ({ state }) => state === 'ready')
  expect(back.away_since).toBeUndefined()
})
