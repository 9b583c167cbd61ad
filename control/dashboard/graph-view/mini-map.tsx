/** A small map of the whole drawing, with the visible part marked. Absent while the whole drawing is visible. */
import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Look } from '../model/looks.ts'
import type { Drawing } from './geometry.ts'

const WIDTH = 160
const HEIGHT = 100

/** The least width and height of a box. */
const LEAST_SIZE = 2

export interface MiniMapProps {
  readonly drawing: Drawing
  readonly frame: RefObject<HTMLElement | null>
  readonly scale: number
  /** Undefined for the frame of an open group: what is inside has its own. */
  readonly lookOfBox: readonly (Look | undefined)[]
}

export function MiniMap({ drawing, frame, scale, lookOfBox }: MiniMapProps) {
  const { width, height } = drawing.size
  const seen = useSeen(frame, scale)
  if (seen === undefined || (seen.width >= width - 2 && seen.height >= height - 2)) return null
  const by = Math.min(WIDTH / width, HEIGHT / height)
  const onPointer = (event: PointerEvent) => {
    if (event.buttons === 0 || frame.current === null) return
    const map = (event.currentTarget as Element).getBoundingClientRect()
    frame.current.scrollLeft = ((event.clientX - map.left) / by) * scale - frame.current.clientWidth / 2
    frame.current.scrollTop = ((event.clientY - map.top) / by) * scale - frame.current.clientHeight / 2
  }
  return (
    <svg
      class="mini-map"
      width={width * by}
      height={height * by}
      aria-hidden="true"
      onPointerDown={onPointer}
      onPointerMove={onPointer}
    >
      {[...new Set(lookOfBox)].map(
        (look) =>
          look !== undefined && (
            <path key={look} class={`fill-${look}`} d={boxesPath(drawing, by, (box) => lookOfBox[box] === look)} />
          ),
      )}
      <rect
        class="seen"
        x={seen.left * by}
        y={seen.top * by}
        width={Math.min(seen.width, width) * by}
        height={Math.min(seen.height, height) * by}
      />
    </svg>
  )
}

/** The boxes of one look as one path: a graph of 500 tasks has a handful of looks. */
function boxesPath({ corners, sizes }: Drawing, by: number, isWanted: (box: number) => boolean): string {
  return corners.reduce<string>((path, { x, y }, box) => {
    if (!isWanted(box)) return path
    const size = sizes[box]!
    const [width, height] = [Math.max(LEAST_SIZE, size.width * by), Math.max(LEAST_SIZE, size.height * by)]
    return `${path}M${(x * by).toFixed(1)} ${(y * by).toFixed(1)}h${width}v${height}h${-width}z`
  }, '')
}

/** The visible part of the drawing, in pixels of the drawing. */
function useSeen(frame: RefObject<HTMLElement | null>, scale: number) {
  const [seen, setSeen] = useState<{ left: number; top: number; width: number; height: number }>()
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const measure = () =>
      setSeen({
        ...{ left: element.scrollLeft / scale, top: element.scrollTop / scale },
        ...{ width: element.clientWidth / scale, height: element.clientHeight / scale },
      })
    const observer = new ResizeObserver(measure) // also measures at once
    observer.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [frame, scale])
  return seen
}
