/** The file of a subcommand: its argument, or `--file`. */
import { UsageError } from '../../shared/contract/errors.ts'
import { text } from '../../shared/settings/flags.ts'

export const fileSetting = text({
  value: 'file',
  help: 'The same as the argument FILE. Default, or with -: standard input.',
})

/** Empty if neither is given. Throws `UsageError` if both are. */
export function fileOf([argument]: readonly string[], { file }: { readonly file: string }): string {
  if (argument === undefined) return file
  if (file !== '') throw new UsageError(`two files: ${argument} and --file ${file}`)
  if (argument === '') throw new UsageError('the name of the file is empty')
  return argument
}
