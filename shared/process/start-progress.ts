/** How far the start of a service has come, for those who ask meanwhile. Its fields are in the answer. */
export class StartProgress {
  /** What the service does: `reading the journal`. */
  phase = 'loading'
  /** Records that were read in this phase. */
  records: number | undefined
  /** All records of this phase, where their number is known. */
  of: number | undefined

  begin(phase: string, of?: number): void {
    Object.assign(this, { phase, of, records: of === undefined ? undefined : 0 })
  }

  /** Counts a record. */
  count(): void {
    this.records = (this.records ?? 0) + 1
  }
}
