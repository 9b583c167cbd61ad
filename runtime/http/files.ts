/** /api/v1/tasks/{id}/files: what is in the workspace of a task. */
import { closeSync } from 'node:fs'
import type { AnyElysia } from 'elysia'
import { DirectoryListing } from '../../shared/contract/runtime.ts'
import { described, json, other } from '../../shared/http/openapi/route.ts'
import { pathOf } from '../../shared/http/request-url.ts'
import { DirectoryLists } from '../files/directory-list.ts'
import { fileStream } from '../files/file-stream.ts'
import { taskDir } from '../files/task-dir.ts'
import { isName, openInWorkspace, type WorkspaceEntry } from '../files/workspace-path.ts'
import { invalidInput, Refusal } from '../refusal.ts'
import type { TaskStore } from '../store/task-store.ts'
import { knownTask, params, section, unknownTask } from './known-task.ts'
import { partAnswer } from './part-answer.ts'

/** Bytes of one answer. A larger file is read in ranges. */
const MAX_ANSWER_BYTES = 1024 ** 3

export interface FileRoutes {
  readonly store: TaskStore
  /** Absolute. */
  readonly dataDir: string
}

const BASE = '/api/v1/tasks/:id/files'

const fileHeaders = { 'X-File-Bytes': 'Size of the file.', ETag: 'Changes with the content of the file.' }

export const addFileRoutes = (app: AnyElysia, { store, dataDir }: FileRoutes): AnyElysia => {
  const lists = new DirectoryLists()
  const answer = async (id: string, request: Request, path: string): Promise<Response | DirectoryListing> => {
    const { task_id } = knownTask(store, id)
    const names = namesOf(path)
    const shown = names.join('/')
    if (store.liveTask(task_id)?.secretFiles.some((file) => file.join('/') === shown)) throw holdsSecret(shown)
    const entry = opened(openInWorkspace(taskDir(dataDir, task_id), names), shown)
    if (entry.kind === 'file') {
      // No limit: each chunk that the caller takes keeps the connection alive, and a closed connection ends the answer.
      app.server?.timeout(request, 0)
      return fileAnswer(entry, request, shown)
    }
    return await directoryAnswer(lists, entry.fd, shown)
  }
  return app
    .get(
      BASE,
      ({ params, request }) => answer(params.id, request, ''),
      described({
        section,
        right: 'read',
        summary: 'List the workspace of a task',
        params,
        answers: { 200: json(DirectoryListing, 'What is in the workspace now, by name.') },
        errors: unknownTask,
      }),
    )
    .get(
      `${BASE}/*`,
      ({ params, request }) => answer(params.id, request, restOf(pathOf(request))),
      described({
        section,
        right: 'read',
        summary: 'Read a file of a task',
        description:
          'A file or a directory of the workspace, as it is now, also while the task runs. Follows no symlinks. Accepts a Range of bytes.',
        params: { ...params, path: 'Path below the workspace. Its slashes are not escaped.' },
        headers: {
          Range: 'A part of the file: bytes=0-99, bytes=100-, bytes=-100.',
          'If-Range': 'The ETag of an earlier answer: the whole file comes if it has changed since.',
        },
        answers: {
          200: {
            ...json(DirectoryListing, 'The bytes of a file, or what is in a directory.'),
            otherType: 'application/octet-stream',
            headers: fileHeaders,
          },
          206: other('application/octet-stream', 'The part of a file.', {
            'Content-Range': 'Which part of how many bytes.',
            ...fileHeaders,
          }),
        },
        errors: {
          400: 'The path is malformed.',
          403: 'The service may not read the file, or it holds a secret.',
          404: 'There is no such task, no such file, or the path has a symlink.',
          409: 'A program has a lease on the file: try again in a minute.',
          413: 'The file is larger than 1 GiB: ask for parts of it.',
          416: 'The file has no such part.',
        },
      }),
    )
}

/** The rest of the path after `files/`. The server has resolved `.` and `..`, also escaped ones. */
const restOf = (path: string): string => /^\/api\/v1\/tasks\/[^/]*\/files\/(.*)$/.exec(path)?.[1] ?? '..'

function namesOf(path: string): string[] {
  if (path === '') return []
  const names = path.replace(/\/$/, '').split('/').map(decodeURIComponent)
  const wrong = names.find((name) => !isName(name))
  if (wrong === undefined) return names
  throw invalidInput(`invalid path ${JSON.stringify(path)}: ${JSON.stringify(wrong)} is no name of a file`)
}

type Opened = Extract<WorkspaceEntry, { fd: number }>

function opened(entry: WorkspaceEntry, path: string): Opened {
  switch (entry.kind) {
    case 'missing':
      throw noSuchFile(path)
    case 'symlink':
      throw new Refusal('not_found', `a symlink, which is not followed: ${path}`)
    case 'other':
      throw new Refusal('not_found', `neither a file nor a directory: ${path}`)
    case 'leased':
      throw new Refusal('conflict', `a program has a lease on this file: try again in a minute: ${path}`)
    case 'closed':
      throw new Refusal('permission_denied', `the service may not read this file of the task: ${path}`)
    default:
      return entry
  }
}

/** HEAD gets no stream: Elysia would read all of it to count its bytes. */
function fileAnswer(
  { fd, size, version }: Extract<Opened, { kind: 'file' }>,
  request: Request,
  path: string,
): Response {
  let isTaken = false
  try {
    const whole = { type: 'application/octet-stream', size, version, shown: path }
    const { status, headers, from, to } = partAnswer(request, whole)
    if (to - from > MAX_ANSWER_BYTES) throw tooLarge(path, to - from)
    if (request.method === 'HEAD') return new Response(null, { status, headers })
    isTaken = true
    return new Response(fileStream(fd, from, to), { status, headers })
  } finally {
    if (!isTaken) closeSync(fd)
  }
}

async function directoryAnswer(lists: DirectoryLists, fd: number, path: string): Promise<DirectoryListing> {
  try {
    const list = await lists.list(fd)
    if (list === undefined) throw noSuchFile(path)
    return { path, ...list }
  } finally {
    closeSync(fd)
  }
}

const noSuchFile = (path: string) => new Refusal('not_found', `no such file in the workspace: ${path || '.'}`)

const holdsSecret = (path: string) => new Refusal('permission_denied', `this file of the task holds a secret: ${path}`)

const tooLarge = (path: string, bytes: number) =>
  new Refusal(
    'payload_too_large',
    `${path}: ${bytes} bytes (at most ${MAX_ANSWER_BYTES} in one answer: ask for parts of it with Range)`,
  )
