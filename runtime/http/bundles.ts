/** Files on their way to another runtime service: /api/v1/tasks/{id}/bundle and /api/v1/runtime/files. */
import type { AnyElysia } from 'elysia'
import { BUNDLE_TYPE, BundleSummary, isSha256, StagedFile, TAR_TYPE } from '../../shared/contract/file-bundles.ts'
import { anyText, choice, described, json, other } from '../../shared/http/openapi/route.ts'
import { bodyChunks } from '../../shared/http/request-body.ts'
import { WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import { WHOLE_WORKSPACE } from '../../shared/request/inputs.ts'
import { bundleStream, type Chunks } from '../files/bundle.ts'
import type { StagedFiles } from '../files/staged-files.ts'
import { invalidInput, Refusal } from '../refusal.ts'
import type { Bundles } from '../tasks/bundles.ts'
import { params, section } from './known-task.ts'
import { partAnswer } from './part-answer.ts'

export interface BundleRoutes {
  readonly bundles: Pick<Bundles, 'size' | 'digest' | 'chunks' | 'tar'>
  readonly staged: Pick<StagedFiles, 'use' | 'receive'>
}

const STAGED = '/api/v1/runtime/files'

/** Whether a body at this path may be larger than `--max-body-bytes`: it goes to disk as it comes. */
export const isOfBundle = (path: string): boolean => path.startsWith(`${STAGED}/`)

const ONLY = ['size', 'digest'] as const
const bundleFile = anyText('Path below the workspace. Default: all of it.')
const bundleErrors = {
  400: 'The path is malformed or not there, or the files are more than inputs of a task may have.',
  404: 'There is no such task, or it is being removed.',
  409: 'The task has not ended.',
}
const tarHeaders = { 'X-File-Bytes': 'Size of the tar.', ETag: 'Changes with the files.' }
const ofService = { section: 'The service', params: { sha256: 'SHA-256 of the bundle, in hexadecimal digits.' } }

export const addBundleRoutes = (app: AnyElysia, { bundles, staged }: BundleRoutes): AnyElysia =>
  app
    .get(
      '/api/v1/tasks/:id/bundle',
      async ({ params, query, request }): Promise<Response | BundleSummary> => {
        const source = { task_id: params.id, file: query.file ?? WHOLE_WORKSPACE }
        const only = onlyOf(query.only)
        // No limit: reading may take long, and a closed connection ends it.
        app.server?.timeout(request, 0)
        if (only === 'size' || request.method === 'HEAD') return await bundles.size(source, request.signal)
        if (only === 'digest') return await bundles.digest(source, request.signal)
        const headers = { 'content-type': BUNDLE_TYPE, 'x-content-type-options': 'nosniff' }
        return await streamed(bundles.chunks(source, request.signal), request.signal, { headers })
      },
      described({
        section,
        right: 'read',
        summary: 'Read files of a task as a bundle',
        description:
          'A file or a directory of an ended task, with its permissions, as one sequence of bytes. Another runtime service takes it with PUT /api/v1/runtime/files.',
        params,
        query: {
          file: bundleFile,
          only: choice(ONLY, 'Answer with the size of the bundle, or with its size and its hash.'),
        },
        answers: {
          200: { ...json(BundleSummary, 'The bundle, or what it has.'), otherType: BUNDLE_TYPE },
        },
        errors: bundleErrors,
      }),
    )
    .get(
      '/api/v1/tasks/:id/tar',
      async ({ params, query, request }): Promise<Response> => {
        const source = { task_id: params.id, file: query.file ?? WHOLE_WORKSPACE }
        app.server?.timeout(request, 0)
        const { bytes, version, chunks } = await bundles.tar(source, request.signal)
        const whole = { type: TAR_TYPE, size: bytes, version, shown: 'the tar' }
        const { status, headers, from, to } = partAnswer(request, whole)
        if (request.method === 'HEAD') return new Response(null, { status, headers })
        return await streamed(chunks(from, to), request.signal, { status, headers })
      },
      described({
        section,
        right: 'read',
        summary: 'Read files of a task as a tar',
        description:
          'The files and directories of a bundle, with their permissions, without owners and times. Accepts a Range of bytes. If the files change meanwhile, the connection breaks off.',
        params,
        query: { file: bundleFile },
        headers: {
          Range: 'A part of the tar: bytes=0-99, bytes=100-, bytes=-100.',
          'If-Range': 'The ETag of an earlier answer: the whole tar comes if the files have changed since.',
        },
        answers: {
          200: other(TAR_TYPE, 'The tar.', tarHeaders),
          206: other(TAR_TYPE, 'The part of the tar.', {
            'Content-Range': 'Which part of how many bytes.',
            ...tarHeaders,
          }),
        },
        errors: {
          ...bundleErrors,
          416: 'The tar has no such part.',
          503: 'The files changed while they were read: try again.',
        },
      }),
    )
    .get(
      `${STAGED}/:sha256`,
      ({ params }): StagedFile => {
        const sha256 = hashOf(params.sha256)
        const bytes = staged.use(sha256)
        if (bytes !== undefined) return { sha256, bytes }
        throw new Refusal('not_found', `there is no staged bundle ${sha256}`, { sha256 })
      },
      described({
        ...ofService,
        right: 'read',
        summary: 'Look for a staged bundle',
        description: 'The bundle counts as used now.',
        answers: { 200: json(StagedFile, 'It is there.') },
        errors: { 400: 'The hash is malformed.', 404: 'It is not there.' },
      }),
    )
    .put(
      `${STAGED}/:sha256`,
      async ({ params, request, set }): Promise<StagedFile> => {
        const sha256 = hashOf(params.sha256)
        const known = staged.use(sha256)
        if (known !== undefined) return { sha256, bytes: known }
        const { chunks, isAlive } = bodyChunks(app, request)
        const bytes = await staged.receive(sha256, chunks, isAlive)
        app.server?.timeout(request, WRITE_TIMEOUT_SECONDS)
        set.status = 201
        return { sha256, bytes }
      },
      described({
        ...ofService,
        right: 'submit',
        summary: 'Stage a bundle of another runtime service',
        description:
          'The body is the bundle. Answers once it is on disk, where it stays for --staged-retention-secs after its last use. A task takes it with inputs.<path>.staged.',
        bodyType: BUNDLE_TYPE,
        answers: {
          200: json(StagedFile, 'It was there already. The body was not read.'),
          201: json(StagedFile, 'It is staged.'),
        },
        errors: {
          400: 'The hash is malformed, or the body has another one.',
          413: 'The body has more than all inputs of a task may have.',
          429: 'All staged files have too many bytes (--max-staged-bytes).',
          503: 'The service cannot store it.',
        },
      }),
    )

function onlyOf(text: string | undefined): (typeof ONLY)[number] | undefined {
  const only = ONLY.find((known) => known === text)
  if (only !== undefined || text === undefined) return only
  throw invalidInput(`invalid only "${text}": expected ${ONLY.join(' or ')}`)
}

function hashOf(text: string): string {
  if (isSha256(text)) return text
  throw invalidInput('invalid sha256: expected 64 hexadecimal digits, in lower case')
}

/** Answers once the first chunk is there: what is refused before that gets its status. */
async function streamed(chunks: Chunks, signal: AbortSignal, init: ResponseInit): Promise<Response> {
  const first = await chunks.next()
  if (signal.aborted) await chunks.return() // nobody takes the stream, or cancels it
  return new Response(bundleStream(first, chunks), init)
}
