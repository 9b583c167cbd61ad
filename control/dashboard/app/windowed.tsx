/** A long list that renders only the visible rows. All rows have the same height. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

/** Rendered rows above and below the visible ones. */
const SPARE_ROWS = 8

export interface WindowedProps<T> {
  readonly items: readonly T[]
  readonly rowHeight: number
  readonly keyOf: (item: T) => string
  readonly render: (item: T, index: number) => ComponentChildren
  readonly label: string
  readonly class?: string
  /** Row to bring into view when it changes. */
  readonly shownIndex?: number
  readonly onEnd?: (() => void) | undefined
}

export function Windowed<T>({
  items,
  rowHeight,
  keyOf,
  render,
  label,
  shownIndex = -1,
  onEnd,
  ...rest
}: WindowedProps<T>) {
  const box = useRef<HTMLElement>(null)
  const [view, setView] = useState({ top: 0, height: 800 })
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure) // measures at once, too, when the layout is known
    observer.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [])
  useEffect(() => {
    const element = box.current
    if (element === null || shownIndex < 0) return
    const top = shownIndex * rowHeight
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + rowHeight > element.scrollTop + element.clientHeight) {
      element.scrollTop = top + rowHeight - element.clientHeight
    }
  }, [shownIndex, rowHeight])
  const first = Math.max(0, Math.floor(view.top / rowHeight) - SPARE_ROWS)
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + SPARE_ROWS)
  useEffect(() => {
    if (last === items.length && items.length > 0) onEnd?.()
  }, [last, items.length, onEnd])
  return (
    <section
      ref={box}
      class={`windowed ${rest.class ?? ''}`}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls has to be reached by keyboard
      tabIndex={0}
    >
      <ul class="windowed-rows" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, offset) => (
          <li
            key={keyOf(item)}
            aria-setsize={items.length}
            aria-posinset={first + offset + 1}
            class="windowed-row"
            style={{ transform: `translateY(${(first + offset) * rowHeight}px)`, height: `${rowHeight}px` }}
          >
            {render(item, first + offset)}
          </li>
        ))}
      </ul>
    </section>
  )
}
