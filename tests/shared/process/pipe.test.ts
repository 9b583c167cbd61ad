/** Goal: what a child writes to a pipe is read to its end, and no descriptor stays open. Method: real pipes, real children. */
import { expect, test } from 'bun:test'
import { closeSync, fstatSync, writeSync } from 'node:fs'
import { closeEnds, drainPipe, openPipe, streamOf } from '../../../shared/process/pipe.ts'

test('a child may open its output again, and all of it is read', async () => {
  const pipe = openPipe()!
  const child = Bun.spawn(['/bin/sh', '-c', 'echo one; echo two > /dev/stdout'], { stdout: pipe.writeEnd })
  closeEnds('writeEnd', [pipe])
  expect(await new Response(streamOf(pipe, child.stdout)).text()).toBe('one\ntwo\n')
  closeEnds('readEnd', [pipe])
})

test('where there is no pipe the stream is that of Bun', async () => {
  const child = Bun.spawn(['/bin/echo', 'one'], { stdout: 'pipe' })
  expect(await new Response(streamOf(null, child.stdout)).text()).toBe('one\n')
})

test('the named ends are closed, of those pipes that there are', () => {
  const [one, other] = [openPipe()!, openPipe()!]
  closeEnds('writeEnd', [one, null, other])
  for (const { readEnd, writeEnd } of [one, other]) {
    expect(() => fstatSync(writeEnd)).toThrow('EBADF')
    expect(fstatSync(readEnd).isFIFO()).toBe(true)
    closeSync(readEnd)
  }
})

test('what is in a pipe is read without waiting for more', () => {
  const pipe = openPipe()!
  const drained = () => {
    let text = ''
    const found = drainPipe(pipe, (chunk) => {
      text += Buffer.from(chunk).toString()
    })
    return { found, text }
  }
  expect(drained()).toEqual({ found: 'open', text: '' })
  writeSync(pipe.writeEnd, 'one')
  expect(drained()).toEqual({ found: 'open', text: 'one' })
  const much = 'x'.repeat(64 * 1024)
  writeSync(pipe.writeEnd, much)
  expect(drained()).toEqual({ found: 'full', text: much })
  writeSync(pipe.writeEnd, 'two')
  closeEnds('writeEnd', [pipe])
  expect(drained()).toEqual({ found: 'ended', text: 'two' })
  expect(drained()).toEqual({ found: 'ended', text: '' })
  closeEnds('readEnd', [pipe])
})
