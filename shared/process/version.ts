import manifest from '../../package.json' with { type: 'json' }

/** The build version, the same for every executable of one release. Source: `package.json`. */
export const VERSION: string = manifest.version
