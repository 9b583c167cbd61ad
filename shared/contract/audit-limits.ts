/** Limits of the answer of GET /audit, apart from its schemas, which the client does not load. */

/** Records of a page. */
export const DEFAULT_AUDIT_PAGE = 100
export const MAX_AUDIT_PAGE = 1_000
