/** The JSON of an address. */
import { useEffect, useState } from 'preact/hooks'
import { request } from './api.ts'
import { type Fault, faultOf } from './fault.ts'

/** The JSON of `path`, read again whenever `version` changes. */
export function useJson<T>(
  path: string | undefined,
  version: unknown,
): { value: T | undefined; fault: Fault | undefined } {
  const [state, setState] = useState<{ path: string | undefined; value?: T; fault?: Fault }>({ path })
  useEffect(() => {
    if (path === undefined) return
    const gone = new AbortController()
    request(path, { signal: gone.signal })
      .then((response) => response.json() as Promise<T>)
      .then((value) => setState({ path, value }))
      .catch((error) => {
        if (!gone.signal.aborted) setState({ path, fault: faultOf(error) })
      })
    return () => gone.abort()
  }, [path, version])
  const isCurrent = state.path === path
  return { value: isCurrent ? state.value : undefined, fault: isCurrent ? state.fault : undefined }
}
