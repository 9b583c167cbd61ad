/** Requests to this machine never go through a proxy: `HTTP_PROXY` is for the world outside, as in curl's and Go's use. */
export function bypassProxyForLoopback(env: Record<string, string | undefined>): void {
  if (!Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name))) return
  const own = ['localhost', '127.0.0.1', '::1', '[::1]']
  const given = env.NO_PROXY ?? env.no_proxy
  env.NO_PROXY = [...(given ? [given] : []), ...own].join(',')
}
