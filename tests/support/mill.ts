/** A mill of `taskmill/testing`, with the executables of these sources. */
import { dirname } from 'node:path'
import { type Mill, type MillOptions, startTaskmill } from '../../client/testing/testing.ts'
import { builtProgram } from '../../scripts/build.ts'
import { testEnvironment } from './service.ts'

/** The directory of the executables, once they are built. */
export async function executables(): Promise<string> {
  await builtProgram('taskmill-runtime')
  return dirname(await builtProgram('taskmill-control'))
}

export const startMill = async (options: MillOptions = {}): Promise<Mill> =>
  startTaskmill({ ...options, env: testEnvironment(options.env), executables: await executables() })
