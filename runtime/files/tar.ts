/**
 * The form of a tar of a file or a directory of a task, which is made while the files are read. It is that of GNU: a name of
 * more than 100 bytes comes before its entry, and a size of 8 GiB or more is binary. Owners and times are left out, so the
 * same tree has the same bytes everywhere.
 */
import type { ArchiveForm } from './bundle.ts'
import type { TreeStep } from './tree-walk.ts'

const BLOCK_BYTES = 512
const NAME_BYTES = 100
const LONG_NAME = Buffer.from('././@LongLink')
const SLASH = Buffer.from('/')
const ZEROS = Buffer.alloc(2 * BLOCK_BYTES)

/** Sizes from here on do not fit into eleven octal digits. */
const BINARY_SIZE = 8 ** 11

/** The steps of the walk name each entry by its last name. */
export function tarForm(): ArchiveForm {
  /** The names of the directories that were entered and not left. */
  const outer: Buffer[] = []
  const headOf = (step: TreeStep): Buffer => {
    if (step.kind === 'leave') {
      outer.pop()
      return ZEROS.subarray(0, 0)
    }
    const path = Buffer.concat([...outer, step.name].flatMap((name) => [name, SLASH]))
    if (step.kind === 'enter') {
      outer.push(step.name)
      return named(path, step.mode, 0, '5')
    }
    return named(path.subarray(0, -1), step.mode, step.size, '0')
  }
  return { start: ZEROS.subarray(0, 0), headOf, tailOf: paddingOf, end: ZEROS }
}

function named(path: Buffer, mode: number, size: number, type: string): Buffer {
  const header = headerOf(path.subarray(0, NAME_BYTES), mode, size, type)
  if (path.length <= NAME_BYTES) return header
  const bytes = path.length + 1
  const whole = Buffer.concat([path, ZEROS.subarray(0, 1), paddingOf(bytes)])
  return Buffer.concat([headerOf(LONG_NAME, 0o644, bytes, 'L'), whole, header])
}

/** Fills the last block of `bytes` bytes. */
const paddingOf = (bytes: number): Buffer => ZEROS.subarray(0, -bytes & (BLOCK_BYTES - 1))

function headerOf(name: Buffer, mode: number, size: number, type: string): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES)
  const octal = (value: number, at: number, bytes: number) =>
    header.write(`${value.toString(8).padStart(bytes - 1, '0')}\0`, at, 'latin1')
  name.copy(header)
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  if (size < BINARY_SIZE) octal(size, 124, 12)
  else {
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(size), 128)
  }
  octal(0, 136, 12)
  header.write(`        ${type}`, 148, 'latin1')
  header.write('ustar  \0', 257, 'latin1')
  const sum = header.reduce((all, byte) => all + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}
