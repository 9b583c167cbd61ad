/** What `taskmill doctor` finds. */
export interface Finding {
  /** What was looked at. */
  readonly check: string
  readonly ok: boolean
  readonly detail: string
  /** What to do if it is not ok. */
  readonly remedy?: string
}

export const fine = (check: string, detail: string): Finding => ({ check, ok: true, detail })

export const wrong = (check: string, detail: string, remedy: string): Finding => ({ check, ok: false, detail, remedy })
