/** Prints the frame of the page as HTML. `bundle.ts` runs it. */

import { Shell, StartFault } from './frame.tsx'
import { htmlOf } from './html-of.ts'

// biome-ignore lint/suspicious/noConsole: what it prints is its result
console.log(htmlOf([<Shell key="shell" />, <StartFault key="fault" />]))
