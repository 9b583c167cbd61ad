import { expect, test } from 'bun:test'
import {
  FAILED_SIGN_INS_MS,
  FailedSignIns,
  MAX_FAILED_ADDRESSES,
  MAX_FAILED_SIGN_INS,
} from '../../../control/http/failed-sign-ins.ts'

test('after MAX_FAILED_SIGN_INS an address waits until the first of FAILED_SIGN_INS_MS is over, and no other one does', () => {
  const failures = new FailedSignIns()
  for (let i = 0; i < MAX_FAILED_SIGN_INS; i++) {
    expect(failures.waitSeconds('a', i)).toBe(0)
    failures.failed('a', i)
  }
  expect(failures.waitSeconds('a', MAX_FAILED_SIGN_INS)).toBe(FAILED_SIGN_INS_MS / 1_000)
  expect(failures.waitSeconds('b', MAX_FAILED_SIGN_INS)).toBe(0)
  expect(failures.waitSeconds('a', FAILED_SIGN_INS_MS - 1)).toBe(1)
  expect(failures.waitSeconds('a', FAILED_SIGN_INS_MS)).toBe(0)
  failures.failed('a', FAILED_SIGN_INS_MS)
  expect(failures.waitSeconds('a', FAILED_SIGN_INS_MS)).toBe(0)
})

test('beyond MAX_FAILED_ADDRESSES the oldest is forgotten', () => {
  const failures = new FailedSignIns()
  const fail = (address: string) => {
    for (let i = 0; i < MAX_FAILED_SIGN_INS; i++) failures.failed(address, 0)
  }
  for (let i = 0; i <= MAX_FAILED_ADDRESSES; i++) fail(`${i}`)
  expect(['0', '1', `${MAX_FAILED_ADDRESSES}`].map((address) => failures.waitSeconds(address, 0) > 0)).toEqual([
    ...[false, true, true],
  ])
})
