/**
 * /tasks/{id}/files: what a runtime task has in its workspace. The same below /graphs/{id}. What a task wrote is sent as an
 * attachment that no browser interprets.
 */
import type { AnyElysia } from 'elysia'
import { badRequest } from '../../shared/contract/errors.ts'
import { TAR_TYPE } from '../../shared/contract/file-bundles.ts'
import { TaskFileListing } from '../../shared/contract/task-files.ts'
import { anyText, described, json, other, type QueryOf, wholeNumber } from '../../shared/http/openapi/route.ts'
import { pathOf } from '../../shared/http/request-url.ts'
import { traceIdOf } from '../../shared/http/service.ts'
import type { OpenFile } from '../executors/executor.ts'
import { listFiles, openFile, pathIn } from '../operations/task-files.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import type { StreamLimits } from './stream-limits.ts'
import { TASK_PLACES, type TaskPlace } from './task-places.ts'

const attemptQuery = {
  attempt: wholeNumber(1, Number.MAX_SAFE_INTEGER, 'An attempt, if its files are still there. Default: the last one.'),
}

const listQuery = { path: anyText('Directory below the workspace. Default: the workspace.'), ...attemptQuery }

/** Headers of an answer that come from the runtime service. */
const PASSED_ON = ['accept-ranges', 'content-range', 'etag', 'x-file-bytes']

const headersOfAnswer = {
  'X-Task-Attempt': 'The attempt whose file it is.',
  'X-File-Bytes': 'Size of the file, or of the tar of a directory.',
  ETag: 'Changes with the content of the file, or with the files of the directory.',
}

export function addFileRoutes(app: AnyElysia, partsFor: PartsFor, limits: StreamLimits): void {
  for (const place of TASK_PLACES) addRoutes(app, partsFor, limits, place)
}

function addRoutes(
  app: AnyElysia,
  partsFor: PartsFor,
  { slowClientMs }: StreamLimits,
  { path, noun, params, errors: ofPlace, addressIn }: TaskPlace,
): void {
  const errors = {
    400: 'A parameter or the path is invalid.',
    404: `${ofPlace[404]} Or there is no such file, the path has a symlink, or the runtime service no longer has the files.`,
    409: `${ofPlace[409]} Or the task has no files, a directory is read before its end, or a program has a lease on the file.`,
    503: `${ofPlace[503]} Or the runtime service does not answer, or too many files are being read.`,
  }
  const read = async (address: ReturnType<typeof addressIn>, rest: string, query: AttemptQuery, call: Call) => {
    const { request, traceId } = call
    const { signal, method } = request
    const path = pathIn(rest.split('/').map(decodeURIComponent).join('/'))
    const file = await openFile(
      partsFor(request),
      address,
      {
        ...{ path, as: 'bytes', attempt: attemptOf(query), headers: rangeOf(request) },
        method: method === 'HEAD' ? 'HEAD' : 'GET',
      },
      { traceId, signal },
    )
    return fileResponse(file, path, {
      waits: () => app.server?.timeout(request, 0), // the reading has a limit of its own
      takes: () => app.server?.timeout(request, Math.ceil(slowClientMs / 1_000)),
    })
  }
  app
    .get(
      `${path}/files`,
      async ({ params, query, request, set }) => {
        const call = { request, traceId: traceIdOf(set) }
        const { signal } = request
        if (pathOf(request).endsWith('/')) return read(addressIn(params), '', query, call)
        const asked = { path: pathIn(query.path ?? ''), attempt: attemptOf(query) }
        return listFiles(partsFor(request), addressIn(params), asked, { traceId: call.traceId, signal })
      },
      described({
        section: 'Tasks',
        right: 'read',
        summary: `List the files of ${noun}`,
        description: 'A directory of the workspace of a runtime task, as it is now, also while the task runs.',
        params,
        query: listQuery,
        answers: { 200: json(TaskFileListing, 'What is in the directory, by name.') },
        errors,
      }),
    )
    .get(
      `${path}/files/*`,
      ({ params, query, request, set }) =>
        read(addressIn(params), restOf(pathOf(request)), query, { request, traceId: traceIdOf(set) }),
      described({
        section: 'Tasks',
        right: 'read',
        summary: `Read a file of ${noun}`,
        description:
          'The bytes of a file, also while the task runs, or of a directory as a tar once the task has ended. No symlink is followed.',
        params: { ...params, path: 'Path below the workspace. Its slashes are not escaped. Empty for the workspace.' },
        query: attemptQuery,
        headers: {
          Range: 'A part of a file or of a tar: bytes=0-99, bytes=100-, bytes=-100.',
          'If-Range': 'The ETag of an earlier answer: all of it comes if it has changed since.',
        },
        answers: {
          200: { ...other('application/octet-stream', 'The file.', headersOfAnswer), otherType: TAR_TYPE },
          206: {
            ...other('application/octet-stream', 'The part of it.', {
              'Content-Range': 'Which part of how many bytes.',
              ...headersOfAnswer,
            }),
            otherType: TAR_TYPE,
          },
        },
        errors: {
          ...errors,
          403: 'The runtime service may not read the file, or it holds a secret.',
          413: 'The file is larger than 1 GiB: ask for parts of it.',
          416: 'It has no such part.',
        },
      }),
    )
}

type AttemptQuery = QueryOf<typeof attemptQuery>

interface Call {
  readonly request: Request
  readonly traceId: string
}

interface Patience {
  waits(): void
  takes(): void
}

/** The rest of the path after `files/`. */
const restOf = (path: string): string =>
  /^(?:\/tasks\/[^/]*|\/graphs\/[^/]*\/tasks\/[^/]*)\/files\/(.*)$/.exec(path)?.[1] ?? '..'

function attemptOf({ attempt }: AttemptQuery): number | undefined {
  if (attempt === undefined) return undefined
  const number = /^\d{1,16}$/.test(attempt) ? Number(attempt) : 0
  if (number > 0 && number <= Number.MAX_SAFE_INTEGER) return number
  throw badRequest(`invalid attempt ${JSON.stringify(attempt)}: expected a whole number from 1 on`)
}

function rangeOf({ headers }: Request): Record<string, string> {
  const names = ['range', 'if-range'].filter((name) => headers.has(name))
  return Object.fromEntries(names.map((name) => [name, headers.get(name)!]))
}

function fileResponse({ attempt, status, headers, stream }: OpenFile, path: string, patience: Patience): Response {
  const isTar = headers.get('content-type') === TAR_TYPE
  const name = `${path.slice(path.lastIndexOf('/') + 1) || 'workspace'}${isTar ? '.tar' : ''}`
  const answered: Record<string, string> = {
    'content-type': isTar ? TAR_TYPE : 'application/octet-stream',
    'content-disposition': `attachment; filename*=UTF-8''${escaped(name)}`,
    'content-security-policy': "sandbox; default-src 'none'",
    'x-content-type-options': 'nosniff',
    'x-task-attempt': String(attempt),
  }
  for (const name of PASSED_ON) if (headers.has(name)) answered[name] = headers.get(name)!
  if (stream === undefined) return new Response(null, { status, headers: answered })
  return new Response(patient(stream, patience), { status, headers: answered })
}

const escaped = (name: string): string =>
  encodeURIComponent(name).replace(/['()*!]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)

function patient(stream: ReadableStream<Uint8Array>, patience: Patience): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        patience.waits()
        const { done, value } = await reader.read()
        patience.takes()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
