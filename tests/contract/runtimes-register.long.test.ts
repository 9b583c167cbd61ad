/** Runtime services that add themselves to the pool of a control service. Source: docs/cluster.md. */
import { describe, expect, test } from 'bun:test'
import type { RuntimesResponse } from '../../shared/contract/runtimes.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { startRuntime } from '../support/runtime.ts'
import { until } from '../support/until.ts'

const namesIn = async (control: Control) =>
  ((await (await control.fetch('/runtimes')).json()) as RuntimesResponse).runtimes.map(({ name }) => name)

describe('serve --register', () => {
  test('adds itself, and again once control forgot it; a token is sent', async () => {
    await using control = await startControl({ env: { SERVICE_TOKEN: 'sesame' } })
    const asCaller = { headers: { authorization: 'Bearer sesame' } }
    const runtimesNow = async () =>
      ((await (await control.fetch('/runtimes', asCaller)).json()) as RuntimesResponse).runtimes
    await using runtime = await startRuntime({
      flags: ['--register', control.url, '--runtime-id', 'self', '--label', 'gpu', '--label', 'zone=a'],
      env: { SERVICE_CONTROL_TOKEN: 'sesame' },
    })
    const found = await until(runtimesNow, (runtimes) => runtimes.some(({ name }) => name === 'self'))
    expect(found.find(({ name }) => name === 'self')).toMatchObject({
      ...{ url: runtime.url, labels: { gpu: '', zone: 'a' }, state: 'ready', runtime_id: 'self', configured: false },
    })
    expect((await control.fetch('/runtimes/self', { method: 'DELETE', ...asCaller })).status).toBe(200)
    await until(runtimesNow, (runtimes) => runtimes.some(({ name }) => name === 'self'), { patienceMs: 30_000 })
    expect(runtime.log.filter(({ msg }) => msg === 'registered with the control service')).toHaveLength(1)
  })

  test('waits for a control service that is not there yet, and does not start with a name that control refuses', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    await using runtime = await startRuntime({ flags: ['--register', url, '--runtime-id', 'self'] })
    await until(
      () => runtime.log,
      (log) => log.some(({ msg }) => msg === 'cannot register with the control service'),
    )
    await using control = await startControl({ flags: ['--addr', new URL(url).host] })
    await until(
      () => namesIn(control),
      (names) => names.includes('self'),
    )
    const withUser = startRuntime({ flags: ['--register', url, '--advertise', 'http://ada:secret@h'] })
    expect(await withUser.then(String, (error) => String(error))).toContain(
      'expected an http: or https: address without user',
    )
    const refused = startRuntime({ flags: ['--register', url, '--runtime-id', 'a b'] })
    expect(await refused.then(String, (error) => String(error))).toContain('--register needs a --runtime-id of 1 to 63')
  })
})
