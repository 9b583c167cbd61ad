/**
 * The frame of the page: the bar on top, the list beside, the place for the rest. No component here has state, so the HTML of
 * the page has the frame too (`print-shell.tsx`): it is painted before the script runs, which then takes it over.
 */
import type { ComponentChildren } from 'preact'
import type { SessionResponse } from '../../../shared/contract/session.ts'
import { AGES, type ListFilter, NO_FILTER, SHOWN, SHOWN_WORDS } from '../model/list-filter.ts'
import { hashOf, type Place } from '../model/place.ts'
import { signedInName } from '../model/session.ts'
import type { Live, LiveState } from './live.ts'

const LIVE_WORDS: Readonly<Record<LiveState, string>> = { live: 'live', connecting: 'connecting …', paused: 'paused' }

export interface FrameProps {
  readonly at: Place['at']
  readonly live: Live
  /** How full the service is, in the bar on top. */
  readonly capacity?: ComponentChildren
  /** The list of graphs. Absent where there is none. */
  readonly list: ComponentChildren
  readonly hasTitle: boolean
  /** Who is signed in. Undefined until it is known. */
  readonly session?: SessionResponse | undefined
  readonly maySubmit?: boolean
  readonly onSignOut?: () => void
  readonly onSearch?: () => void
  readonly children: ComponentChildren
  readonly dialogs?: ComponentChildren
}

export const Frame = ({
  at,
  live,
  capacity,
  list,
  hasTitle,
  session,
  maySubmit = true,
  onSignOut,
  onSearch,
  children,
  dialogs,
}: FrameProps) => (
  <div class="page">
    <button type="button" class="small skip" onClick={() => document.querySelector('main')?.focus()}>
      Skip to the content
    </button>
    <header class="top">
      <a class="brand" href="#/graphs">
        taskmill
      </a>
      {session?.tenant !== undefined && <span class="whose">tenant {session.tenant}</span>}
      {hasTitle && <h1 class="for-readers">Graphs</h1>}
      <nav aria-label="Places">
        <TopLink to="graphs" isHere={at === 'graphs' || at === 'graph' || at === 'runs'} text="Graphs" />
        {session?.tenant === undefined && <TopLink to="schedules" isHere={at === 'schedules'} text="Schedules" />}
        <TopLink to="service" isHere={at === 'service'} text="Service" />
      </nav>
      <span class="room" />
      {capacity}
      <button type="button" class="small" onClick={onSearch}>
        Search <kbd>/</kbd>
      </button>
      {maySubmit && (
        <a class="button primary small" href="#/submit">
          Submit
        </a>
      )}
      {session?.by === 'session' && <SignedIn session={session} onSignOut={onSignOut} />}
      <span class={`stream ${live.state}`} role="status">
        {LIVE_WORDS[live.state]}
      </span>
    </header>
    {live.fault !== undefined && (
      <p class="note fault" role="alert">
        The page shows no changes: the stream of events fails ({live.fault}). Trying again.
      </p>
    )}
    <div class="below">
      {list}
      <main tabIndex={-1}>{children}</main>
    </div>
    {dialogs}
  </div>
)

const SignedIn = ({ session, onSignOut }: { session: SessionResponse; onSignOut: (() => void) | undefined }) => (
  <>
    <a class="signed-in" href={hashOf({ at: 'service' })}>
      {signedInName(session)}
    </a>
    <button type="button" class="small" onClick={onSignOut}>
      Sign out
    </button>
  </>
)

const TopLink = ({ to, isHere, text }: { to: 'graphs' | 'schedules' | 'service'; isHere: boolean; text: string }) => (
  <a class={`to-${to}`} href={hashOf({ at: to })} aria-current={isHere ? 'page' : undefined}>
    {text}
  </a>
)

export interface ListFrameProps {
  readonly query: string
  readonly onQuery?: (query: string) => void
  readonly filter?: ListFilter
  readonly onFilter?: (filter: ListFilter) => void
  /** Graphs can be chosen, to do something with all of them. */
  readonly isChoosing?: boolean
  readonly onChoosing?: () => void
  readonly onRefresh?: () => void
  /** When the list was read last, for people. */
  readonly readAt?: string
  readonly children: ComponentChildren
}

interface SelectProps {
  readonly label: string
  readonly words: readonly string[]
  /** Index into `words`. */
  readonly chosen: number
  readonly onChosen: (index: number) => void
}

/** Its options have no values: with them, the script that takes the page over would have it painted again. */
const Select = ({ label, words, chosen, onChosen }: SelectProps) => (
  <select
    aria-label={label}
    value={words[chosen]}
    onChange={(event) => onChosen(words.indexOf(event.currentTarget.value))}
  >
    {words.map((word) => (
      <option key={word}>{word}</option>
    ))}
  </select>
)

export const ListFrame = ({
  query,
  onQuery,
  filter = NO_FILTER,
  onFilter,
  isChoosing = false,
  onChoosing,
  onRefresh,
  readAt,
  children,
}: ListFrameProps) => (
  <nav class="graph-list" aria-label="Graphs">
    <div class="list-tools">
      <input
        type="search"
        placeholder="Filter by name, label, state"
        aria-label="Filter graphs"
        value={query}
        onInput={(event) => onQuery?.(event.currentTarget.value)}
      />
      <button type="button" class="small" onClick={onRefresh} title={readAt && `read at ${readAt}`}>
        Refresh
      </button>
    </div>
    <div class="list-tools list-filters">
      <Select
        label="State"
        words={SHOWN.map((shown) => SHOWN_WORDS[shown])}
        chosen={SHOWN.indexOf(filter.shown)}
        onChosen={(index) => onFilter?.({ ...filter, shown: SHOWN[index]! })}
      />
      <Select
        label="Time of submission"
        words={AGES.map(([, words]) => words)}
        chosen={AGES.findIndex(([ms]) => ms === filter.withinMs)}
        onChosen={(index) => onFilter?.({ ...filter, withinMs: AGES[index]![0] })}
      />
      <button type="button" class="small" aria-pressed={isChoosing ? 'true' : 'false'} onClick={onChoosing}>
        Choose
      </button>
    </div>
    {children}
  </nav>
)

/** Stands where the rows of the list will be. */
export const UnreadList = () => (
  <div class="unread-rows">
    <p class="for-readers" role="status">
      Reading the graphs …
    </p>
  </div>
)

/** What is beside the list where no graph is open. */
export const Welcome = ({ children }: { children?: ComponentChildren }) => <div class="welcome">{children}</div>

/** Seen when the page does not start: at once after a fault of a script, else after half a minute (`style.css`). */
export const StartFault = () => (
  <p class="start-fault" role="alert">
    The page has not started: its script did not arrive, or failed. Reload it. Behind a proxy, requests below{' '}
    <code>assets/</code> have to reach the service.
  </p>
)

/** The page before anything is read. */
export const Shell = () => (
  <Frame
    at="graphs"
    live={{ state: 'connecting' }}
    hasTitle
    list={
      <ListFrame query="">
        <UnreadList />
      </ListFrame>
    }
  >
    <Welcome />
  </Frame>
)
