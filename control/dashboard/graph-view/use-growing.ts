/** A number that grows after each frame, so that a first frame does not have to wait for everything. */
import { useEffect, useState } from 'preact/hooks'

/** `step` more after each frame from when `isBegun`, until it is `most` or greater. */
export function useGrowing(isBegun: boolean, most: number, step: number): number {
  const [count, setCount] = useState(0)
  const grows = isBegun && count < most
  useEffect(() => {
    if (!grows) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const frame = requestAnimationFrame(() => {
      timer = setTimeout(() => setCount((before) => before + step)) // after the frame is painted
    })
    return () => {
      cancelAnimationFrame(frame)
      clearTimeout(timer)
    }
  }, [grows, count, step])
  return count
}
