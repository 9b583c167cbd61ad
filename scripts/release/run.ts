/** Runs `command` and returns its standard output. Throws with all that it printed if it fails. */
export async function run(command: readonly string[], options: { readonly cwd?: string } = {}): Promise<string> {
  const child = Bun.spawn([...command], { ...options, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const code = await child.exited
  if (code !== 0) throw new Error(`${command[0]} failed with exit code ${code}: ${`${stderr}${stdout}`.trim()}`)
  return stdout
}
