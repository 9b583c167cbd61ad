import { describe, expect, test } from 'bun:test'
import { lastLines } from '../../../adapter/start/attempt.ts'
import { tellingLine } from '../../../adapter/start/docker.ts'

describe('lastLines', () => {
  test('are at most five, without empty ones and terminal sequences', () => {
    expect(lastLines('1\n2\n\n3\r\n4\n\x1b[31m5\x1b[0m\n10%\r6\n')).toBe('2\n3\n4\n5\n6')
  })

  test('are nothing of nothing', () => {
    expect(lastLines('\n \n')).toBe('')
  })

  test('are cut when they are long', () => {
    expect(lastLines('x'.repeat(10_000)).length).toBe(503)
  })
})

describe('tellingLine', () => {
  test.each([
    [
      'docker: Error response from daemon: Conflict.',
      "docker: Error response from daemon: Conflict.\n\nRun 'docker run --help' for more information\n",
    ],
    ["docker: 'compose' is not a docker command.", "docker: 'compose' is not a docker command.\nSee 'docker --help'\n"],
    ['Cannot connect.', 'Cannot connect.\nError: failed to start containers: x\n'],
    [
      "unknown shorthand flag: 'd' in -d",
      "unknown shorthand flag: 'd' in -d\n\nUsage:  docker [OPTIONS] COMMAND [ARG...]\n\nRun 'docker --help' for more information",
    ],
    ["See 'docker --help'", "See 'docker --help'\n"],
    [undefined, ''],
  ])('%p is what docker says', (line, output) => {
    expect(tellingLine(output)).toBe(line)
  })
})
