/** Goal: the frame in the HTML of the page is what its components say, as text of no other meaning. */
import { expect, test } from 'bun:test'
import { htmlOf } from '../../../control/dashboard/app/html-of.ts'

const h = (type: unknown, props: object | null, children: unknown) => ({ type, props: { ...props, children } })

test('elements, components, lists and texts become HTML', () => {
  const Name = ({ of }: { of: string }) => h('b', null, of)
  const html = htmlOf(
    h('p', { class: 'x', hidden: true, tabIndex: -1, title: undefined, onClick: () => {} }, [
      h(Name, { of: 'a' }, undefined),
      ' and ',
      3,
      null,
      false,
      h('input', { type: 'search', value: '' }, undefined),
    ]),
  )
  expect(html).toBe('<p class="x" hidden="" tabindex="-1"><b>a</b> and 3<input type="search" value=""></p>')
})

test('texts and values have no markup of their own', () => {
  expect(htmlOf(h('p', { title: '"><script>' }, '<b>&amp;'))).toBe(
    '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;amp;</p>',
  )
})

test('what the policy of the page refuses in HTML fails while the page is built', () => {
  expect(() => htmlOf(h('p', { style: { height: '1px' } }, undefined))).toThrow(
    'the HTML of the page cannot have style',
  )
})
