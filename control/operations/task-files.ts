/** Lists and opens the files of a task, which the runtime service has that ran the attempt. Changes nothing. */
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import { DirectoryListing } from '../../shared/contract/runtime.ts'
import type { TaskFileListing } from '../../shared/contract/task-files.ts'
import { RequestFault } from '../../shared/request/fault.ts'
import { checkFile, namesOfFile } from '../../shared/request/inputs.ts'
import { readBounded } from '../../shared/streams/bounded-output.ts'
import { jsonOrUndefined } from '../../shared/text/json.ts'
import type { FileRequest, OpenFile } from '../executors/executor.ts'
import { checkOf } from '../json/schema-check.ts'
import type { Reader } from './logs.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'

/** Files that callers read at the same time. Each has a connection to a runtime service. */
export const MAX_FILE_STREAMS = 64

/** Bytes of the list of a directory: a runtime service sends at most 1,000 entries. */
const MAX_LIST_BYTES = 4 * 1024 * 1024

let openFiles = 0

/** Throws `ServiceError`. */
export async function listFiles(
  parts: OperationParts,
  address: TaskAddress,
  asked: Pick<FileRequest, 'path' | 'attempt'>,
  reader: Reader,
): Promise<TaskFileListing> {
  const request = { ...asked, as: 'list', method: 'GET', headers: {} } as const
  const { attempt, stream } = await openFile(parts, address, request, reader)
  return { attempt, ...(await readListing(stream!)) }
}

/** Throws `ServiceError` for something else than the list of a directory. */
export async function readListing(stream: ReadableStream<Uint8Array>): Promise<DirectoryListing> {
  const { text } = await readBounded(stream, MAX_LIST_BYTES, { stopAtLimit: true })
  const listing = jsonOrUndefined(text)
  if (checkOf(DirectoryListing).accepts(listing)) return listing as DirectoryListing
  throw new ServiceError(503, 'the runtime service answered something else than the list of a directory')
}

/** A path with single slashes. Throws 400 if it does not lead below the workspace. */
export function pathIn(text: string): string {
  if (text === '') return ''
  try {
    checkFile('path', text)
    return namesOfFile(text).join('/')
  } catch (error) {
    throw error instanceof RequestFault ? badRequest(`invalid path: ${error.message}`) : error
  }
}

/** Throws `ServiceError`. The stream ends when `reader` is gone. */
export async function openFile(
  { store, executors }: OperationParts,
  address: TaskAddress,
  request: FileRequest,
  { signal, traceId }: Reader,
): Promise<OpenFile> {
  const task = knownTask(store, address)
  const { reused_from } = task.rare
  const executor = executors.get(task.type)
  if (executor?.openFile === undefined) {
    const remedy = 'run it as runtime.command or runtime.script'
    throw new ServiceError(409, `task ${task.id} has no files: it is of type ${task.type}, not runtime (${remedy})`)
  }
  if (reused_from !== undefined) {
    const source = `task ${reused_from.task_id} of graph ${reused_from.graph_id}`
    throw new ServiceError(409, `task ${task.id} took over the outcome of ${source}, which has the files`)
  }
  if (openFiles >= MAX_FILE_STREAMS)
    throw new ServiceError(503, `${MAX_FILE_STREAMS} files are being read already: try again later`)
  const release = takePlace(signal)
  try {
    const opened = await executor.openFile(task, request, { traceId, signal })
    if (opened.stream === undefined) release()
    return { ...opened, stream: opened.stream && releasing(opened.stream, release) }
  } catch (error) {
    release()
    throw error
  }
}

/** Returns a function that gives the place back. `signal` gives it back, too: nobody cancels a stream that is not sent. */
function takePlace(signal: AbortSignal): () => void {
  openFiles++
  let isTaken = true
  const release = () => {
    if (isTaken) openFiles--
    isTaken = false
    signal.removeEventListener('abort', release)
  }
  signal.addEventListener('abort', release)
  if (signal.aborted) release()
  return release
}

function releasing(stream: ReadableStream<Uint8Array>, release: () => void): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          controller.close()
          release()
        } catch (error) {
          release()
          throw error
        }
      },
      async cancel(reason) {
        release()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
