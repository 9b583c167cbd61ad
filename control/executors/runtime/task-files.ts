/**
 * Opens files of attempts at the runtime services that have them.
 *
 * An answer is handed on as fast as the caller takes it. If the runtime service is silent for too long, the answer breaks.
 */
import { ServiceError } from '../../../shared/contract/errors.ts'
import { DEFAULT_RUNTIME } from '../../../shared/contract/runtime-names.ts'
import { CallFailed } from '../../../shared/http/client.ts'
import { WHOLE_WORKSPACE } from '../../../shared/request/inputs.ts'
import type { DelegatedTask, FileRequest, OpenFile } from '../executor.ts'
import { isOfService, lacksRoute, refusedText } from './outcome.ts'
import type { RuntimePool } from './pool.ts'
import type { PoolMember } from './pool-member.ts'
import { WALK_TIMEOUT_MS } from './service.ts'
import { runtimeTaskId } from './task-id.ts'

/** Milliseconds without a byte of a runtime service after which an answer is broken off. */
export const FILE_STALL_MS = 30_000

interface Call {
  readonly traceId: string
  readonly signal: AbortSignal
}

/** An attempt, and the task that it is in the runtime service. */
interface Place {
  readonly attempt: number
  readonly id: string
  readonly member: PoolMember
}

/** Throws `ServiceError`. */
export async function openTaskFile(
  pool: Pick<RuntimePool, 'get'>,
  task: DelegatedTask,
  request: FileRequest,
  { traceId, signal }: Call,
  stallMs = FILE_STALL_MS,
): Promise<OpenFile> {
  const { id, member, attempt } = placeOf(pool, task, request.attempt)
  const { path, as, method, headers } = request
  const silence = new AbortController()
  const ends = AbortSignal.any([signal, silence.signal])
  const inTime = async <T>(answer: Promise<T>, ms = stallMs): Promise<T> => {
    const fault = new Error(`no byte for ${ms} ms`)
    const timer = setTimeout(() => silence.abort(fault), ms)
    try {
      return await answer
    } finally {
      clearTimeout(timer)
    }
  }
  try {
    let answer = await inTime(member.service.openFile(id, path, { method, headers }, traceId, ends))
    const isDirectory = answer.headers.get('content-type')?.startsWith('application/json') === true
    if (as === 'list' && !isDirectory) {
      await answer.stream?.cancel()
      throw new ServiceError(400, `${path} is a file: read it below files/`)
    }
    if (as === 'bytes' && isDirectory) {
      await answer.stream?.cancel()
      const files = { task_id: id, file: path === '' ? WHOLE_WORKSPACE : path }
      answer = await inTime(member.service.openTar(files, { method, headers }, traceId, ends), WALK_TIMEOUT_MS)
    }
    const { status, stream } = answer
    return { attempt, status, headers: answer.headers, stream: stream && timely(stream, inTime) }
  } catch (error) {
    throw error instanceof CallFailed ? refusalOf(error, { task, attempt, member, method }) : error
  }
}

/** Where an attempt was. Records of attempts say where earlier ones were. */
function placeOf(pool: Pick<RuntimePool, 'get'>, task: DelegatedTask, asked: number | undefined): Place {
  const { handle, attempts = [] } = task.rare
  const attempt = asked ?? task.attempt
  if (attempt === 0) throw new ServiceError(409, `task ${task.id} has not started, so it has no files yet`)
  if (attempt > task.attempt) throw new ServiceError(404, `task ${task.id} has had ${task.attempt} attempts`)
  if (attempt === task.attempt && handle?.isTaken !== true) {
    const remedy = attempt > 1 ? ' (attempt= reads those of an earlier one)' : ''
    throw new ServiceError(409, `attempt ${attempt} of task ${task.id} is at no runtime service: no files${remedy}`)
  }
  const isLast = attempt === task.attempt
  const id = isLast ? handle!.id : runtimeTaskId(task.id, task.graph.id, attempt)
  const record = attempts.find((each) => each.attempt === attempt)
  const name = (isLast ? handle!.runtime : record?.placed_on) ?? DEFAULT_RUNTIME
  const member = pool.get(name)
  if (member !== undefined) return { attempt, id, member }
  const message = `the files of attempt ${attempt} of task ${task.id} are at runtime ${name}, which is not in the pool: add it again with POST /runtimes`
  throw new ServiceError(404, message)
}

interface Asked {
  readonly task: DelegatedTask
  readonly attempt: number
  readonly member: PoolMember
  readonly method: FileRequest['method']
}

function refusalOf(error: CallFailed, { task, attempt, member, method }: Asked): ServiceError {
  const { statusCode, contentRange } = error
  const isPassedOn = statusCode >= 400 && statusCode < 500 && statusCode !== 401 && statusCode !== 429
  const from = `runtime ${member.name}`
  if (!isPassedOn || (method === 'GET' && !isOfService(error)))
    return new ServiceError(503, `cannot read the files of task ${task.id} from ${from}: ${error.message}`)
  if (lacksRoute(error))
    return new ServiceError(409, `${from} is too old to give a directory as tar: update it, or read single files`)
  const text = refusedText(error) ?? error.message
  const isTaskGone = statusCode === 404 && /^(task not found: |there is no task )/.test(text)
  if (!isTaskGone)
    return new ServiceError(statusCode, text, {
      headers: contentRange === undefined ? {} : { 'content-range': contentRange },
    })
  const remedy = 'run the task again; --result-retention-secs of the runtime service says how long it keeps them'
  return new ServiceError(404, `${from} no longer has the files of attempt ${attempt} of task ${task.id}: ${remedy}`)
}

/** The same stream, whose next part comes `inTime`. */
function timely(
  stream: ReadableStream<Uint8Array>,
  inTime: <T>(answer: Promise<T>) => Promise<T>,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await inTime(reader.read())
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason).catch(() => {}),
    },
    { highWaterMark: 0 },
  )
}
