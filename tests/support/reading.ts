/** Reads the text of an answer while it comes. The answer may be long in coming, too. */
import { until } from './until.ts'

export function reading(answer: Response | Promise<Response>) {
  const state = { received: '', hasEnded: false }
  const done = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of (await answer).body!) state.received += decoder.decode(chunk, { stream: true })
    state.hasEnded = true
  })()
  const has = (wanted: string) => until(() => state.received, wanted)
  return { state, done, has }
}
