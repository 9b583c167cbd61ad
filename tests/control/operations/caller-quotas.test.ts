import { describe, expect, test } from 'bun:test'
import { CallerQuotas } from '../../../control/operations/caller-quotas.ts'
import type { Graph } from '../../../control/task/graph.ts'
import type { Caller } from '../../../shared/http/callers.ts'
import type { Grant } from '../../../shared/http/token-entries.ts'
import { NO_COMMANDS } from '../../support/operation-parts.ts'

const callerWith = (grant: Partial<Grant>): Caller => ({
  grant: { name: 'ci', rights: ['submit'], ...grant },
  signal: new AbortController().signal,
})

interface Shape {
  readonly tasks?: readonly object[]
  readonly options?: object
  live?: number
  readonly submittedBy?: string
}

/** As far as quotas look at a graph. */
const graphOf = ({
  tasks = [{}],
  options = {},
  live = tasks.length,
  submittedBy = 'ci',
}: Shape = {}): Graph & { live: number } => {
  const all = tasks.map((task) => ({ id: 'a', type: 'os', options: {}, ...task }))
  return { tasks: all, submitted: all, options, live, submittedBy } as unknown as Graph & { live: number }
}

const statusOf = (run: () => void): number | 'taken' => {
  try {
    run()
    return 'taken'
  } catch (error) {
    return (error as { status: number }).status
  }
}

describe('graphs_per_minute', () => {
  const world = (most: number) => {
    const quotas = new CallerQuotas({ graphs: [] }, NO_COMMANDS)
    const caller = callerWith({ graphs_per_minute: most })
    return (seconds: number) => statusOf(() => quotas.take(graphOf(), caller, seconds * 1_000))
  }

  test('lets so many through at once, then as many as time gives back', () => {
    const at = world(2)
    expect([at(0), at(0), at(0), at(29), at(30), at(30)]).toEqual(['taken', 'taken', 429, 429, 'taken', 429])
    expect([at(3_600), at(3_600), at(3_600)]).toEqual(['taken', 'taken', 429])
  })

  test('says when to try again', () => {
    const quotas = new CallerQuotas({ graphs: [] }, NO_COMMANDS)
    const caller = callerWith({ graphs_per_minute: 1 })
    quotas.take(graphOf(), caller, 0)
    expect(() => quotas.take(graphOf(), caller, 15_000)).toThrow('may submit 1 graphs a minute: try again in 45 s')
  })
})

describe('live_tasks', () => {
  test('counts those of recovered and of accepted graphs until they end', () => {
    const recovered = graphOf({ tasks: [{}, {}] })
    const quotas = new CallerQuotas(
      { graphs: [recovered, graphOf({ submittedBy: 'cd', tasks: [{}, {}, {}] })] },
      NO_COMMANDS,
    )
    const caller = callerWith({ live_tasks: 3 })
    const one = graphOf()
    expect(statusOf(() => quotas.take(one, caller))).toBe('taken')
    expect(statusOf(() => quotas.take(graphOf(), caller))).toBe(429)
    recovered.live = 1
    expect(statusOf(() => quotas.take(graphOf(), caller))).toBe('taken')
    expect(statusOf(() => quotas.take(graphOf(), caller))).toBe(429)
    quotas.giveUp(one)
    expect(statusOf(() => quotas.take(graphOf(), caller))).toBe('taken')
  })

  test('refuses for good what never fits', () => {
    const quotas = new CallerQuotas({ graphs: [] }, NO_COMMANDS)
    expect(statusOf(() => quotas.take(graphOf({ tasks: [{}, {}] }), callerWith({ live_tasks: 1 })))).toBe(413)
  })

  test('a graph that may not be submitted takes nothing of a rate or of room', () => {
    const quotas = new CallerQuotas({ graphs: [] }, NO_COMMANDS)
    const caller = callerWith({ live_tasks: 1, graphs_per_minute: 1, types: ['os'] })
    expect(statusOf(() => quotas.take(graphOf({ tasks: [{ type: 'mcp' }] }), caller))).toBe(403)
    expect(statusOf(() => quotas.take(graphOf(), caller))).toBe('taken')
  })
})

describe('types, labels and groups', () => {
  const members = [{ id: 'm', type: 'group', tasks: [{ id: 'n', type: 'mcp' }] }]
  test.each<[grant: Partial<Grant>, graph: Shape, expected: 'taken' | 403]>([
    [{ types: ['os'] }, {}, 'taken'],
    [{ types: ['runtime'] }, {}, 403],
    [{ types: ['os', 'group'] }, { tasks: [{ options: { tasks: members } }] }, 403],
    [{ types: ['os', 'group', 'mcp'] }, { tasks: [{ options: { tasks: members } }] }, 'taken'],
    [{ labels: { team: 'a' } }, {}, 403],
    [{ labels: { team: 'a' } }, { options: { labels: { team: 'b' } } }, 403],
    [{ labels: { team: 'a' } }, { options: { labels: { team: 'a', x: 'y' } } }, 'taken'],
  ])('%j of %j: %p', (grant, graph, expected) => {
    const quotas = new CallerQuotas({ graphs: [] }, NO_COMMANDS)
    expect(statusOf(() => quotas.take(graphOf(graph), callerWith(grant)))).toBe(expected)
  })

  test('a group cancels graphs of others only for a token that may', () => {
    const of = (rights: Grant['rights'], on_full: string) =>
      statusOf(() =>
        new CallerQuotas({ graphs: [] }, NO_COMMANDS).take(
          graphOf({ options: { concurrency: { group: 'g', on_full } } }),
          callerWith({ rights }),
        ),
      )
    expect(of(['submit'], 'cancel_oldest')).toBe(403)
    expect(of(['submit', 'cancel_own'], 'cancel_oldest')).toBe(403)
    expect(of(['submit', 'cancel'], 'cancel_oldest')).toBe('taken')
    expect(of(['submit'], 'wait')).toBe('taken')
  })

  test('the token of the service may do all of it', () => {
    new CallerQuotas({ graphs: [] }, NO_COMMANDS).take(
      graphOf({ options: { concurrency: { on_full: 'cancel_oldest' } } }),
      undefined,
    )
  })
})
