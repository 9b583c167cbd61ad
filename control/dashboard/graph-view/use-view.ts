/** The visible part of the drawing: its scale and position. Fit, zoom, drag. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Drawing } from './geometry.ts'
import { type Part, partAround, partWith } from './window.ts'

const LEAST_SCALE = 0.1
const MOST_SCALE = 1.5

/** Minimum scale at which a graph is shown as a whole at first. Below that, ids cannot be read. */
const LEAST_FIRST_SCALE = 0.5

/** The first scale of a graph that is not shown whole: boxes have all their details. */
const PART_SCALE = 0.65

const WHEEL_STEP = 1.1

/** `startBox` is in the middle at first. */
export function useView(drawing: Drawing, selectedBox: number | undefined, startBox: number) {
  const frame = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLDivElement>(null)
  /** Undefined until the frame has been measured. Nothing is drawn before that. */
  const [scale, setScale] = useState<number>()
  /** What one sees first. */
  const [firstPart, setFirstPart] = useState<Part>()
  const wholeScale = useCallback(() => {
    const { clientWidth = 1, clientHeight = 1 } = frame.current ?? {}
    const { width, height } = drawing.size
    return Math.min(1, clientWidth / width, clientHeight / height)
  }, [drawing])
  useLayoutEffect(() => {
    if (scale !== undefined) return
    const whole = wholeScale()
    const first = whole < LEAST_FIRST_SCALE ? PART_SCALE : whole
    const { clientWidth = 0, clientHeight = 0 } = frame.current ?? {}
    setScale(first)
    const [width, height] = [clientWidth / first, clientHeight / first]
    setFirstPart(
      selectedBox === undefined
        ? partAround(drawing, startBox, width, height)
        : partWith(drawing, selectedBox, width, height),
    )
  }, [wholeScale])
  const zoom = useCallback((by: number) => {
    const element = frame.current
    setScale((before = 1) => {
      const after = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, before * by))
      if (element !== null) {
        const { scrollLeft, scrollTop, clientWidth, clientHeight } = element
        requestAnimationFrame(() => {
          element.scrollLeft = ((scrollLeft + clientWidth / 2) * after) / before - clientWidth / 2
          element.scrollTop = ((scrollTop + clientHeight / 2) * after) / before - clientHeight / 2
        })
      }
      return after
    })
  }, [])
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      zoom(event.deltaY < 0 ? WHEEL_STEP : 1 / WHEEL_STEP)
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  }, [zoom])
  const isDrawn = scale !== undefined
  useLayoutEffect(() => {
    const element = frame.current
    if (element === null || scale === undefined || firstPart === undefined) return
    element.scrollLeft = firstPart.left * scale
    element.scrollTop = firstPart.top * scale
  }, [isDrawn])
  useEffect(() => {
    if (selectedBox === undefined || !isDrawn) return
    canvas.current
      ?.querySelector(`[data-box="${selectedBox}"]`)
      ?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [selectedBox, isDrawn])
  const fit = useCallback(() => setScale(Math.max(LEAST_SCALE, wholeScale())), [wholeScale])
  const onPointerDown = useCallback((event: PointerEvent) => drag(frame.current, event), [])
  return { frame, canvas, scale, firstPart, zoom, fit, onPointerDown }
}

/** Moves the visible part along with the mouse until the button is released. */
function drag(element: HTMLElement | null, event: PointerEvent): void {
  if (element === null || event.pointerType !== 'mouse' || event.button !== 0) return
  if ((event.target as HTMLElement).closest('button') !== null) return
  const from = { x: event.clientX + element.scrollLeft, y: event.clientY + element.scrollTop }
  const onMove = (move: PointerEvent) => {
    element.scrollLeft = from.x - move.clientX
    element.scrollTop = from.y - move.clientY
  }
  element.setPointerCapture(event.pointerId)
  element.addEventListener('pointermove', onMove)
  element.addEventListener('pointerup', () => element.removeEventListener('pointermove', onMove), { once: true })
}
