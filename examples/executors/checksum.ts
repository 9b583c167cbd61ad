/**
 * An example of a custom executor: checksums of files.
 *
 *     {"id": "sum", "type": "checksum", "tool_name": "sha256", "params": {"path": "a.tar", "expected": "9F86D0..."}}
 *
 * returns `{algorithm, checksum, size}`, or fails if the checksum differs from `expected`. The executor has several tools, so it
 * implements `executeMethod` in place of `execute`. It uses all three hooks, which leaves one loop for the execution.
 */
import { constants } from 'node:fs'
import { type Static, Type } from '@sinclair/typebox'
import {
  type ExecutableTask,
  ExecutionError,
  type ExecutorContext,
  invalidInput,
  type MethodExecutor,
} from '../../control/executors/executor.ts'
import { asExecutionError } from '../../control/executors/os/file.ts'
import type { FileRoot } from '../../control/executors/os/file-root.ts'
import { ToolParams } from '../../control/executors/params.ts'
import { systemCodeOf } from '../../shared/contract/errors.ts'

const ALGORITHMS = ['md5', 'sha1', 'sha256', 'sha512'] as const

const CHUNK_BYTES = 1024 * 1024

const checksumParams = new ToolParams(
  'checksum',
  Type.Object({
    path: Type.String({ missing: 'path is required', expected: 'string' }),
    expected: Type.Optional(Type.String({ pattern: '^[0-9a-fA-F]+$', expected: 'hexadecimal digits' })),
  }),
)
type Params = Static<typeof checksumParams.schema>

interface ChecksumResult {
  readonly algorithm: string
  readonly checksum: string
  /** Bytes. */
  readonly size: number
}

export class ChecksumExecutor implements MethodExecutor {
  readonly type = 'checksum'
  readonly #root: FileRoot

  /** `root` limits the readable files to those of file tasks. */
  constructor(root: FileRoot) {
    this.#root = root
  }

  /** Refuses bad parameters and normalizes good ones. */
  beforeExecute({ input }: ExecutableTask): { input: Params } {
    const { path, expected } = checksumParams.parse(input)
    return { input: { path, ...(expected !== undefined && { expected: expected.toLowerCase() }) } }
  }

  async executeMethod(method: string, task: ExecutableTask, { signal }: ExecutorContext): Promise<ChecksumResult> {
    const algorithm = ALGORITHMS.find((name) => name === method)
    if (algorithm === undefined)
      throw invalidInput(`unknown algorithm "${method}" (supported: ${ALGORITHMS.join(', ')})`)
    await using file = await this.#root.open((task.input as Params).path, constants.O_RDONLY)
    const hash = new Bun.CryptoHasher(algorithm)
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    let size = 0
    for (;;) {
      if (signal.aborted) throw new ExecutionError('cancelled', 'checksum was ended')
      const { bytesRead } = await file.read(chunk)
      if (bytesRead === 0) return { algorithm, checksum: hash.digest('hex'), size }
      hash.update(chunk.subarray(0, bytesRead))
      size += bytesRead
    }
  }

  /** A checksum other than the expected one fails the task. The task keeps the result. */
  afterExecute({ input }: ExecutableTask, result: unknown): void {
    const { path, expected } = input as Params
    const { checksum } = result as ChecksumResult
    if (expected === undefined || expected === checksum) return
    const message = `${path} has the checksum ${checksum}, expected ${expected}`
    throw new ExecutionError('external_failure', message, { result })
  }

  /** Maps system errors to error codes: `ENOENT` becomes `not_found`. Other errors stay as they are. */
  onError({ input }: ExecutableTask, error: unknown): void {
    if (systemCodeOf(error) !== undefined) throw asExecutionError(error, 'checksum', (input as Params).path)
  }
}
