/** A flag whose value is the base URL of a service. */
import { Expected, type Setting } from './flags.ts'
import { baseUrlOf } from './runtime-entry.ts'

/** Empty if none is given. */
export const baseUrl = (setting: { readonly variable?: string; readonly help: string }): Setting<string> => ({
  ...setting,
  value: 'url',
  parse: (given) =>
    baseUrlOf(given) ?? new Expected('an http: or https: address without query, such as http://10.0.0.5:8080'),
  absent: '',
})
