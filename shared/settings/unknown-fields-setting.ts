/** The setting `--unknown-fields`, which both services have. */

import { UNKNOWN_FIELDS } from '../request/unknown-names.ts'
import { choice } from './flags.ts'

export const unknownFieldsSetting = choice({
  variable: 'SERVICE_UNKNOWN_FIELDS',
  default: 'refuse',
  choices: UNKNOWN_FIELDS,
  help: 'How to treat an unknown field, parameter or query parameter: refuse answers 400, ignore drops it.',
})
