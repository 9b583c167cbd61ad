/** Unknown fields of the runtime service. Source: contract 5, "Unknown fields". */

import { describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startRuntime } from '../support/runtime.ts'
import { tempDir } from '../support/temp.ts'

const OLD_FILES = join(import.meta.dir, '../data/unknown-fields/runtime')

const DANGEROUS = {
  execution: { kind: 'command', program: '/bin/true' },
  sandbox: { profil: 'linux_sandbox' },
  policy: { capability_mode: 'strict' },
}

describe('unknown fields of a request', () => {
  test('are refused with the path and the nearest known name, and nothing is stored', async () => {
    await using runtime = await startRuntime()
    const answer = await runtime.post(DANGEROUS)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toEqual({
      error: {
        code: 'invalid_input',
        message: 'unknown field sandbox.profil (did you mean sandbox.profile?)',
        details: null,
      },
    })
    expect(await runtime.json('/api/v1/tasks')).toEqual({ tasks: [] })
  })

  test('are not those that the service sets in a status: one that is sent back as a request is taken', async () => {
    await using runtime = await startRuntime()
    const execution = { kind: 'command', program: '/bin/false' }
    const status = await runtime.run({ task_id: 'first', execution, metadata: { a: 'b' } })
    const again = await runtime.run({ ...status, task_id: 'second', execution })
    expect(again).toMatchObject({ task_id: 'second', handle_id: 'second', status: 'failed', metadata: { a: 'b' } })
    const answer = await runtime.post({ execution: { ...execution, status: 'success' } })
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringContaining('unknown field execution.status'),
    ])
  })

  test('are ignored where a variable says so', async () => {
    await using runtime = await startRuntime({ env: { SERVICE_UNKNOWN_FIELDS: 'ignore' } })
    expect(await runtime.run({ ...DANGEROUS, policy: {} })).toMatchObject({ status: 'success' })
  })

  test('that an earlier version accepted keep nobody from starting', async () => {
    using temp = tempDir()
    const dataDir = join(temp.path, 'data')
    cpSync(OLD_FILES, dataDir, { recursive: true })
    mkdirSync(join(dataDir, 'tasks/sloppy/workspace')) // a checkout has no empty directories
    await using runtime = await startRuntime({ dataDir })
    expect(await runtime.ended('sloppy')).toMatchObject({ status: 'success', stdout: 'still here\n' })
    expect(await runtime.ended('hold')).toMatchObject({ status: 'failed', error: { code: 'internal' } })
  })
})
