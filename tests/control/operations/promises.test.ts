/**
 * Goal: a cancel or a delete is on disk before it is answered, and is refused before anything changes when the disk takes
 * nothing. Method: the real store and scheduler with a disk that is told when to sync and whether to refuse.
 */
import { expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { cancelTask, cancelTasks } from '../../../control/operations/cancel.ts'
import { deleteTask, MAX_UNCERTAIN_DELETIONS } from '../../../control/operations/delete.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { operationParts } from '../../support/operation-parts.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'

function world() {
  const store = new TaskStore()
  const scheduler = new Scheduler({
    ...{ store, executors: new ExecutorRegistry([new ScriptedExecutor()]), log: silentLog(), maxConcurrency: 3 },
    ...{ abandonAfterMs: 60_000, serviceId: 'test', keeper: memoryKeeper() },
  })
  acceptGraph(store, [{ id: 'a', type: 'test' }])
  const asked = Promise.withResolvers<void>()
  const synced = Promise.withResolvers<void>()
  const disk = { isFull: false }
  const keeper = {
    assertWritableWithReserve() {
      if (disk.isFull) throw new ServiceError(503, 'the disk is full')
    },
    kept() {
      asked.resolve()
      return synced.promise
    },
  }
  return {
    parts: operationParts({ store, scheduler, keeper }),
    disk,
    asked: asked.promise,
    sync: () => synced.resolve(),
    fail: (error: ServiceError) => synced.reject(error),
  }
}
type World = ReturnType<typeof world>

const PROMISES: Readonly<Record<string, (parts: World['parts'], id: string) => Promise<unknown>>> = {
  'a cancel': (parts, id) => cancelTask(parts, { id }, undefined),
  'a cancel of several': (parts, id) => cancelTasks(parts, { task_ids: [id] }, undefined),
  'a delete': (parts, id) => deleteTask(parts, { id }),
}

test.each(Object.keys(PROMISES))('%s is answered once it is on disk', async (name) => {
  const { parts, asked, sync } = world()
  let isAnswered = false
  const answer = PROMISES[name]!(parts, 'a').then(() => {
    isAnswered = true
  })
  await asked
  await nextTurn()
  expect(isAnswered).toBe(false)
  sync()
  await answer
})

test('a delete that is repeated gets 404 once the first one is on disk, and 503 if nobody can tell', async () => {
  const { parts, asked, sync } = world()
  let isSynced = false
  const first = deleteTask(parts, { id: 'a' })
  await asked
  const again = deleteTask(parts, { id: 'a' }).catch((error) => [isSynced, error.status])
  await nextTurn()
  isSynced = true
  sync()
  await first
  expect(await again).toEqual([true, 404])
  await expect(deleteTask(parts, { id: 'a' })).rejects.toMatchObject({ status: 404 })

  const broken = world()
  broken.fail(new ServiceError(503, 'this was done, but a crash may undo it'))
  await expect(deleteTask(broken.parts, { id: 'a' })).rejects.toMatchObject({ status: 503 })
  await expect(deleteTask(broken.parts, { id: 'a' })).rejects.toMatchObject({ status: 503 })

  // No more than MAX_UNCERTAIN_DELETIONS are remembered.
  const others = Array.from({ length: MAX_UNCERTAIN_DELETIONS }, (_, i) => ({ id: `other-${i}`, type: 'test' }))
  acceptGraph(broken.parts.store, others)
  for (const { id } of others) await deleteTask(broken.parts, { id }).catch(() => {})
  await expect(deleteTask(broken.parts, { id: 'a' })).rejects.toMatchObject({ status: 404 })
  await expect(deleteTask(broken.parts, others.at(-1)!)).rejects.toMatchObject({ status: 503 })
})

test.each(Object.keys(PROMISES))('%s that the disk does not take changes nothing', async (name) => {
  const { parts, disk } = world()
  disk.isFull = true
  const before = parts.store.seq
  await expect(PROMISES[name]!(parts, 'a')).rejects.toMatchObject({ status: 503 })
  expect(parts.store.seq).toBe(before)
})

test.each(Object.keys(PROMISES))('%s of an unknown task is a 404, whatever the disk', async (name) => {
  const { parts, disk } = world()
  disk.isFull = true
  await expect(PROMISES[name]!(parts, 'nobody')).rejects.toMatchObject({
    status: 404,
    message: 'task not found: nobody',
  })
})
