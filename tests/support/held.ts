/** A data directory that is never lost, for tests of what writes to it. */
export const HELD = { look: () => undefined, lost: undefined }
