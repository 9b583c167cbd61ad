import { expect, test } from 'bun:test'
import { commandLine } from '../../adapter/shell-words.ts'

test.each([['a b'], ["it's"], ['$HOME'], ['`id`'], ['"'], ['a\\b'], [''], ['plain/path-1.2:3'], ['ü'], ['a\nb']])(
  'a shell reads %j back from a command line',
  async (word) => {
    const child = Bun.spawn(['sh', '-c', commandLine('printf', '%s', word)], { stdout: 'pipe' })
    expect(await new Response(child.stdout).text()).toBe(word)
  },
)
