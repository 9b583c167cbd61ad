/** GET /health from 32 clients: the cost of HTTP alone, and the limit of the load generator. */
import type { ControlWorkload } from './workload.ts'

const CLIENTS = 32

export const health: ControlWorkload = {
  name: 'health',
  measures: () => [
    { key: 'health_rate', label: `GET /health, ${CLIENTS} clients`, unit: '/s', better: 'higher' },
    { key: 'health_cpu', label: '… CPU of the server for one', unit: 'µs', better: 'lower' },
    { key: 'health_generator_cpu', label: '… CPU of the generator for one', unit: 'µs' },
  ],
  async run(target, { sizes, load }) {
    await using server = await target.start()
    const { url, pid } = server
    const { healthRequests: requests } = sizes
    const job = { url, pid, path: '/health', clients: CLIENTS, requests, warmUpRequests: Math.ceil(requests / 10) }
    const result = await load.run('get', job)
    return {
      health_rate: result.ratePerSecond,
      health_cpu: result.serverCpuMs === null ? null : result.serverCpuMs * 1000,
      health_generator_cpu: result.ownCpuMs * 1000,
    }
  },
}
