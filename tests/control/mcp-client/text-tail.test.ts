/** The end of a text, however it came. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_TAIL_BYTES, TextTail } from '../../../control/mcp-client/text-tail.ts'

test('the last bytes are kept, and no more', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 3_000 }), { maxLength: 6 }),
      (parts) => {
        const tail = new TextTail()
        for (const part of parts) tail.push(new TextEncoder().encode(part))
        expect(tail.text()).toBe(parts.join('').slice(-MAX_TAIL_BYTES))
      },
    ),
  )
})
