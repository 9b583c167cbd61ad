/** The tool `file`: read, write, append, delete, stat. */
import { constants, type Stats } from 'node:fs'
import { type FileHandle, rmdir, stat, unlink } from 'node:fs/promises'
import { basename, normalize } from 'node:path'
import type { Static } from '@sinclair/typebox'
import { messageOf, systemCodeOf } from '../../../shared/contract/errors.ts'
import { Type } from '../../../shared/contract/schema-builder.ts'
import { textOf } from '../../../shared/streams/bounded-output.ts'
import { ExecutionError, invalidInput, throwIfStopped } from '../executor.ts'
import { ToolParams } from '../params.ts'
import type { FileRoot } from './file-root.ts'
import type { OsTool } from './os.ts'

/** Maximum bytes of a read, which go into the result of the task. */
export const MAX_READ_BYTES = 16 * 1024 * 1024

const ACTIONS = ['read', 'write', 'append', 'delete', 'stat'] as const
type Action = (typeof ACTIONS)[number]

const unknownAction = (action: string) => `unknown action "${action}" (supported: ${ACTIONS.join(', ')})`

export const fileParams = new ToolParams(
  'file',
  Type.Object({
    path: Type.String({
      missing: 'path is required',
      expected: 'string',
      minLength: 1,
      description: 'Relative to the file root (default: the working directory of the service).',
      examples: ['notes/today.md'],
    }),
    action: Type.String({
      missing: unknownAction(''),
      expected: 'string',
      enum: ACTIONS, // documents the values; the tool itself refuses others
      description: 'What to do. write replaces the content; write and append make directories as needed.',
    }),
    content: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'Text for write and append. Default empty.',
        examples: ['first line\n'],
      }),
    ),
  }),
)

export const file = (root: FileRoot): OsTool => ({
  name: 'file',
  params: fileParams,
  checkInput: (input) => root.check(parsed(input).path),
  async execute(input, context) {
    const params = parsed(input)
    const { action } = params
    await context.begin()
    throwIfStopped(context, `${action} was not begun any more`)
    try {
      return await actions[action](root, params)
    } catch (error) {
      throw asExecutionError(error, action, params.path)
    }
  },
})

function parsed(input: unknown): Params & { readonly action: Action } {
  const params = fileParams.parse(input)
  const { action } = params
  if (!isAction(action)) throw invalidInput(unknownAction(action))
  return { ...params, action }
}

const isAction = (action: string): action is Action => (ACTIONS as readonly string[]).includes(action)

type Params = Static<typeof fileParams.schema>

const { O_APPEND, O_CREAT, O_RDONLY, O_WRONLY } = constants

const actions: Readonly<Record<Action, (root: FileRoot, params: Params) => Promise<unknown>>> = {
  read: (root, { path }) => using(root.open(path, O_RDONLY), (handle) => readText(handle, path)),

  // Truncate only after the opened file was checked to be inside the root.
  write: (root, { path, content = '' }) =>
    using(root.open(path, O_WRONLY | O_CREAT), async (handle) => {
      await handle.truncate(0)
      return writeText(handle, content)
    }),

  append: (root, { path, content = '' }) =>
    using(root.open(path, O_WRONLY | O_CREAT | O_APPEND), (handle) => writeText(handle, content)),

  async delete(root, { path }) {
    const entry = await root.locateEntry(path)
    try {
      await unlink(entry)
    } catch (error) {
      if (!['EISDIR', 'EPERM'].includes(systemCodeOf(error) ?? '')) throw error
      await rmdir(entry) // deletes an empty directory
    }
    return { deleted: true }
  },

  async stat(root, { path }) {
    const found = await stat(await root.locate(path))
    return {
      name: basename(normalize(path)) || '/',
      size: found.size,
      mode: modeText(found),
      mod_time: found.mtime.toISOString(),
      is_dir: found.isDirectory(),
    }
  },
}

async function using<T>(opening: Promise<FileHandle>, work: (handle: FileHandle) => Promise<T>): Promise<T> {
  const handle = await opening
  try {
    return await work(handle)
  } finally {
    await handle.close()
  }
}

async function readText(handle: FileHandle, path: string): Promise<{ content: string; size: number }> {
  const chunks: Buffer[] = []
  let size = 0
  for (;;) {
    // Files in /proc report size 0, so count the bytes read.
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(64 * 1024))
    if (bytesRead === 0) break
    chunks.push(buffer.subarray(0, bytesRead))
    size += bytesRead
    if (size > MAX_READ_BYTES) {
      throw new ExecutionError('resource_limit_exceeded', `read ${path}: larger than ${MAX_READ_BYTES} bytes`)
    }
  }
  return { content: textOf(Buffer.concat(chunks, size), false), size }
}

async function writeText(handle: FileHandle, content: string): Promise<{ bytes_written: number }> {
  const bytes = Buffer.from(content)
  for (let written = 0; written < bytes.length; ) {
    written += (await handle.write(bytes, written, bytes.length - written)).bytesWritten
  }
  return { bytes_written: bytes.length }
}

/** The mode in the format of `ls -l`, without setuid, setgid and sticky bits: `-rw-r--r--`. */
export function modeText(found: Stats): string {
  const kind = KINDS[found.mode & constants.S_IFMT] ?? '?'
  const bits = [6, 3, 0].map((shift) => {
    const three = (found.mode >> shift) & 7
    return `${three & 4 ? 'r' : '-'}${three & 2 ? 'w' : '-'}${three & 1 ? 'x' : '-'}`
  })
  return kind + bits.join('')
}

const KINDS: Readonly<Record<number, string>> = {
  [constants.S_IFREG]: '-',
  [constants.S_IFDIR]: 'd',
  [constants.S_IFLNK]: 'l',
  [constants.S_IFCHR]: 'c',
  [constants.S_IFBLK]: 'b',
  [constants.S_IFIFO]: 'p',
  [constants.S_IFSOCK]: 's',
}

const FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
  ENOTDIR: 'a part of the path is not a directory',
  ENOTEMPTY: 'the directory is not empty',
  ENOSPC: 'no space left on device',
  ELOOP: 'too many symbolic links',
  ENXIO: 'not a regular file',
  ENAMETOOLONG: 'the name is too long',
}

export function asExecutionError(error: unknown, action: string, path: string): ExecutionError {
  if (error instanceof ExecutionError) return error
  const code = systemCodeOf(error) ?? ''
  const kind = code === 'ENOENT' ? 'not_found' : 'external_failure'
  return new ExecutionError(kind, `${action} ${path}: ${FAULTS[code] ?? messageOf(error)}`, { cause: error })
}
