/** A mill of `taskmill/testing`, with the executables of these sources. */
import { dirname } from 'node:path'
import { type Mill, type MillOptions, startOnPorts } from '../../client/testing/testing.ts'
import { builtProgram } from '../../scripts/build.ts'
import { freePort } from './free-port.ts'
import { testEnvironment } from './service.ts'

/** The directory of the executables, once they are built. */
export async function executables(): Promise<string> {
  await builtProgram('taskmill-runtime')
  return dirname(await builtProgram('taskmill-control'))
}

export const startMill = async (options: MillOptions = {}, choosePort = freePort): Promise<Mill> =>
  startOnPorts({ ...options, env: testEnvironment(options.env), executables: await executables() }, choosePort)
