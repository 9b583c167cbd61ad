/**
 * Positions and paths of a graph, in CSS pixels. Pure.
 *
 * What is inside an open group is laid out first, by itself. Its frame is a box of that size in the drawing around it, so
 * lines outside end at the frame, and nothing but its own boxes is inside.
 */
import type { Boxes } from './boxes.ts'
import { type Layout, type Line, layOut } from './layout.ts'

export const BOX_WIDTH = 176
export const BOX_HEIGHT = 44
const MARGIN = 20

/** Of a frame: the height of its head, and the space around what is inside. */
export const HEAD_HEIGHT = 44
const PADDING = 14

export interface Corner {
  readonly x: number
  readonly y: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

/** A drawn edge between two boxes, as the data of an SVG path. */
export interface DrawnLine {
  readonly from: number
  readonly to: number
  readonly path: string
}

export interface Drawing {
  readonly isDown: boolean
  readonly size: Size
  /** Of each box. */
  readonly corners: readonly Corner[]
  readonly sizes: readonly Size[]
  /** Boxes with the same number stand beside each other, in the same frame. */
  readonly layerOf: readonly number[]
  /** Where the middle of each box is among those beside it. */
  readonly rowOf: readonly number[]
  readonly lines: readonly DrawnLine[]
  /** The edges of a box that the drawing leaves out because longer paths imply them. */
  impliedAt(box: number): string
}

/** Layers follow one another from left to right, or from top to bottom. Sizes are along the layers, and across them. */
interface Axes {
  readonly box: number
  /** Between two layers. */
  readonly gap: number
  readonly boxAcross: number
  /** From one box to the next. */
  readonly row: number
  /** What a frame adds to what is inside: before it, and in all. */
  readonly frame: {
    readonly before: number
    readonly beforeAcross: number
    readonly all: number
    readonly allAcross: number
  }
}
const HEADED = { before: HEAD_HEIGHT + 4, all: HEAD_HEIGHT + 4 + PADDING }
const SIDES = { before: PADDING, all: 2 * PADDING }
const RIGHT: Axes = {
  ...{ box: BOX_WIDTH, gap: 56, boxAcross: BOX_HEIGHT, row: BOX_HEIGHT + 14 },
  frame: { before: SIDES.before, all: SIDES.all, beforeAcross: HEADED.before, allAcross: HEADED.all },
}
const DOWN: Axes = {
  ...{ box: BOX_HEIGHT, gap: 56, boxAcross: BOX_WIDTH, row: BOX_WIDTH + 20 },
  frame: { before: HEADED.before, all: HEADED.all, beforeAcross: SIDES.before, allAcross: SIDES.all },
}

/** Draws boxes: those that have no frame, and within each frame those that name it. */
export function draw({ boxes, drawn }: Pick<Boxes, 'boxes' | 'drawn'>, isDown: boolean): Drawing {
  const axes = isDown ? DOWN : RIGHT
  const inside = new Map<number | undefined, number[]>()
  for (const [box, { frame }] of boxes.entries()) {
    const some = inside.get(frame)
    if (some === undefined) inside.set(frame, [box])
    else some.push(box)
  }
  const edgesIn = Map.groupBy(drawn, ([from]) => boxes[from]!.frame)
  const levels = new Map<number, Level>()
  for (const [frame, some] of inside) {
    if (frame !== undefined) levels.set(frame, new Level(axes, isDown, some, edgesIn.get(frame) ?? [], new Map()))
  }
  const outer = new Level(axes, isDown, inside.get(undefined) ?? [], edgesIn.get(undefined) ?? [], levels)
  const places = new Map<number, Place>()
  outer.place(places, { along: MARGIN, across: MARGIN }, 0)
  let layers = outer.layers
  const lines = [...outer.lines()]
  for (const [frame, level] of levels) {
    const { along, across } = places.get(frame)!
    const { before, beforeAcross } = axes.frame
    level.place(places, { along: along + before, across: across + beforeAcross }, layers)
    layers += level.layers
    lines.push(...level.lines())
  }
  const sized = (length: number, breadth: number): Size =>
    isDown ? { width: breadth, height: length } : { width: length, height: breadth }
  const all = boxes.map((_, box) => places.get(box)!)
  return {
    isDown,
    size: sized(2 * MARGIN + outer.length, 2 * MARGIN + outer.breadth),
    corners: all.map(({ along, across }) => (isDown ? { x: across, y: along } : { x: along, y: across })),
    sizes: all.map(({ length, breadth }) => sized(length, breadth)),
    layerOf: all.map(({ layer }) => layer),
    rowOf: all.map(({ across, breadth }) => across + breadth / 2),
    lines,
    impliedAt: (box) => {
      const { frame } = boxes[box]!
      return (frame === undefined ? outer : levels.get(frame)!).impliedAt(box)
    },
  }
}

/** Where a box is, along the layers and across them. */
interface Place {
  readonly along: number
  readonly across: number
  readonly length: number
  readonly breadth: number
  readonly layer: number
}

/** What is laid out together: the inside of one frame, or what is in none. */
class Level {
  readonly length: number
  readonly breadth: number
  readonly layers: number
  readonly #axes: Axes
  readonly #isDown: boolean
  readonly #boxes: readonly number[]
  readonly #edges: readonly (readonly [from: number, to: number])[]
  readonly #layout: Layout
  readonly #lengths: readonly number[]
  readonly #breadths: readonly number[]
  /** Where each layer begins and how long it is, as its longest box. */
  readonly #starts: readonly number[]
  readonly #layerLengths: readonly number[]
  #at = { along: 0, across: 0 }

