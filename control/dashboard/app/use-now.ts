/** The time, for what grows older while one looks. */
import { useEffect, useState } from 'preact/hooks'

/** The time, once a second while `isTicking`. */
export function useNow(isTicking: boolean): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    setNow(Date.now())
    if (!isTicking) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') setNow(Date.now())
    }, 1_000)
    return () => clearInterval(timer)
  }, [isTicking])
  return now
}
