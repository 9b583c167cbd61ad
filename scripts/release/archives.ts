/**
 * Archives of the executables of one platform. The same files give the same bytes: names are sorted, and owners and
 * times are fixed.
 */
import { createReadStream, createWriteStream, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip, createZstdCompress } from 'node:zlib'
import { run } from './run.ts'

/** `zstd -d` and `tar --zstd` accept windows of 2^27 bytes without a flag. */
const WINDOW_LOG = 27

export interface ArchiveOptions {
  /** Seconds since 1970: the time of every file in the archive. */
  readonly time: number
  /** Level of zstd, 1 to 19; that of gzip is at most 9. */
  readonly level: number
}

/** Writes `<directory>.tar.gz` and `<directory>.tar.zst` beside `directory`. Returns their paths. */
export async function archive(directory: string, { time, level }: ArchiveOptions): Promise<readonly string[]> {
  const tar = `${directory}.tar`
  await run(
    [
      ...['tar', '--create', '--format=ustar', '--sort=name', `--mtime=@${time}`],
      ...['--owner=0', '--group=0', '--numeric-owner', `--file=${tar}`, basename(directory)],
    ],
    { cwd: dirname(directory) },
  )
  // The executables contain the same Bun. A window that spans all of them stores it once.
  const params = {
    [constants.ZSTD_c_compressionLevel]: level,
    [constants.ZSTD_c_windowLog]: WINDOW_LOG,
    [constants.ZSTD_c_enableLongDistanceMatching]: 1,
  }
  try {
    await pipeline(createReadStream(tar), createZstdCompress({ params }), createWriteStream(`${tar}.zst`))
    await pipeline(createReadStream(tar), createGzip({ level: Math.min(level, 9) }), createWriteStream(`${tar}.gz`))
  } finally {
    rmSync(tar, { force: true })
  }
  return [`${tar}.gz`, `${tar}.zst`]
}