  constructor(
    axes: Axes,
    isDown: boolean,
    boxes: readonly number[],
    edges: Boxes['drawn'],
    frames: ReadonlyMap<number, Level>,
  ) {
    const indexOf = new Map(boxes.map((box, index) => [box, index]))
    this.#axes = axes
    this.#isDown = isDown
    this.#boxes = boxes
    this.#edges = edges.map(([from, to]) => [indexOf.get(from)!, indexOf.get(to)!])
    const inner = boxes.map((box) => frames.get(box))
    this.#lengths = inner.map((level) => (level === undefined ? axes.box : level.length + axes.frame.all))
    this.#breadths = inner.map((level) => (level === undefined ? axes.boxAcross : level.breadth + axes.frame.allAcross))
    const rows = this.#breadths.map((breadth) => (breadth - axes.boxAcross) / axes.row + 1)
    this.#layout = layOut(boxes.length, this.#edges, rows)
    this.layers = this.#layout.layers
    const lengths = new Array<number>(this.layers).fill(axes.box)
    for (const [index, layer] of this.#layout.layerOf.entries())
      lengths[layer] = Math.max(lengths[layer]!, this.#lengths[index]!)
    const starts = [0]
    for (const length of lengths) starts.push(starts.at(-1)! + length + axes.gap)
    this.#starts = starts
    this.#layerLengths = lengths
    this.length = Math.max(axes.box, starts.at(-1)! - axes.gap)
    this.breadth = Math.max(0, this.#layout.rows - 1) * axes.row + axes.boxAcross
  }

  /** Puts its boxes at `at`, with numbers for its layers from `firstLayer`. */
  place(places: Map<number, Place>, at: { along: number; across: number }, firstLayer: number): void {
    this.#at = at
    for (const [index, box] of this.#boxes.entries()) {
      const layer = this.#layout.layerOf[index]!
      const [length, breadth] = [this.#lengths[index]!, this.#breadths[index]!]
      const across = this.#middle(this.#layout.rowOf[index]!) - breadth / 2
      places.set(box, { along: this.#start(layer), across, length, breadth, layer: firstLayer + layer })
    }
  }

  lines(): readonly DrawnLine[] {
    return this.#layout.lines.map((line) => ({
      ...{ from: this.#boxes[line.from]!, to: this.#boxes[line.to]! },
      path: this.#pathOf(line),
    }))
  }

  impliedAt(box: number): string {
    const index = this.#boxes.indexOf(box)
    const { lines, layerOf, rowOf } = this.#layout
    const drawn = new Set(lines.map(({ from, to }) => `${from} ${to}`))
    return this.#edges
      .filter(([from, to]) => (from === index || to === index) && !drawn.has(`${from} ${to}`))
      .map(([from, to]) => {
        const steps = layerOf[to]! - layerOf[from]!
        const [a, b] = [rowOf[from]!, rowOf[to]!]
        const rows = Array.from({ length: steps + 1 }, (_, step) => a + ((b - a) * step) / steps)
        return this.#pathOf({ from, to, rows })
      })
      .join('')
  }

  #start(layer: number): number {
    return this.#at.along + this.#starts[layer]!
  }

  #middle(row: number): number {
    return this.#at.across + row * this.#axes.row + this.#axes.boxAcross / 2
  }

  /** A smooth path from the end of a box, along its bends, to the beginning of another. */
  #pathOf({ from, rows }: Line): string {
    const first = this.#layout.layerOf[from]!
    const middle = (row: number) => this.#middle(row).toFixed(1)
    const point = (a: number, b: string) => (this.#isDown ? `${b} ${a}` : `${a} ${b}`)
    const straight = this.#isDown ? 'V' : 'H'
    const { gap } = this.#axes
    const length = this.#lengths[from]!
    let path = `M${point(this.#start(first) + length, middle(rows[0]!))}`
    if (length < this.#layerLengths[first]!) path += `${straight}${this.#start(first) + this.#layerLengths[first]!}`
    for (let step = 1; step < rows.length; step++) {
      const layer = first + step
      const end = this.#start(layer)
      const bend = end - gap / 2
      const [a, b] = [middle(rows[step - 1]!), middle(rows[step]!)]
      path += a === b ? `${straight}${end}` : `C${point(bend, a)} ${point(bend, b)} ${point(end, b)}`
      if (step < rows.length - 1) path += `${straight}${end + this.#layerLengths[layer]!}`
    }
    return path
  }
}
