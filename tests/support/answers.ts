/** What answers of control hold. */
import { expect } from 'bun:test'
import { TaskRecord } from '../../shared/contract/control.ts'
import { checkedAnswer } from './answer-check.ts'

/** The record in an answer that must be a 200. */
export async function recordOf(response: Response): Promise<TaskRecord> {
  expect(response.status).toBe(200)
  return checkedAnswer(TaskRecord, await response.json())
}

/** Status and error of a refusal. */
export const errorOf = async (response: Response): Promise<string> =>
  `${response.status} ${((await response.json()) as { error: string }).error}`
