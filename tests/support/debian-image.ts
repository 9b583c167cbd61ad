/** The base of the images that tests build: the Debian of the engine, or a small one of our own. Nothing is pulled. */
import { ROOT } from './deploy-files.ts'
import { docker, run } from './docker-engine.ts'

/** Milliseconds for what builds images, debootstrap included, on a busy machine. */
export const BUILD_MS = 300_000

const DEBIAN = 'debian:12-slim'

const hasDebian = async (): Promise<boolean> => {
  const found = await docker('image', 'inspect', DEBIAN).catch(() => undefined)
  return found !== undefined
}

/** Why there can be no Debian in the engine, which answers. */
export async function faultOfDebian(): Promise<string | undefined> {
  if (await hasDebian()) return undefined
  if (Bun.which('debootstrap') === null) return `the engine has no ${DEBIAN}, and there is no debootstrap`
  return process.getuid?.() === 0 ? undefined : `the engine has no ${DEBIAN}, and only root can run debootstrap`
}

interface Image extends AsyncDisposable {
  readonly name: string
}

/** The one of the engine, or one that debootstrap makes, under `name`, and which is removed at the end. */
export async function debianImage(name: string): Promise<Image> {
  if (await hasDebian()) return { name: DEBIAN, [Symbol.asyncDispose]: async () => {} }
  const archive = await run([`${ROOT}/scripts/debian-base`], { env: cacheEnvironment(), limitMs: BUILD_MS })
  await docker('import', archive, name)
  return ownImage(name)
}

/** An image that is removed at the end. */
export const ownImage = (name: string): Image => ({
  name,
  [Symbol.asyncDispose]: async () => void (await docker('rmi', '--force', name)),
})

/** Where the archive is kept. */
const cacheEnvironment = (): Record<string, string> =>
  process.env.XDG_CACHE_HOME === undefined ? {} : { XDG_CACHE_HOME: process.env.XDG_CACHE_HOME }
