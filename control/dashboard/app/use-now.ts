/** The present time, for ages and durations that grow on the screen. */
import { useEffect, useState } from 'preact/hooks'

/** The present time, updated once a second while `isTicking`. */
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
