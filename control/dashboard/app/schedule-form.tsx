/** A form that adds a schedule or changes one. The service checks it while one types, and says when it would be due. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { CATCH_UPS, OVERLAPS } from '../../../shared/contract/schedule-words.ts'
import type { Schedule } from '../../../shared/contract/schedules.ts'
import {
  bodyOf,
  type Draft,
  type DraftFault,
  type DraftField,
  draftOf,
  faultAt,
  NEW_DRAFT,
  RULES,
  zoneOf,
} from '../model/schedule.ts'
import { request } from './api.ts'
import { DueTimes } from './due-times.tsx'
import { faultOf } from './fault.ts'
import { Note } from './parts.tsx'
import { RightButton, useLack } from './session.tsx'
import { useJson } from './use-json.ts'
import { useNow } from './use-now.ts'

/** Milliseconds after the last key before the service is asked. */
const ASK_AFTER_MS = 400

/** A name for the check of a schedule that has none yet. */
const UNNAMED = 'new'

export interface ScheduleFormProps {
  /** Of the schedule that changes. Undefined for a new one. */
  readonly name: string | undefined
  readonly onSaved: (name: string) => void
  readonly onClose: () => void
}

export function ScheduleForm({ name, onSaved, onClose }: ScheduleFormProps) {
  const { value, fault } = useJson<Schedule>(name === undefined ? undefined : pathOf(name), name)
  if (name !== undefined && value === undefined) {
    return (
      <div class="schedules-page">
        {fault === undefined ? <Note kind="quiet">Reading {name} …</Note> : <Note kind="fault">{fault.message}</Note>}
      </div>
    )
  }
  const draft = value === undefined ? NEW_DRAFT : draftOf(value)
  return <Fields key={name ?? ''} first={draft} isNew={name === undefined} {...{ onSaved, onClose }} />
}

const pathOf = (name: string): string => `/schedules/${encodeURIComponent(name)}`

const HINTS: Partial<Record<DraftField, string>> = {
  jitter: 'seconds by which each graph may start later',
  start: 'nothing is due before, such as 2030-01-31T09:30:00Z',
  end: 'nothing is due after',
  keep: 'ended graphs that stay; older ones are deleted',
  on_failure: 'where to POST what was missed, refused or failed, such as {"url": "https://ci.example.com/hook"}',
  params: 'values for parameters of the graph, as JSON',
}

const WHEN_WORDS = { cron: 'Expression', every: 'Seconds', at: 'Time' } as const
const WHEN_HINTS = {
  cron: 'minute, hour, day, month, weekday',
  every: 'between two due times',
  at: 'such as 2030-01-31T09:30:00Z',
} as const

interface FieldsProps extends Omit<ScheduleFormProps, 'name'> {
  readonly first: Draft
  readonly isNew: boolean
}

