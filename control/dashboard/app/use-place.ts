/** The open place of the page, from its address. */
import { useCallback, useLayoutEffect, useState } from 'preact/hooks'
import { hashOf, type Place, placeOf } from '../model/place.ts'

export type Go = (place: Place, how?: 'push' | 'replace') => void

export function usePlace(): [Place, Go] {
  const [place, setPlace] = useState(() => placeOf(location.hash))
  // Listens before anything else can run: a change between the first rendering and an effect would be missed.
  useLayoutEffect(() => {
    const onChange = () => setPlace(placeOf(location.hash))
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  const go = useCallback((next: Place, how: 'push' | 'replace' = 'push') => {
    const hash = hashOf(next)
    if (hash === location.hash) return
    if (how === 'push') location.hash = hash
    else {
      history.replaceState(null, '', hash)
      setPlace(placeOf(hash))
    }
  }, [])
  return [place, go]
}
