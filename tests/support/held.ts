/** A data directory that is never lost, for tests of code that writes to one. */
export const HELD = { look: () => undefined, lost: undefined }
