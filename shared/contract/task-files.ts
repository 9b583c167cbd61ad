/** The files of a task, as control lists them. */
import type { Static } from '@sinclair/typebox'
import { count, type Immutable } from './answer-schema.ts'
import { DirectoryListing } from './runtime.ts'
import { Type } from './schema-builder.ts'

export const TaskFileListing = Type.Object(
  {
    attempt: count('The attempt whose files they are.'),
    ...DirectoryListing.properties,
  },
  { title: 'TaskFileListing' },
)
export type TaskFileListing = Immutable<Static<typeof TaskFileListing>>
