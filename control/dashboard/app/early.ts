/**
 * Runs before the page is painted, and before its script has arrived: the frame of the page looks as its place needs it, and
 * what that place shows is asked for.
 */
import { placeOf } from '../model/place.ts'
import { signInCode } from '../model/session.ts'
import { beginEarly, graphPath, LIST_PATH, SESSION_PATH, watchStart } from './early-work.ts'

watchStart()
const place = placeOf(location.hash)
document.documentElement.className = `at-${place.at}`
const isSignedIn = signInCode(location.hash) === undefined // else by the script of the page, before it asks
beginEarly(isSignedIn ? [...(place.at === 'graph' ? [graphPath(place.graphId)] : []), LIST_PATH, SESSION_PATH] : [])
