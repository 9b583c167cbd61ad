/** The field `as` of a placeholder: the form of its value. Pure. */
import { isGiven } from '../../shared/text/json.ts'

const FORMS = ['text', 'json', 'lines'] as const

type Form = (typeof FORMS)[number]

export interface InForm {
  readonly as?: Form
}

/** Parses the field `as`, which may be absent. Returns the fault if it is invalid. */
export function formIn(as: unknown, forms: readonly Form[] = FORMS): InForm | string {
  if (!isGiven(as)) return {}
  const form = forms.find((each) => each === as)
  return form === undefined ? `as: expected ${forms.join(', ')}` : { as: form }
}
