/** What `taskmill-runtime doctor --json` prints, and `taskmill doctor` reads. */
export interface DoctorReport {
  readonly platform: string
  readonly launcher: string
  /** Lines on what tasks may reserve together. */
  readonly capacity: readonly string[]
  readonly capabilities: readonly ReportedCapability[]
}

export interface ReportedCapability {
  readonly name: string
  readonly available: boolean
  /** Why it is missing, and what would help. Absent if it is available. */
  readonly reason?: string
  readonly remedy?: string
}
