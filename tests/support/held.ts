/** A data directory that is never lost, for tests of code that writes to one. */
export const HELD = { look: () => undefined, lost: undefined, ensure: () => {} }

/** No reserve on the disk, for tests that want none. */
export const NO_RESERVE = { release: () => false, restore: () => {} }
