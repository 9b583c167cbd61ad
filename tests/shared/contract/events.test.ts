/** Goal: each kind of event is described completely. Method: a walk over the declared kinds and their fields. */
import { describe, expect, test } from 'bun:test'
import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { EVENT_KINDS, type EventData, EventHeader } from '../../../shared/contract/events.ts'

const kinds = Object.entries(EVENT_KINDS)

describe.each(kinds)('%s', (_kind, { when, payload }) => {
  test('says in sentences when it comes', () => {
    expect(when).toMatch(/^[A-Z].*\.$/)
  })

  test('says in sentences what its fields are', () => {
    const fields = Object.entries<TSchema>({ ...EventHeader.properties, ...payload.properties })
    const silent = fields.filter(([, { description = '' }]) => !/^[^ ].*\.$/.test(description))
    expect(silent.map(([name]) => name)).toEqual([])
  })

  test('shares no field with the header', () => {
    expect(Object.keys(payload.properties).filter((name) => name in EventHeader.properties)).toEqual([])
  })
})

test('an event is checked by header and payload', () => {
  const ended: EventData<'graph_ended'> = {
    seq: 7,
    previous: 6,
    at: '2026-01-01T00:00:00.000Z',
    graph_id: 'g',
    state: 'failed',
    counts: { failed: 1 },
  }
  expect(Value.Check(EVENT_KINDS.graph_ended.payload, ended)).toBe(true)
  expect(Value.Check(EVENT_KINDS.graph_ended.payload, { ...ended, state: 'lost' })).toBe(false)
})
