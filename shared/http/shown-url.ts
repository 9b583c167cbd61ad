/** An address without user and password, for errors, logs and lists. Pure. */
export function shownUrl(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || (parsed.username === '' && parsed.password === '')) return url
  parsed.username = ''
  parsed.password = ''
  return parsed.href.replace(/\/+$/, '')
}
