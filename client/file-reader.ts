/** Files of runtime tasks: their bytes over lost connections, and saved to the disk. */
import { type FileFacts, type FilePiece, resumedFile } from '../shared/streams/resumed-file.ts'
import { type SavedFile, saveFile } from '../shared/streams/saved-file.ts'
import type { Connection } from './connection.ts'
import { queryText } from './connection.ts'
import { TaskmillError } from './errors.ts'
import { Outage } from './outage.ts'

export interface FileOptions {
  /** Default: the last attempt. */
  readonly attempt?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ReadFileOptions extends FileOptions {
  /** Called before the first piece, and again if the file has changed: it is then read from its first byte. */
  readonly onBegin?: ((facts: FileFacts) => void) | undefined
}

export interface SaveFileOptions extends FileOptions {
  /** Called as bytes arrive. `total` is undefined if the service does not tell it. */
  readonly onProgress?: ((bytes: number, total: number | undefined) => void) | undefined
}

export const readTaskFile = (
  connection: Connection,
  task: string,
  path: string,
  { onBegin = () => {}, ...options }: ReadFileOptions,
): AsyncGenerator<FilePiece, void> =>
  resumedFile(connection, { ...requestOf(connection, task, path, options), onBegin })

export function saveTaskFile(
  connection: Connection,
  task: string,
  path: string,
  to: string,
  { onProgress = () => {}, ...options }: SaveFileOptions,
): Promise<SavedFile> {
  const request = requestOf(connection, task, path, options)
  return saveFile(connection, { ...request, to, onProgress, name: namesOf(path).at(-1) ?? 'workspace' })
}

function requestOf(connection: Connection, task: string, path: string, { attempt, signal }: FileOptions) {
  const names = namesOf(path).map(encodeURIComponent).join('/')
  return {
    path: `${task}/files/${names}${queryText({ attempt })}`,
    patience: new Outage(connection, signal),
    statusOf: (error: unknown) => (error instanceof TaskmillError ? error.status : undefined),
    signal: signal ?? new AbortController().signal,
  }
}

const namesOf = (path: string): string[] => path.split('/').filter((name) => name !== '' && name !== '.')