function Fields({ first, isNew, onSaved, onClose }: FieldsProps) {
  const [draft, setDraft] = useState(first)
  const [isSaving, setIsSaving] = useState(false)
  const lack = useLack('operate')
  const [refused, setRefused] = useState<DraftFault>()
  const { found, fault: faultNow } = useCheck(draft, isNew)
  const fault = refused ?? faultNow
  const change = (field: DraftField, value: string | boolean) => {
    setRefused(undefined)
    setDraft((before) => ({ ...before, [field]: value }))
  }
  const save = async () => {
    setIsSaving(true)
    const { fault, body } = await checked(draft, isNew)
    try {
      if (fault !== undefined) return setRefused(fault)
      await request(pathOf(draft.name), { method: 'PUT', body: body! })
      onSaved(draft.name)
    } catch (error) {
      setRefused(faultAt(faultOf(error).message, draft.rule))
    } finally {
      setIsSaving(false)
    }
  }
  const now = useNow(true)
  const bind = (field: Exclude<DraftField, 'paused'>) => ({
    ...{ field, value: draft[field], fault, hint: HINTS[field] },
    onValue: (value: string) => change(field, value),
  })
  return (
    <form
      class="schedules-page schedule-form"
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <h1>{isNew ? 'Add a schedule' : `Change ${draft.name}`}</h1>
      {isNew && <Text {...bind('name')} label="Name" hint="letters, digits, . _ -" />}
      <div class="row">
        <Choice {...bind('rule')} label="Rule" words={RULES} />
        <Text {...bind('when')} label={WHEN_WORDS[draft.rule]} hint={WHEN_HINTS[draft.rule]} />
        {draft.rule === 'cron' && <Text {...bind('timezone')} label="Time zone" list="zones" />}
      </div>
      <datalist id="zones">
        {Intl.supportedValuesOf('timeZone').map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      <div class="due" role="status">
        {found !== undefined && <DueTimes times={found.next} zone={zoneOf(found)} isPaused={draft.paused} now={now} />}
      </div>
      <div class="row">
        <Choice {...bind('overlap')} label="While a graph of it runs" words={OVERLAPS} />
        <Choice {...bind('catch_up')} label="After the service was down" words={CATCH_UPS} />
        <label class="check">
          <input
            type="checkbox"
            checked={draft.paused}
            onChange={(event) => change('paused', event.currentTarget.checked)}
          />
          Paused
        </label>
      </div>
      <details
        open={[draft.jitter, draft.start, draft.end, draft.keep, draft.on_failure, draft.params].some(
          (text) => text !== '',
        )}
      >
        <summary>More</summary>
        <div class="row">
          <Text {...bind('jitter')} label="Jitter" />
          <Text {...bind('keep')} label="Keep" />
          <Text {...bind('start')} label="Start" />
          <Text {...bind('end')} label="End" />
        </div>
        <Area {...bind('on_failure')} label="On failure" rows={3} />
        <Area {...bind('params')} label="Parameters" rows={3} />
      </details>
      <Area {...bind('graph')} label="Graph, as JSON" rows={14} />
      {found?.warnings?.map(({ task_id, message }) => (
        <Note kind="quiet" key={`${task_id} ${message}`}>
          Certain to fail as things are: {task_id}: {message}
        </Note>
      ))}
      {fault !== undefined && fault.field === undefined && <Note kind="fault">{fault.message}</Note>}
      <p>
        <RightButton lack={lack} type="submit" class="primary" disabled={isSaving || draft.name === ''}>
          Save
        </RightButton>{' '}
        <button type="button" onClick={onClose}>
          Not now
        </button>
      </p>
    </form>
  )
}

interface Check {
  /** The schedule that it would be. */
  readonly found?: Schedule
  readonly fault?: DraftFault
  readonly body?: string
}

/** What the service says of the draft. Keeps nothing. */
async function checked(draft: Draft, isNew: boolean, signal: AbortSignal | null = null): Promise<Check> {
  const sent = bodyOf(draft)
  if (!('body' in sent)) return { fault: sent }
  const { body } = sent
  try {
    const path = `${pathOf(draft.name === '' ? UNNAMED : draft.name)}?dry_run=true`
    const found = (await (await request(path, { method: 'PUT', body, signal })).json()) as Schedule
    const isThere = isNew && draft.name !== '' && found.created_at !== found.updated_at
    return isThere
      ? { found, fault: { field: 'name', message: 'There is a schedule of this name: change that one.' } }
      : { found, body }
  } catch (error) {
    return { fault: faultAt(faultOf(error).message, draft.rule) }
  }
}

/** What the service says of the draft, some time after it has changed. */
function useCheck(draft: Draft, isNew: boolean): Check {
  const [state, setState] = useState<Check>({})
  useEffect(() => {
    const gone = new AbortController()
    const check = async () => {
      const found = await checked(draft, isNew, gone.signal)
      if (!gone.signal.aborted) setState(found)
    }
    const timer = setTimeout(() => void check(), ASK_AFTER_MS)
    return () => {
      clearTimeout(timer)
      gone.abort()
    }
  }, [draft, isNew])
  return state
}

interface FieldProps {
  readonly field: DraftField
  readonly label: string
  readonly value: string
  readonly hint?: string | undefined
  readonly fault: DraftFault | undefined
  readonly onValue: (value: string) => void
}

/** A field with its label, its hint, and what the service says of it. */
function Field({
  field,
  label,
  hint,
  fault,
  children,
}: Omit<FieldProps, 'value' | 'onValue'> & { children: ComponentChildren }) {
  const own = fault?.field === field ? fault.message : undefined
  return (
    <div class={`field${own === undefined ? '' : ' faulty'}`}>
      <label for={`schedule-${field}`}>{label}</label>
      {children}
      <p
        id={`about-${field}`}
        class={own === undefined ? 'quiet' : 'fault-text'}
        role={own === undefined ? undefined : 'alert'}
      >
        {own ?? hint}
      </p>
    </div>
  )
}

const inputProps = ({ field, value, fault, onValue }: FieldProps) => ({
  ...{ id: `schedule-${field}`, value, spellcheck: false, autocomplete: 'off' },
  'aria-describedby': `about-${field}`,
  'aria-invalid': fault?.field === field,
  onInput: (event: { currentTarget: { value: string } }) => onValue(event.currentTarget.value),
})

const Text = ({ list, ...props }: FieldProps & { list?: string }) => (
  <Field {...props}>
    <input type="text" {...inputProps(props)} {...(list !== undefined && { list })} />
  </Field>
)

const Area = ({ rows, ...props }: FieldProps & { rows: number }) => (
  <Field {...props}>
    <textarea rows={rows} {...inputProps(props)} />
  </Field>
)

const Choice = ({ words, ...props }: FieldProps & { words: readonly string[] }) => (
  <Field {...props}>
    <select {...inputProps(props)}>
      {words.map((word) => (
        <option key={word}>{word}</option>
      ))}
    </select>
  </Field>
)
