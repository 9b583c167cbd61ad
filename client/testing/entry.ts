/** What tests import as `taskmill/testing`. */
export type { LogLine } from './service.ts'
export { type Mill, type MillOptions, startTaskmill } from './testing.ts'
