/** What is kept of orphans: attempts that control still has to end in runtime services. */
import { isObject, type JsonObject } from '../../shared/text/json.ts'

export interface Orphan {
  readonly handle_id: string
  readonly owner?: string
  /**
   * Whether the runtime service has confirmed the attempt. If not, its request may still arrive, so it is looked for
   * twice.
   */
  readonly is_taken: boolean
  /** Milliseconds since 1970. */
  readonly since: number
  /** The name of its runtime service. Absent: `default`. */
  readonly runtime?: string
}

/** An attempt that this service is to end, or one that is over. */
export interface OrphanState {
  readonly id: string
  /** Undefined once it was ended or given up. */
  readonly orphan: Orphan | undefined
}

export type OrphanKeeper = Pick<KeptOrphans, 'found' | 'onFound' | 'add' | 'remove'>

export class KeptOrphans {
  protected readonly orphans: Map<string, Orphan>
  readonly #write: (orphan: OrphanState) => void
  /** Called with the orphans of another replica that this one takes over. */
  onFound: (orphans: readonly Orphan[]) => void = () => {}

  /** `write` has a state kept with the changes so far. It does not throw. */
  constructor(write: (orphan: OrphanState) => void, found: ReadonlyMap<string, Orphan> = new Map()) {
    this.#write = write
    this.orphans = new Map(found)
  }

  /** The orphans of an earlier run. */
  get found(): readonly Orphan[] {
    return [...this.orphans.values()]
  }

  /** Keeps an orphan, at the latest with the end of its task. */
  add(orphan: Orphan): void {
    this.orphans.set(orphan.handle_id, orphan)
    this.#write({ id: orphan.handle_id, orphan })
  }

  /** These were killed or given up. */
  remove(orphans: readonly Orphan[]): void {
    for (const orphan of orphans) {
      const { handle_id: id } = orphan
      if (this.orphans.get(id) !== orphan) continue
      this.orphans.delete(id)
      this.#write({ id, orphan: undefined })
    }
  }
}

/** Whether `value`, read from JSON, is an orphan. */
export const isOrphan = (value: unknown): value is Orphan => isObject(value) && hasFields(value)

const hasFields = ({ handle_id, since, runtime }: JsonObject): boolean =>
  typeof handle_id === 'string' && Number.isFinite(since) && (runtime === undefined || typeof runtime === 'string')
