/** Waiting for conditions, as scripts do it. */
export { isAlive, until } from '../../scripts/until.ts'
