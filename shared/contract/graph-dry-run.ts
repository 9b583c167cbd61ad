/** The answer of a dry run of POST /tasks. */
import type { Static } from '@sinclair/typebox'
import { count, flag, type Immutable, maybe, text, texts } from './answer-schema.ts'
import { ExecutionPlan } from './runtime.ts'
import { Type } from './schema-builder.ts'
import { SubmitWarning } from './submission.ts'

/** Faults in one answer. */
export const MAX_DRY_RUN_ERRORS = 1_000

/** Tasks of an answer whose plans the runtime service is asked for. */
export const MAX_DRY_RUN_PLANS = 100

/** Tasks of an answer whose time limits are named. */
export const MAX_DRY_RUN_TIME_LIMITS = 1_000

export const GraphFault = Type.Object({
  message: text('The error that a submission with this fault alone would get, or with fails the task.'),
  task_id: maybe(text('Id of the task with the fault.')),
  fails: maybe(
    Type.Literal(true, {
      description: 'A submission is accepted, with a warning, but the task is certain to fail, and the graph with it.',
    }),
  ),
})
export type GraphFault = Immutable<Static<typeof GraphFault>>

export const TaskPlan = Type.Object({
  execution_plan: maybe(ExecutionPlan),
  error: maybe(text('Why there is no plan: the refusal of the runtime service, or why it did not answer.')),
})
export type TaskPlan = Immutable<Static<typeof TaskPlan>>

/** The limits of the two clocks of an attempt. A clock without a limit is left out. */
export const TimeLimits = Type.Object({
  queue_timeout: maybe(count('Milliseconds that each attempt may wait before it runs: the clock of waiting.')),
  timeout: maybe(count('Milliseconds that each attempt may run, without its wait: the clock of running.')),
})
export type TimeLimits = Immutable<Static<typeof TimeLimits>>

export const GraphDryRun = Type.Object(
  {
    valid: flag('Whether a submission would be accepted, and the graph can succeed as far as is known.'),
    errors: Type.Array(GraphFault, {
      maxItems: MAX_DRY_RUN_ERRORS,
      description: 'The faults of the graph, in the order of the checks.',
    }),
    warnings: Type.Array(SubmitWarning, {
      description: 'Tasks that fail if they run, but need not succeed for the graph to succeed.',
    }),
    waves: Type.Array(texts('Ids of tasks.'), {
      description:
        'Ids of the tasks; the tasks of a wave depend on tasks of earlier waves only. A group stands for the tasks in it, which each[*]/build names for all elements if their list is long or not known. Empty if ids or dependencies have a fault.',
    }),
    critical_path: texts('The longest chain of dependent tasks, by their number. Empty as waves are.'),
    runtime: Type.Record(Type.String(), TaskPlan, {
      description: `For runtime tasks: what the runtime service would do. At most ${MAX_DRY_RUN_PLANS} tasks.`,
    }),
    time_limits: maybe(
      Type.Record(Type.String(), TimeLimits, {
        description: `The time limits of each task that has any. Absent if none has. At most ${MAX_DRY_RUN_TIME_LIMITS} tasks.`,
      }),
    ),
    truncated: maybe(
      Type.Literal(true, { description: 'There are more errors, more runtime tasks, or more tasks with time limits.' }),
    ),
  },
  { title: 'GraphDryRun' },
)
export type GraphDryRun = Immutable<Static<typeof GraphDryRun>>
