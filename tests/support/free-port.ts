/** Ports for services of tests, as `taskmill/testing` finds them. */
export { freePort } from '../../client/testing/free-port.ts'
