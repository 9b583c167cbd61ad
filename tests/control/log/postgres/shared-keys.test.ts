/** Goal: a repeated request with a key is told only of a graph that stays. Method: a table of what a replica may find. */
import { expect, test } from 'bun:test'
import type { KeptKey } from '../../../../control/log/idempotency.ts'
import type { NamedGraph } from '../../../../control/log/keeper.ts'
import { Answered, SharedKeys } from '../../../../control/log/postgres/shared-keys.ts'
import type { KnownAnswer } from '../../../../control/log/postgres/shared-rows.ts'
import { ServiceError } from '../../../../shared/contract/errors.ts'

const BODY = new TextEncoder().encode('{"tasks":[]}')
const HASH = new Bun.CryptoHasher('sha256').update(BODY).digest('hex')
const EARLIER = '{"accepted":1,"task_ids":["a"],"graph_id":"earlier"}'
const LATER = '{"accepted":1,"task_ids":["a"],"graph_id":"later"}'

const kept = (answer = EARLIER, hash = HASH): KeptKey => ({ scope: 'tasks', key: 'k', hash, answer, at: 1 })

interface Finds {
  /** What each look at the key finds; the last one stays. */
  readonly answers: readonly (KnownAnswer | undefined)[]
  /** Where the graph is at each look; the last one stays. */
  readonly places?: readonly ('shown' | 'nowhere' | 'unsettled')[]
  readonly make?: () => Promise<string>
}

async function once({ answers, places = [], make = async () => LATER }: Finds) {
  const asked: NamedGraph[] = []
  let looks = 0
  const keys = new SharedKeys({
    rows: { answer: async () => answers[Math.min(looks++, answers.length - 1)] },
    turns: { assertReachable: () => {}, run: () => {} },
    others: { whereabouts: async (named) => places[Math.min(asked.push(named), places.length) - 1]! },
  })
  const answer = await keys.once({ scope: 'tasks', key: 'k', body: BODY }, make).catch((error: ServiceError) => error)
  return { answer: answer instanceof ServiceError ? answer.status : answer, asked }
}

test.each<[string, Finds, string | number]>([
  ['a new key', { answers: [undefined] }, LATER],
  ['a graph that its owner shows', { answers: [kept()], places: ['shown'] }, EARLIER],
  ['a graph whose owner shows it soon', { answers: [kept()], places: ['unsettled', 'unsettled', 'shown'] }, EARLIER],
  ['a graph that is revoked', { answers: [kept(), undefined], places: ['unsettled'] }, LATER],
  ['a graph that was revoked between two looks', { answers: [kept(), undefined], places: ['nowhere'] }, LATER],
  ['a graph that was removed after it had ended', { answers: [kept()], places: ['nowhere'] }, EARLIER],
  ['a graph that nobody shows', { answers: [kept()], places: ['unsettled'] }, 503],
  ['the key of another body', { answers: [kept(EARLIER, 'other')], places: ['shown'] }, 422],
  [
    'another replica that was faster',
    { answers: [undefined, kept()], places: ['shown'], make: () => Promise.reject(new Answered(kept())) },
    EARLIER,
  ],
  [
    'another replica that was faster, and revokes its graph',
    {
      answers: [undefined, kept(), undefined],
      places: ['unsettled'],
      make: () => Promise.reject(new Answered(kept())),
    },
    503,
  ],
])('%s', async (_, finds, expected) => {
  expect((await once(finds)).answer).toBe(expected)
})

test('an answer without the id of a graph names its graph by its first task', async () => {
  const answer = '{"accepted":1,"task_ids":["a","b"],"task_graph":{}}'
  expect(await once({ answers: [kept(answer)], places: ['shown'] })).toEqual({ answer, asked: [{ taskId: 'a' }] })
})

test('the graph that an answer is kept with goes before what the answer says: ids of tasks may belong to the graph', async () => {
  const answer = '{"accepted":1,"task_ids":["a"],"task_graph":{}}'
  const known = { ...kept(answer), graphId: 'g' }
  expect(await once({ answers: [known, undefined], places: ['unsettled'] })).toEqual({
    ...{ answer: LATER, asked: [{ graphId: 'g' }] },
  })
})

test('an answer that is damaged is told to nobody, also if its graph is known', async () => {
  for (const graphId of [undefined, 'g'])
    expect(await once({ answers: [{ ...kept('{'), graphId }], places: ['shown'] })).toEqual({ answer: 409, asked: [] })
})
