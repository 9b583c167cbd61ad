/** Reads the body that a subcommand sends, from a file or standard input. */
import { systemCodeOf, UsageError } from '../contract/errors.ts'
import { CallFailed } from '../http/client.ts'

/** Bytes of a request. The service has its own, lower limit. */
const MAX_INPUT_BYTES = 1024 * 1024 * 1024

/** The bytes of `file`, or of standard input, which has at most `most`. `what` names them in errors. */
export async function readInput(file: string, what: string, most = MAX_INPUT_BYTES): Promise<Uint8Array> {
  const isStdin = file === '' || file === '-'
  if (isStdin && process.stdin.isTTY) throw new UsageError(`no input: give ${what} with --file, or pipe it in`)
  const bytes = isStdin ? await readStdin(most) : await readFile(file)
  if (bytes.length === 0) {
    throw new CallFailed(isStdin ? `standard input is empty: expected ${what}` : `${file} is empty: expected ${what}`)
  }
  return bytes
}

async function readFile(file: string): Promise<Uint8Array> {
  try {
    return await Bun.file(file).bytes()
  } catch (error) {
    const code = systemCodeOf(error)
    const reason =
      code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a directory' : (code ?? String(error))
    throw new CallFailed(`cannot read ${file}: ${reason}`)
  }
}

async function readStdin(most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of Bun.stdin.stream()) {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size > most) throw new CallFailed(`standard input is larger than ${most} bytes`)
  }
  return Buffer.concat(chunks, size)
}
