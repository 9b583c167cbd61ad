/**
 * The places for connections of all tasks.
 *
 * One part is divided: each task that may run has as many places for itself. The rest goes to whoever asks first. So a task
 * may have many connections, and one that takes all it gets leaves the others their own.
 */

/** The part of all places that is divided. */
export const DIVIDED_PART = 1 / 2

/** Places that each of `tasks` tasks has for itself. */
export const ownPlaces = (places: number, tasks: number): number => Math.floor((places * DIVIDED_PART) / tasks)

export interface TaskPlaces {
  /** Takes a place. False: there is none. */
  readonly enter: () => boolean
  /** Gives a place back. */
  readonly leave: () => void
}

export class Places {
  readonly #own: number
  #common: number
  #taken = 0

  /** `tasks`: as many have places at a time. */
  constructor(places: number, tasks: number) {
    this.#own = ownPlaces(places, tasks)
    this.#common = places - this.#own * tasks
  }

  /** Places that are taken. */
  get taken(): number {
    return this.#taken
  }

  forTask(): TaskPlaces {
    let [own, common] = [0, 0]
    return {
      enter: () => {
        if (own < this.#own) own++
        else if (this.#common > 0) {
          this.#common--
          common++
        } else return false
        this.#taken++
        return true
      },
      leave: () => {
        this.#taken--
        if (common === 0) own--
        else {
          common--
          this.#common++
        }
      },
    }
  }
}
