/** The platforms of a release. `target` is Bun's name for the platform. */
export interface Platform {
  readonly name: string
  readonly target: string
  readonly os: 'linux' | 'darwin'
  readonly cpu: 'x64' | 'arm64'
  /** C library of Linux. */
  readonly libc?: 'glibc' | 'musl'
}

export const PLATFORMS: readonly Platform[] = [
  { name: 'linux-x64', target: 'bun-linux-x64-modern', os: 'linux', cpu: 'x64', libc: 'glibc' },
  // For processors without AVX2.
  { name: 'linux-x64-baseline', target: 'bun-linux-x64-baseline', os: 'linux', cpu: 'x64', libc: 'glibc' },
  { name: 'linux-arm64', target: 'bun-linux-arm64', os: 'linux', cpu: 'arm64', libc: 'glibc' },
  { name: 'linux-x64-musl', target: 'bun-linux-x64-musl', os: 'linux', cpu: 'x64', libc: 'musl' },
  { name: 'linux-arm64-musl', target: 'bun-linux-arm64-musl', os: 'linux', cpu: 'arm64', libc: 'musl' },
  { name: 'darwin-arm64', target: 'bun-darwin-arm64', os: 'darwin', cpu: 'arm64' },
  { name: 'darwin-x64', target: 'bun-darwin-x64', os: 'darwin', cpu: 'x64' },
]

/** The platforms with these names; all platforms if there are no names. Throws if a name is unknown. */
export function platformsNamed(names: readonly string[]): readonly Platform[] {
  if (names.length === 0) return PLATFORMS
  return names.map((name) => {
    const platform = PLATFORMS.find((known) => known.name === name)
    if (platform === undefined) {
      throw new Error(`unknown platform "${name}" (known: ${PLATFORMS.map((known) => known.name).join(', ')})`)
    }
    return platform
  })
}
